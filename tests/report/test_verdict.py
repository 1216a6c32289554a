"""What the verdict says, from figures made by hand."""

from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.cli.tables import colour_of
from ringleaf.report.contest import (
    LEAST_PART,
    LEAST_S,
    LEAST_SHARE,
    RELEVANT,
    ComparisonOutcome,
    comparison_outcome,
    contest_of,
)
from ringleaf.report.losses import losses, not_compared
from ringleaf.report.measures import BY_KEY, MeasureTable
from ringleaf.report.results import Estimate, Measured, Results
from ringleaf.report.verdict import findings, headlines
from ringleaf.report.wait_verdict import in_a_sentence, left_out
from ringleaf.study.compare import compared
from tests.docs.pages import ROOT
from tests.report.made import plain_run, real

UTILISATION, WAIT = "use.effective_utilisation", "wait_s.all.mean"


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


def standing(
    key: str, own: float, other: float, sure: float | None = 1e-9
) -> ComparisonOutcome:
    table = MeasureTable(results(*measured(key, own, other, sure)))
    found = comparison_outcome(table, BY_KEY[key], "other")
    assert found is not None
    return found


def in_short(given: Results) -> list[str]:
    return [each.text for each in findings(given) if each.head == "In short"]


def lost(given: Results) -> list[tuple[str, float, dict[str, float], str]]:
    """Where the reference is worse."""
    return [(e.measure.key, e.own, {**e.better}, e.how) for e in losses(given)]


def test_more_use_and_less_waiting_are_better() -> None:
    assert standing(UTILISATION, 0.9, 0.8) is ComparisonOutcome.BETTER
    assert standing(UTILISATION, 0.8, 0.9) is ComparisonOutcome.WORSE
    assert standing(WAIT, 80.0, 90.0) is ComparisonOutcome.BETTER
    assert standing(WAIT, 90.0, 80.0) is ComparisonOutcome.WORSE


def test_what_chance_may_have_done_is_no_difference() -> None:
    assert standing(WAIT, 80.0, 90.0, sure=9.0) is ComparisonOutcome.BETTER
    assert standing(WAIT, 80.0, 90.0, sure=11.0) is ComparisonOutcome.EVEN


def test_a_difference_of_less_than_half_a_percent_is_none() -> None:
    assert standing(UTILISATION, 0.900, 0.898) is ComparisonOutcome.EVEN
    assert standing(UTILISATION, 0.900, 0.890) is ComparisonOutcome.BETTER
    assert standing(WAIT, 0.0, 0.0) is ComparisonOutcome.EVEN


def test_with_one_seed_what_is_seen_counts_and_chance_is_named() -> None:
    assert standing(WAIT, 80.0, 90.0, sure=None) is ComparisonOutcome.BETTER

    told = findings(Results([plain_run("ringleaf"), plain_run("other")]))

    assert told[-1].head != "Significance"
    alone = findings(Results([plain_run("fifo")]))
    assert "significance unknown" in alone[-1].text


def test_with_one_seed_nothing_is_clear() -> None:
    seen = [
        *measured(UTILISATION, 0.8, 0.9, sure=None),
        *measured(WAIT, 60.0, 7200.0, sure=None),
    ]
    given = Results([plain_run("ringleaf"), plain_run("other")], seen)

    told = {each.head: each.text for each in findings(given)}

    assert told["Effective utilization"].endswith(". Lower than other.")
    assert told["Wait time (mean)"].endswith(". Lower than other.")
    assert lost(given) == [(UTILISATION, 0.8, {"other": 0.9}, "")]


def test_with_one_seed_a_small_difference_is_nearly_none() -> None:
    runs = [
        plain_run("ringleaf", use={"effective_utilisation": 0.9}),
        plain_run("other", use={"effective_utilisation": 0.899}),
    ]
    given = Results(runs, measured(UTILISATION, 0.9, 0.899, sure=None))

    (told,) = headlines(given, ["use.effective_utilisation", "wait_s.all.mean"])

    assert told.text.endswith(". Nearly a tie with other.")


def test_a_verdict_tells_where_the_reference_is_worse() -> None:
    given = results(*measured(UTILISATION, 0.8, 0.9), *measured(WAIT, 60.0, 7200.0))

    told = {each.head: each for each in findings(given)}

    assert told["Effective utilization"].standing is ComparisonOutcome.WORSE
    assert told["Effective utilization"].text == (
        "ringleaf 80.0 %; other 90.0 % (+10.0 points). Significantly worse than other."
    )
    assert lost(given) == [(UTILISATION, 0.8, {"other": 0.9}, "significant")]
    assert told["Wait time (mean)"].text.endswith("Significantly better than other.")
    assert told["Against other"].text == (
        "Better in mean wait time; worse in effective utilization."
    )


def test_a_verdict_tells_that_the_reference_is_worse_in_nothing() -> None:
    assert lost(results(*measured(WAIT, 1.0, 2.0))) == []


def test_a_verdict_tells_what_is_much_worse_within_chance() -> None:
    given = results(
        *measured(WAIT, 7200.0, 3600.0, sure=9000.0),
        *measured(UTILISATION, 0.89, 0.9, sure=0.5),
    )

    how = "not significant, but more than 10 % of the larger value"
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
    assert not waiting.has_interval
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
            "Jobs wait 2.0 h with ringleaf and 1.0 h with other (50 % less, not "
            "significant)."
        ),
        (
            "Against other: significantly fewer spine conflicts (0, not 2) and less "
            "effective utilization (80.0 %, not 90.0 %)."
        ),
    ]


ONE_SEED = "One seed: figures are those of one run, significance unknown."


def test_in_short_says_that_one_seed_tells_nothing_of_significance() -> None:
    given = results(
        *measured(UTILISATION, 0.9, 0.9, sure=None),
        *measured(WAIT, 60.0, 90.0, sure=None),
    )

    one = [run for run in given.runs if run.spec.seed == 0]
    assert in_short(replace(given, runs=one)) == [
        (
            "Jobs wait 60 s with ringleaf and 90 s with other (50 % more in this run; "
            "one seed, significance unknown)."
        ),
        "Against other (one seed): about equal in effective utilization.",
    ]
    assert not any("one seed" in text for text in in_short(given))
    use = three(UTILISATION, ringleaf=0.5, other=0.6)
    assert in_short(use) == [
        ("Against other (one seed): less effective utilization (50.0 %, not 60.0 %)."),
        ONE_SEED,
    ]
    nothing = Results([plain_run("ringleaf"), plain_run("other")])
    assert in_short(nothing) == ["There is nothing to compare."]


@pytest.mark.parametrize(
    ("key", "own", "other", "found"),
    [
        (WAIT, 0.9, 0.0, ComparisonOutcome.EVEN),
        (WAIT, 1.1, 0.0, ComparisonOutcome.WORSE),
        (WAIT, 10_000.0, 9_951.0, ComparisonOutcome.EVEN),
        (WAIT, 10_000.0, 9_949.0, ComparisonOutcome.WORSE),
        (UTILISATION, 0.900, 0.896, ComparisonOutcome.EVEN),
        (UTILISATION, 0.900, 0.894, ComparisonOutcome.BETTER),
        ("chips.fragmentation", 0.006, 0.002, ComparisonOutcome.EVEN),
        ("chips.fragmentation", 0.008, 0.002, ComparisonOutcome.WORSE),
        ("leaves.conflicts", 1000.0, 1004.0, ComparisonOutcome.EVEN),
        ("leaves.conflicts", 1000.0, 1006.0, ComparisonOutcome.BETTER),
        ("leaves.conflicts", 0.0, 0.001, ComparisonOutcome.BETTER),
    ],
)
def test_a_significant_difference_is_at_least_the_smallest_relevant_one(
    key: str, own: float, other: float, found: ComparisonOutcome
) -> None:
    """A second and half a percent; half a point; half a percent."""
    assert standing(key, own, other) is found
    assert standing(key, own, other, sure=None) is found
    table = MeasureTable(results(*measured(key, own, other)))
    coloured = {
        ComparisonOutcome.BETTER: "red",
        ComparisonOutcome.WORSE: "green",
        ComparisonOutcome.EVEN: "",
    }
    assert colour_of(table, BY_KEY[key], "other") == coloured[found]


def test_the_page_on_compare_has_the_smallest_relevant_differences() -> None:
    page = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")

    assert (LEAST_SHARE, LEAST_PART, LEAST_S) == (0.005, 0.005, 1.0)
    assert "| shares (in percent) | half a percentage point |" in page
    assert "| times | 0.5 % of the larger value, and at least a second |" in page
    assert "| all others | 0.5 % of the larger value |" in page
    for words in RELEVANT.split("; "):
        assert words.partition(" for ")[0] in page


def test_less_than_a_second_is_no_loss() -> None:
    assert lost(results(*measured(WAIT, 0.9, 0.0, sure=2.0))) == []


def test_utilization_is_no_merit() -> None:
    held = [*measured("use.utilisation", 0.5, 0.9), *measured(UTILISATION, 0.5, 0.4)]
    given = results(*held)

    assert (
        comparison_outcome(MeasureTable(given), BY_KEY["use.utilisation"], "other")
        is None
    )
    assert colour_of(MeasureTable(given), BY_KEY["use.utilisation"], "other") == ""
    assert lost(given) == []
    told = " ".join(f"{each.head} {each.text}" for each in findings(given))
    assert "Utilization " not in told
    assert "significantly more effective utilization (50.0 %, not 40.0 %)." in told


def test_a_policy_alone_has_its_figures_told() -> None:
    told = findings(Results([plain_run("fifo", use={"effective_utilisation": 0.25})]))

    assert told[0].head == "Effective utilization under fifo"
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
    contest = contest_of(MeasureTable(given), WAIT)
    assert contest is not None
    assert (contest.rival, contest.standing) == ("mine", ComparisonOutcome.BETTER)
    assert (contest.best, contest.worst) == ("fast", "slow")
    assert headlines(given, [WAIT])[0].text == (
        "ringleaf 60 s; mine 4.0 min (4.0 times as much); best baseline fast 30 s "
        "(50 % less); worst slow 10.0 min. Lower than mine."
    )
    assert in_short(given) == [
        (
            "Jobs wait 60 s with ringleaf, 4.0 min with mine (4.0 times as much in "
            "this run; one seed, significance unknown) and 30 s with fast, the best "
            "baseline (50 % less)."
        ),
    ]


def test_the_best_baseline_of_each_measure_is_named() -> None:
    use = three(UTILISATION, ringleaf=0.5, mine=0.4, fast=0.6, slow=0.1)
    spine = three("leaves.conflicts", ringleaf=0.2, mine=0.4, fast=9.0, slow=0.0)
    runs = [
        replace(run, metrics={**run.metrics, **other.metrics})
        for run, other in zip(use.runs, spine.runs, strict=True)
    ]

    assert in_short(Results(runs, [*compared(runs, "ringleaf")])) == [
        (
            "Against mine (one seed): fewer spine conflicts (0.2, not 0.4) and more "
            "effective utilization (50.0 %, not 40.0 %)."
        ),
        (
            "Against the best baseline (one seed): more spine conflicts (0.2, not 0 "
            "with slow) and less effective utilization (50.0 %, not 60.0 % with fast)."
        ),
        ONE_SEED,
    ]


def test_what_is_not_significant_has_no_figures_and_the_same_run_says_so() -> None:
    given = results(
        *measured(UTILISATION, 0.8, 0.9),
        *measured("leaves.conflicts", 0.0, 2.0, sure=9.0),
        *measured("chips.fragmentation", 0.1, 0.2, sure=None),
    )

    assert in_short(given) == [
        (
            "Against other: significantly less effective utilization (80.0 %, not "
            "90.0 %); fewer stranded chips (10.0 %, not 20.0 %), the same with every "
            "seed; no significant difference in spine conflicts."
        )
    ]


def test_a_rival_without_a_value_gives_way_to_the_best_baseline() -> None:
    given = three(WAIT, ringleaf=60.0, mine=240.0, fast=30.0)
    contest = contest_of(MeasureTable(given), WAIT, "absent")

    assert contest is not None
    assert (contest.rival, contest.standing) == ("fast", ComparisonOutcome.WORSE)


def test_jobs_that_never_start_are_counted_in_the_verdict() -> None:
    told = left_out(three("jobs.unstarted", ringleaf=0, mine=12, fast=1))

    assert told == (
        "12 jobs never start with mine and 1 job never starts with fast, of 3 jobs. "
        "Wait times, completion time and slowdown leave them out, and are not "
        "compared with mine and fast."
    )
    assert left_out(three("jobs.unstarted", ringleaf=0, mine=0)) == ""


def with_unstarted(*policies: str, unstarted: str = "mine") -> Results:
    """One of four jobs never starts under *unstarted*; the others start sooner."""
    runs = []
    for policy in policies:
        left = policy == unstarted
        wait, pending = (60.0, 300.0) if left else (120.0, 120.0)
        jobs: dict[str, Any] = {"unstarted": int(left)}
        if left:
            sizes = dict.fromkeys(["smallest_unstarted_chips"], 64)
            sizes["largest_unstarted_chips"] = 64
            jobs |= sizes | {"unstarted_causes": {"rule": 1, "order": 0}}
        runs.append(
            plain_run(
                policy,
                jobs=jobs,
                wait_s={"all": {"mean": wait, "p95": wait}},
                pending_s={"all": {"mean": pending}},
            )
        )
    return Results(runs, [*compared(runs, "ringleaf")])


def test_where_some_job_never_starts_policies_are_compared_by_all_jobs() -> None:
    given = with_unstarted("ringleaf", "mine")

    assert in_short(given) == [
        (
            "Jobs wait 2.0 min with ringleaf and 5.0 min with mine (2.5 times as much "
            "in this run; one seed, significance unknown)."
        ),
        "Against mine (one seed): fewer jobs that never start (0, not 1).",
    ]
    assert left_out(given) == (
        "1 job of 64 chips (held back by a leaf or ring rule) never starts with "
        "mine, of 3 jobs. "
        "Wait times of all jobs count them as pending until the last job ends "
        "under any policy; other wait times, completion time and slowdown leave "
        "them out, and are not compared with mine. Each over the jobs that start "
        "under it, ringleaf against mine: p95 wait time 2.0 min against 60 s."
    )
    assert lost(given) == []


def test_what_is_not_compared_is_told_with_the_baselines_that_are_lower() -> None:
    given = with_unstarted("ringleaf", "mine", "other")
    (found,) = not_compared(MeasureTable(given))

    assert (found.measure.key, found.own) == ("wait_s.all.p95", 120)
    assert (found.values, found.lower) == ({"mine": 60}, ["mine"])
    assert not_compared(MeasureTable(with_unstarted("ringleaf", "other"))) == []


def test_that_jobs_were_cut_is_told_where_some_never_start() -> None:
    given = with_unstarted("ringleaf", "mine")
    note = "2 jobs request more chips than x has for them, up to 9: cut to fit"
    runs = [replace(e, spec=replace(e.spec, notes=("a", note))) for e in given.runs]

    assert left_out(replace(given, runs=runs)).endswith(f" against 60 s. {note}.")


def test_measures_that_are_not_over_the_same_jobs_are_no_comparison() -> None:
    table = MeasureTable(with_unstarted("ringleaf", "mine", "other"))
    p95, mean = (BY_KEY[f"wait_s.all.{name}"] for name in ("p95", "mean"))

    assert comparison_outcome(table, p95, "mine") is None
    assert comparison_outcome(table, p95, "other") is ComparisonOutcome.EVEN
    assert comparison_outcome(table, mean, "other") is None  # that of all jobs is
    ours = MeasureTable(with_unstarted("ringleaf", "mine", unstarted="ringleaf"))
    assert comparison_outcome(ours, p95, "mine") is None
    contest = contest_of(ours, p95.key)
    assert contest is not None
    assert not contest.of_same_jobs


def test_where_every_job_starts_wait_times_are_told_once() -> None:
    table = MeasureTable(with_unstarted("ringleaf", "other"))

    assert table.compared(WAIT) == WAIT
    assert "pending_s.all.mean" not in {each.key for each in table.measures}


def test_seeds_that_are_all_alike_are_not_called_one_seed() -> None:
    given = with_seeds(60.0, 90.0, 90.0)

    assert not any("One seed" in each.text for each in findings(given))


def test_the_first_sentence_names_the_best_baseline_among_several_only() -> None:
    alone = three(WAIT, ringleaf=60.0, mine=60.0)
    several = three(WAIT, ringleaf=60.0, mine=60.0, slow=90.0)

    one = " (the same in this run; one seed, significance unknown)."
    assert in_a_sentence(MeasureTable(alone)) == (
        f"Jobs wait 60 s with ringleaf and 60 s with mine{one}"
    )
    assert in_a_sentence(MeasureTable(several)) == (
        f"Jobs wait 60 s with ringleaf and 60 s with mine, the best baseline{one}"
    )
    alike = in_a_sentence(MeasureTable(with_seeds(60.0, 90.0, 90.0)))
    assert alike == (
        "Jobs wait 60 s with ringleaf and 90 s with other (50 % more, the same with "
        "every seed)."
    )
    same = in_a_sentence(MeasureTable(with_seeds(60.0, 60.0, 60.0)))
    assert same == "Jobs wait 60 s with ringleaf and 60 s with other (the same)."
