"""What the verdict says, from figures made by hand."""

from typing import Any

from msgspec.structs import replace

from ringleaf.report.contest import Standing, contest_of, standing_of
from ringleaf.report.measures import BY_KEY, Table
from ringleaf.report.results import Estimate, Measured, Results
from ringleaf.report.verdict import findings, headlines, left_out, losses
from ringleaf.study.compare import compared
from tests.report.made import plain_run, real

UTILISATION, WAIT = "use.utilisation", "wait_s.all.mean"


def results(*measured: Measured) -> Results:
    runs = [plain_run(policy, s) for policy in ("ringleaf", "other") for s in (0, 1)]
    return Results(runs, measured)


def measured(
    key: str, own: float, other: float, sure: float | None = 1e-9
) -> list[Measured]:
    """*own* of Ringleaf, and another; the difference is sure up to so much."""
    gap = other - own
    between = Estimate(gap) if sure is None else Estimate(gap, gap - sure, gap + sure)
    return [
        Measured(key, "ringleaf", Estimate(own)),
        Measured(key, "other", Estimate(other), between),
    ]


def standing(key: str, own: float, other: float, sure: float | None = 1e-9) -> Standing:
    table = Table(results(*measured(key, own, other, sure)))
    found = standing_of(table, BY_KEY[key], "other")
    assert found is not None
    return found


def in_short(given: Results) -> list[str]:
    return [each.text for each in findings(given) if each.head == "In short"]


def lost(given: Results) -> list[tuple[str, float, dict[str, float], str]]:
    """Where the reference is worse."""
    return [(e.measure.key, e.own, {**e.better}, e.how) for e in losses(given)]


def test_more_use_and_less_waiting_are_better() -> None:
    assert standing(UTILISATION, 0.9, 0.8) is Standing.BETTER
    assert standing(UTILISATION, 0.8, 0.9) is Standing.WORSE
    assert standing(WAIT, 80.0, 90.0) is Standing.BETTER
    assert standing(WAIT, 90.0, 80.0) is Standing.WORSE


def test_what_chance_may_have_done_is_no_difference() -> None:
    assert standing(WAIT, 80.0, 90.0, sure=9.0) is Standing.BETTER
    assert standing(WAIT, 80.0, 90.0, sure=11.0) is Standing.EVEN


def test_a_difference_of_less_than_half_a_percent_is_none() -> None:
    assert standing(UTILISATION, 0.900, 0.898) is Standing.EVEN
    assert standing(UTILISATION, 0.900, 0.890) is Standing.BETTER
    assert standing(WAIT, 0.0, 0.0) is Standing.EVEN


def test_with_one_seed_what_is_seen_counts_and_chance_is_named() -> None:
    assert standing(WAIT, 80.0, 90.0, sure=None) is Standing.BETTER

    told = findings(Results([plain_run("ringleaf"), plain_run("other")]))

    assert "no difference is significant" in told[-1].text


def test_with_one_seed_nothing_is_clear() -> None:
    seen = [
        *measured(UTILISATION, 0.8, 0.9, sure=None),
        *measured(WAIT, 60.0, 7200.0, sure=None),
    ]
    given = Results([plain_run("ringleaf"), plain_run("other")], seen)

    told = {each.head: each.text for each in findings(given)}

    assert told["Utilization"].endswith(". Worse than other.")
    assert told["Wait time (mean)"].endswith(". Better than other.")
    assert lost(given) == [(UTILISATION, 0.8, {"other": 0.9}, "")]


def test_with_one_seed_a_small_difference_is_nearly_none() -> None:
    runs = [
        plain_run("ringleaf", use={"utilisation": 0.9}),
        plain_run("other", use={"utilisation": 0.899}),
    ]
    given = Results(runs, measured(UTILISATION, 0.9, 0.899, sure=None))

    (told,) = headlines(given, ["use.utilisation", "wait_s.all.mean"])

    assert told.text.endswith(". Nearly a tie with other.")


def test_a_verdict_tells_where_the_reference_is_worse() -> None:
    given = results(*measured(UTILISATION, 0.8, 0.9), *measured(WAIT, 60.0, 7200.0))

    told = {each.head: each for each in findings(given)}

    assert told["Utilization"].standing is Standing.WORSE
    assert told["Utilization"].text == (
        "ringleaf 80.0 %; other 90.0 % (-10.0 points). Significantly worse than other."
    )
    assert lost(given) == [(UTILISATION, 0.8, {"other": 0.9}, "significant")]
    assert told["Wait time (mean)"].text.endswith("Significantly better than other.")
    assert told["Against other"].text == (
        "Better in mean wait time; worse in utilization."
    )


def test_a_verdict_tells_that_the_reference_is_worse_in_nothing() -> None:
    assert lost(results(*measured(WAIT, 1.0, 2.0))) == []


def test_a_verdict_tells_what_is_much_worse_within_chance() -> None:
    given = results(
        *measured(WAIT, 7200.0, 3600.0, sure=9000.0),
        *measured(UTILISATION, 0.89, 0.9, sure=0.5),
    )

    how = "not significant, but more than 10% of the mean"
    assert lost(given) == [(WAIT, 7200.0, {"other": 3600.0}, how)]


def test_what_is_within_chance_tells_if_all_seeds_agree() -> None:
    spread = {"wait_s": {"all": {"mean": 50.0}}}
    runs = [plain_run("ringleaf", seed, **spread) for seed in (0, 1)]
    runs += [
        plain_run("other", seed, wait_s={"all": {"mean": 60.0 + 100 * seed}})
        for seed in (0, 1)
    ]
    given = Results(runs, measured(WAIT, 50.0, 110.0, sure=500.0))

    told = {each.head: each for each in findings(given)}

    assert told["Wait time (mean)"].text.endswith(
        "The difference to other is not significant, though ringleaf is better with "
        "every seed."
    )


def with_seeds(own: float, *others: float) -> Results:
    """*own* of Ringleaf with every seed, and what comes of another seed by seed."""
    runs = [
        plain_run(policy, seed, wait_s={"all": {"mean": mean}})
        for seed, other in enumerate(others)
        for policy, mean in (("ringleaf", own), ("other", other))
    ]
    return Results(runs, [*compared(runs, "ringleaf")])


def test_runs_that_are_the_same_for_every_seed_tell_nothing_of_chance() -> None:
    given = with_seeds(60.0, 90.0, 90.0)

    told = {each.head: each for each in findings(given)}

    waiting = told["Wait time (mean)"]
    assert waiting.text.endswith(". Better than other, by the same with every seed.")
    assert not waiting.is_sure
    assert told["Significance"].text.startswith(
        "The same run for every seed: every policy."
    )
    assert not any("ignificantly better" in each.text for each in told.values())


def test_where_the_same_run_is_worse_that_is_not_called_clear() -> None:
    given = with_seeds(90.0, 60.0, 60.0)

    told = {each.head: each for each in findings(given)}

    assert told["Wait time (mean)"].text.endswith(
        ". Worse than other, by the same with every seed."
    )
    assert lost(given) == [(WAIT, 90.0, {"other": 60.0}, "the same with every seed")]


def test_a_small_difference_that_all_seeds_have_is_nearly_none() -> None:
    (told,) = headlines(with_seeds(90.0, 90.1, 90.1), [WAIT])

    assert told.text.endswith(". Nearly a tie with other.")


def test_one_policy_may_be_the_same_for_every_seed_and_another_not() -> None:
    told = {each.head: each for each in findings(with_seeds(60.0, 600.0, 601.0))}

    assert told["Wait time (mean)"].text.endswith("Significantly better than other.")
    assert "The same run for every seed: ringleaf." in told["Significance"].text


def test_in_short_names_what_is_better_even_and_worse() -> None:
    given = results(
        *measured(UTILISATION, 0.8, 0.9),
        *measured("leaves.conflicts", 0.0, 2.0),
        *measured(WAIT, 7200.0, 3600.0, sure=9000.0),
    )

    assert in_short(given) == [
        (
            "Against other, ringleaf is better in spine conflicts; does not differ "
            "significantly in mean wait time; is worse in utilization."
        )
    ]


def test_in_short_says_that_without_intervals_nothing_is_significant() -> None:
    given = results(
        *measured(UTILISATION, 0.9, 0.9, sure=None),
        *measured(WAIT, 60.0, 90.0, sure=None),
    )

    assert in_short(given) == [
        "Against other, ringleaf is better in mean wait time; ties in utilization.",
        "One seed: whether a difference is significant is unknown.",
    ]
    nothing = Results([plain_run("ringleaf"), plain_run("other")])
    assert in_short(nothing) == ["There is nothing to compare."]


def test_less_than_a_second_or_a_twentieth_of_a_point_is_no_difference() -> None:
    assert standing(WAIT, 0.9, 0.0) is Standing.EVEN
    assert standing(WAIT, 1.1, 0.0) is Standing.WORSE
    assert standing("chips.fragmentation", 0.0020, 0.0018) is Standing.EVEN
    assert standing("chips.fragmentation", 0.0030, 0.0018) is Standing.WORSE
    assert lost(results(*measured(WAIT, 0.9, 0.0, sure=2.0))) == []


def test_a_policy_alone_has_its_figures_told() -> None:
    told = findings(Results([plain_run("fifo", use={"utilisation": 0.25})]))

    assert told[0].head == "Utilization under fifo"
    assert told[0].text == "25.0 %."


def test_real_runs_have_a_verdict_about_every_policy() -> None:
    heads = [each.head for each in findings(real())]

    assert heads[0] == "In short"
    assert {"Against best-fit", "Against random", "Significance"} <= {*heads}


def test_a_tie_is_called_a_tie_with_all_that_are_in_it() -> None:
    runs = [
        plain_run(policy, leaves={"conflicts": value})
        for policy, value in {"ringleaf": 0.0, "a": 0.0, "b": 2.0, "c": 0.0}.items()
    ]

    (told,) = headlines(Results(runs, [*compared(runs, "ringleaf")]))

    assert told.text == ("ringleaf 0; a 0; worst b 2. A tie with a and c.")


def three(key: str, **values: float) -> Results:
    """One seed of ringleaf and others in this order, by one measure."""
    part, name = key.split(".", 1)
    runs = []
    for policy, value in values.items():
        inner: dict[str, Any] = {}
        deepest = inner
        *above, last = name.split(".")
        for each in above:
            deepest = deepest.setdefault(each, {})
        deepest[last] = value
        runs.append(replace(plain_run(policy), metrics={part: inner}))
    return Results(runs, [*compared(runs, "ringleaf")])


def test_the_verdict_is_against_the_first_of_the_other_policies() -> None:
    given = three(WAIT, ringleaf=60.0, mine=240.0, fast=30.0, slow=600.0)

    assert given.baseline == "mine"
    contest = contest_of(Table(given), WAIT)
    assert contest is not None
    assert (contest.rival, contest.standing) == ("mine", Standing.BETTER)
    assert (contest.best, contest.worst) == ("fast", "slow")
    assert headlines(given, [WAIT])[0].text == (
        "ringleaf 60 s; mine 4.0 min (ringleaf: 75 % less); best baseline fast 30 s; "
        "worst slow 10.0 min. Better than mine."
    )
    assert in_short(given) == [
        "Against mine, ringleaf is better in mean wait time.",
        (
            "Against the best baseline by each measure, ringleaf is worse in mean wait "
            "time."
        ),
        "One seed: whether a difference is significant is unknown.",
    ]


def test_a_rival_without_a_value_gives_way_to_the_best_baseline() -> None:
    given = three(WAIT, ringleaf=60.0, mine=240.0, fast=30.0)
    contest = contest_of(Table(given), WAIT, "absent")

    assert contest is not None
    assert (contest.rival, contest.standing) == ("fast", Standing.WORSE)


def test_jobs_that_never_start_are_counted_in_the_verdict() -> None:
    given = three("jobs.unstarted", ringleaf=0, mine=12, fast=3)
    told = left_out(given)

    assert told == (
        "Wait times leave out jobs that never start: 12 with mine and 3 with fast "
        f"(of {given.runs[0].spec.jobs:,} jobs)."
    )
    run = [plain_run("ringleaf", wait_s={"all": {"mean": 9.0}}, jobs={"unstarted": 1})]
    run += [plain_run("mine", wait_s={"all": {"mean": 9.0}}, jobs={"unstarted": 0})]
    short = in_short(Results(run, [*compared(run, "ringleaf")]))
    assert "never start: 1 with ringleaf (of" in short[-1]
    assert left_out(three("jobs.unstarted", ringleaf=0, mine=0)) == ""
