"""The page that tells what was simulated."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from ringleaf.report.contest import RELEVANT
from ringleaf.report.duration import format_duration
from ringleaf.report.measures import share
from ringleaf.report.page import page, write_report
from ringleaf.report.results import Estimate, Measured, Results, RunResult
from ringleaf.report.scene import SITE, films_of, fit
from ringleaf.simulator.film import Stills, packed, unpacked
from ringleaf.study.compare import compared
from tests.report.made import POLICIES, plain_run, real, renamed

VOID = {"meta", "input", "br", "link", "img"}
PARTS = ("verdict", "map", "time", "waiting", "table", "simulated")


class Reader(HTMLParser):
    """A page, taken to pieces; anything that is not closed in its turn is noted."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        where = self.open[-1] if self.open else ""
        self.texts[where] = self.texts.get(where, "") + data
        if self.rows and self.rows[-1] and {"td", "th"} & {*self.open}:
            self.rows[-1][-1] += data + " "

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]

    def row(self, title: str) -> list[str]:
        """The last row of a table that begins with *title*."""
        return [r for r in self.rows if r and r[0].startswith(f"{title} ")][-1]


def figures(text: str) -> dict[str, Any]:
    found = re.search(r'id="figures">(.*?)</script>', text, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_a_page_parses_and_has_every_part() -> None:
    read = Reader(page(real()))

    assert read.wrong == []
    assert read.open == []
    sections = [attrs["id"] for attrs in read.named("section")]
    assert sections == [*PARTS]
    assert {a["href"] for a in read.named("a")} == {f"#{part}" for part in PARTS}


def test_every_drawing_and_control_says_what_it_is() -> None:
    read = Reader(page(real()))

    for tag in ("svg", "canvas", "input"):
        for attrs in read.named(tag):
            assert attrs.get("aria-label") or attrs.get("aria-hidden") == "true", attrs
    ids = [attrs["id"] for _tag, attrs in read.tags if "id" in attrs]
    assert len(ids) == len({*ids})


def test_nothing_is_loaded_from_anywhere() -> None:
    text = page(real())
    read = Reader(text)

    for _tag, attrs in read.tags:
        assert not {"src", "srcset", "data", "poster", "action"} & attrs.keys()
        assert str(attrs.get("href") or "#").startswith("#")
    named = text.replace("http://www.w3.org/2000/svg", "").replace("url(#", "")
    assert not re.search(
        r"https?:|//[a-z]+\.|url\(|@import|\bfetch\(|import\(|XMLHttp", named
    )
    (policy,) = [m["content"] for m in read.named("meta") if m.get("http-equiv")]
    assert str(policy).startswith("default-src 'none'")


def test_the_numbers_of_the_table_are_those_of_the_results() -> None:
    results = real()
    read = Reader(page(results))
    values = {(m.measure, m.policy): m.value for m in results.comparison}

    for title, key, written in (
        ("Utilization", "use.utilisation", share),
        ("Wait time (mean)", "wait_s.all.mean", format_duration),
    ):
        cells = read.row(title)[2:]
        for policy, cell in zip(POLICIES, cells, strict=False):
            value = values[key, policy]
            assert value.low is not None
            assert cell.startswith(f"{written(value.mean)} ")
            assert written(max(0.0, value.low)) in cell
    assert "98.7 %" in read.row("Utilization")[1]
    assert ", utilization: 98.7 %." in read.texts["li"]


def test_without_a_comparison_the_table_has_the_means_of_the_runs() -> None:
    runs = [
        plain_run("ringleaf", seed, use={"utilisation": 0.5 + seed / 10})
        for seed in (0, 1)
    ]

    read = Reader(page(Results(runs)))

    assert read.row("Utilization")[1].strip() == "55.0 %"


def test_what_is_nothing_for_everybody_is_no_row() -> None:
    runs = [plain_run("ringleaf", leaves={"conflicts": 0.0, "avoidable": 2})]

    read = Reader(page(Results(runs)))

    assert "0 for every policy: spine conflicts." in read.texts["p"]
    assert not any(row and row[0].startswith("Spine conflicts") for row in read.rows)


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script>&amp;'"],
)
def test_names_are_told_as_they_are_and_never_run(name: str) -> None:
    results = renamed(real(), name)

    text = page(results)
    read = Reader(text)

    assert read.wrong == []
    assert len(read.named("script")) == 2
    assert read.named("img") == []
    assert not any("onerror" in attrs for _tag, attrs in read.tags)
    assert name in read.texts["h1"]
    film = figures(text)["films"][0]
    assert {job[1] for job in film["jobs"]} == {name}
    assert film["nodes"][0] == name


@pytest.mark.parametrize("part", [0.9, 0.5, 0.35])
def test_a_film_loses_every_second_still_until_it_fits(part: float) -> None:
    film = real().runs[0].film
    assert film is not None
    budget = int(part * len(json.dumps(film)))

    small = fit(film, budget)

    assert small is not None
    own = {key: small[key] for key in small.keys() - {*SITE}}
    assert len(json.dumps(own, separators=(",", ":"))) <= budget
    every = round(small["interval_s"] / film["interval_s"])
    assert owners(small) == owners(film)[::every]
    assert all(name in json.dumps(owners(small)) for _, name, _, _ in small["jobs"])


def test_a_page_is_below_two_megabytes_however_large_the_films() -> None:
    rng = np.random.default_rng(7)
    n_nodes, n_jobs = 1_000, 5_000
    owner = rng.integers(0, n_jobs + 1, (240, n_nodes))
    film = {
        "interval_s": 60.0,
        "nodes": [f"node-{n:04}" for n in range(n_nodes)],
        "chips": [8] * n_nodes,
        "groups": [["leaf", "leaf-0"]],
        "group": [0] * n_nodes,
        "jobs": [[n, f"job-{n:04}", 8, 1] for n in range(n_jobs)],
        **packed(Stills(owner, owner % 9, owner * 0)),
    }
    runs = [replace(run, film=film) for run in real().runs]

    text = page(replace(real(), runs=runs))

    assert len(text.encode()) < 2_000_000
    assert [film["stills"] for film in figures(text)["films"]] == [30, 30, 30]


def owners(film: dict[str, Any]) -> list[list[str]]:
    names = ["", *(job[1] for job in film["jobs"])]
    return [[names[i] for i in still] for still in unpacked(film).owner]


def test_a_film_that_cannot_be_small_is_left_out() -> None:
    assert films_of(real(), 300) == []


def test_a_page_without_films_and_rows_over_time_says_so() -> None:
    text = page(Results([plain_run("ringleaf", use={"utilisation": 0.5})]))

    read = Reader(text)
    assert read.wrong == []
    assert "No run was filmed." in text


def test_many_policies_are_drawn_and_some_are_hidden_at_first() -> None:
    run = real().runs[0]
    runs = [replace(run, spec=replace(run.spec, policy=f"p{n}")) for n in range(12)]

    text = page(Results(runs, reference="p0"))
    read = Reader(text)

    assert figures(text)["hidden"] == [*range(5, 12)]
    pressed = [a["aria-pressed"] for a in read.named("button") if "data-policy" in a]
    assert pressed.count("true") == 2 * 5  # beside the verdict, and above charts
    (table,) = [a for a in read.named("table") if "figures" in str(a.get("class"))]
    assert table["class"] == "figures many"
    assert len(text) < 2_000_000


def test_results_go_through_json_and_back(tmp_path: Path) -> None:
    text = msgspec.json.encode(real())

    write_report(tmp_path / "a.html", msgspec.json.decode(text, type=Results))
    write_report(tmp_path / "b.html", real())

    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_an_empty_film_is_no_film() -> None:
    film = real().runs[0].film
    assert film is not None
    run = replace(real().runs[0], film=film | {"stills": 0})

    assert "No run was filmed." in page(Results([run]))


def wait_runs(*waits: tuple[float, float]) -> Results:
    """Ringleaf and another with a seed for each pair of waits."""
    runs = [
        plain_run(policy, seed, wait_s={"all": {"mean": mean}})
        for seed, pair in enumerate(waits)
        for policy, mean in zip(("ringleaf", "other"), pair, strict=True)
    ]
    return Results(runs, [*compared(runs, "ringleaf")])


def coloured(read: Reader) -> list[str]:
    kinds = [str(attrs.get("class")).split() for _tag, attrs in read.tags]
    return [word for kind in kinds for word in kind if word in ("better", "worse")]


@pytest.mark.parametrize(
    ("waits", "told"),
    [
        (
            [(60.0, 90.0)],
            "With one seed significance is unknown, so nothing is coloured.",
        ),
        ([(60.0, 90.0)] * 2, "The same run for every seed: every policy."),
    ],
)
def test_without_intervals_nothing_is_coloured_and_the_table_says_why(
    waits: list[tuple[float, float]], told: str
) -> None:
    read = Reader(page(wait_runs(*waits)))

    assert told in read.texts["p"]
    assert "interval below" not in read.texts["p"]
    assert coloured(read) == []


def test_what_is_beyond_chance_is_coloured() -> None:
    read = Reader(page(wait_runs((60.0, 600.0), (61.0, 602.0))))

    assert {*coloured(read)} == {"better", "worse"}  # the reference, and the other


def test_one_seed_is_not_called_significant_or_not_anywhere() -> None:
    read = Reader(page(wait_runs((60.0, 90.0))))

    told = "".join(read.texts.values())
    assert told.count("significance unknown") == 1
    assert told.count("significance is unknown") == 1
    assert told.count("unknown") == 2
    for word in ("etter than", "orse than", "is better in", "; is worse in"):
        assert word not in told
    assert "no difference is significant" not in told
    assert "not significant" not in told
    assert "no significant difference" not in told


def test_jobs_that_never_start_have_a_row_of_the_verdict_and_tiles_count_them() -> None:
    def of(policy: str, unstarted: int) -> RunResult:
        return plain_run(
            policy,
            jobs={"unstarted": unstarted},
            wait_s={"all": {"mean": 60.0, "p95": 60.0 + unstarted}},
            pending_s={"all": {"mean": 60.0 + unstarted}},
        )

    runs = [of("ringleaf", 0), of("mine", 120)]
    text = page(Results(runs, [*compared(runs, "ringleaf")]))
    verdict = text[text.index('id="verdict"') : text.index('id="map"')]
    shown, _details, more = verdict.partition("<details><summary>1 more measures")

    assert "<b>Jobs never started</b>" in shown
    assert "<h3>Wait time of all jobs (mean)</h3>" in shown
    assert "<b>Wait time (mean)</b>" not in verdict
    assert "not over the same jobs" in more
    assert "<p>By no measure of those over the same jobs.</p><h3>Not compared" in text
    runs = [of("ringleaf", 0), of("mine", 0)]
    without = page(Results(runs, [*compared(runs, "ringleaf")]))
    assert "<b>Jobs never started</b>" not in without
    assert "<b>Wait time (mean)</b>" in without
    assert "Not compared" not in without


def test_warnings_stand_above_the_verdict() -> None:
    text = page(replace(wait_runs((60.0, 90.0)), warnings=("jobs wait <days>",)))

    warning = '<p class="warning">Jobs wait &lt;days&gt;.</p>'
    assert text.index('id="verdict"') < text.index(warning)
    assert text.index(warning) < text.index('<p class="short">')
    assert 'class="warning"' not in page(wait_runs((60.0, 90.0)))


def test_jobs_that_never_start_are_a_sentence_and_a_table() -> None:
    jobs = {
        "unstarted": 3,
        "smallest_unstarted_chips": 64,
        "largest_unstarted_chips": 128,
        "unstarted_causes": {"rule": 1, "quota": 2},
    }
    runs = [plain_run("ringleaf", jobs={"unstarted": 0}), plain_run("mine", jobs=jobs)]
    read = Reader(page(Results(runs, [*compared(runs, "ringleaf")])))

    assert "Some of the 3 jobs never start. Wait times, completion" in read.texts["p"]
    (head,) = [row for row in read.rows if row[0].startswith("scheduler")]
    row = read.rows[read.rows.index(head) + 1]
    assert [cell.strip() for cell in row] == [
        "mine",
        "3",
        "64 to 128 chips",
        "2 by a quota; 1 by a leaf or ring rule",
    ]


def test_cells_have_the_difference_and_how_many_times_it_is() -> None:
    read = Reader(page(wait_runs((120.0, 648.0))))
    several = Reader(page(wait_runs((60.0, 600.0), (61.0, 602.0))))

    heads = [" ".join(row[0].split()) for row in read.rows]
    assert heads.count("measure difference to ringleaf") == 1
    assert " ".join(read.row("Wait time (mean)")[2].split()) == (
        "10.8 min +8.8 min (5.4x)"
    )
    assert "+9.0 min (9.9x), worse" in several.row("Wait time (mean)")[2]


def test_a_card_says_about_0_of_hardly_anything() -> None:
    runs = [
        plain_run(policy, leaves={"conflicts": value})
        for policy, value in {"ringleaf": 0.0, "a": 0.0012}.items()
    ]

    text = page(Results(runs, [*compared(runs, "ringleaf")]))

    (tile,) = re.findall(r'<div class="tile">(.*?)</div>', text)
    assert "<dt>a</dt><dd>about 0</dd>" in tile


def test_the_maps_open_with_the_reference_and_the_scheduler_in_use() -> None:
    read = Reader(page(real()))

    chosen = [a["value"] for a in read.named("option") if "selected" in a]
    assert chosen == ["0", "1"]
    assert real().baseline == POLICIES[1]


def test_where_the_reference_is_worse_is_a_table() -> None:
    waits = {"ringleaf": 90.0, "a": 60.0, "b": 30.0}
    runs = [plain_run(p, wait_s={"all": {"mean": s}}) for p, s in waits.items()]
    read = Reader(page(Results(runs, [*compared(runs, "ringleaf")])))

    (head,) = [row for row in read.rows if row[-1].startswith("better")]
    assert [cell.strip() for cell in head] == ["measure", "ringleaf", "better"]
    row = read.rows[read.rows.index(head) + 1]
    assert [" ".join(cell.split()) for cell in row] == [
        "Wait time (mean)",
        "90 s",
        "60 s a 30 s b",
    ]
    none = [plain_run("ringleaf"), plain_run("a")]
    more = [plain_run("ringleaf", 1), plain_run("a", 1)]
    title = "Where ringleaf is worse</h3><p>By no measure"
    run = title.replace("worse", "worse in this run")
    assert f"{run}.</p>" in page(Results(none))
    assert f"{title} significantly.</p>" in page(Results([*none, *more]))
    assert "is worse</h3>" not in page(Results([plain_run("ringleaf")]))


def test_tiles_come_first_with_the_scheduler_in_use_the_best_and_the_worst() -> None:
    conflicts = {"ringleaf": 0.0, "a": 0.0, "b": 2.5}
    runs = [
        plain_run(
            policy,
            leaves={"conflicts": value},
            use={"utilisation": 0.8, "effective_utilisation": 0.7 + value / 100},
        )
        for policy, value in conflicts.items()
    ]

    text = page(Results(runs, [*compared(runs, "ringleaf")]))

    tiles = re.findall(r'<div class="tile">(.*?)</div>', text)
    told = [re.sub("<[^>]+>", " ", tile).split() for tile in tiles]
    assert " ".join(told[0]) == ("Spine conflicts 0 tie with a a 0 worst 2.5 b")
    assert " ".join(told[1]) == (
        "Effective utilization 70.0 % tie with a a 70.0 % best baseline 72.5 % b, "
        "+2.5 points"
    )
    assert len(tiles) == 2  # of what is not known there is no tile


def test_rows_of_the_verdict_tell_how_far_the_other_policy_is() -> None:
    text = page(wait_runs((60.0, 90.0), (61.0, 91.6)))

    (said,) = re.findall(r'<div class="said">(.*?)</div>', text)
    told = " ".join(re.sub("<[^>]+>", " ", said).split())
    assert told == "better than other other: 50 % more, significant"


def test_the_page_says_what_is_significant() -> None:
    told = Reader(page(wait_runs((60.0, 90.0), (61.0, 91.6)))).texts["li"]

    assert f"and it is at least the smallest relevant one: {RELEVANT}." in told


def test_a_tie_with_another_than_the_scheduler_in_use_is_none() -> None:
    conflicts = {
        "ringleaf": (2.0, 2.0, 2.0),
        "a": (0.0, 3.0, 2.0),
        "b": (2.0, 2.0, 2.0),
    }
    runs = [
        plain_run(policy, seed, leaves={"conflicts": value})
        for policy, values in conflicts.items()
        for seed, value in enumerate(values)
    ]

    text = page(Results(runs, [*compared(runs, "ringleaf")]))

    (tile,) = re.findall(r'<div class="tile">(.*?)</div>', text)
    told = " ".join(re.sub("<[^>]+>", " ", tile).split())
    assert told == "Spine conflicts 2 not significant a 1.67 17 % less worst 2 b"


def test_what_one_seed_cannot_tell_apart_is_nearly_a_tie() -> None:
    conflicts = {"ringleaf": 2.0, "a": 2.001, "b": 3.0}
    runs = [
        plain_run(policy, 0, leaves={"conflicts": value})
        for policy, value in conflicts.items()
    ]

    text = page(Results(runs, [*compared(runs, "ringleaf")]))

    (tile,) = re.findall(r'<div class="tile">(.*?)</div>', text)
    told = " ".join(re.sub("<[^>]+>", " ", tile).split())
    assert told == "Spine conflicts 2 nearly a tie a 2 nearly the same worst 3 b"


def test_dots_of_the_verdict_have_the_interval_of_the_difference() -> None:
    given = wait_runs((60.0, 600.0), (61.0, 602.0))
    gap = next(e.difference for e in given.comparison if e.policy == "other")
    assert gap is not None
    assert gap.low is not None
    assert gap.high is not None

    (contest,) = figures(page(given))["contests"]

    own, other = contest["groups"][0]["values"]
    assert (own["dot"], own["low"], own["high"]) == (60.5, None, None)
    assert other["dot"] == 601.0
    assert other["low"] == pytest.approx(60.5 + gap.low)
    assert other["high"] == pytest.approx(60.5 + gap.high)
    assert contest["csv"][0] == ["measure", "policy", "mean", "low", "high"]
    assert [row[:3] for row in contest["csv"][1:]] == [
        ["wait_s.all.mean", "ringleaf", 60.5],
        ["wait_s.all.mean", "other", 601.0],
    ]


def test_wait_times_by_size_go_from_p50_to_p95() -> None:
    spread = {"n": 3, "p50": 1.0, "mean": 20.0, "p95": 60.0}
    runs = [plain_run("ringleaf", wait_s={"by_size": {"2-4": spread}})]

    waits = figures(page(Results(runs)))["waits"]

    (group,) = waits["groups"]
    assert (group["title"], group["note"]) == ("2-4", "3 jobs")
    (value,) = group["values"]
    assert (value["low"], value["dot"], value["high"]) == (1.0, 20.0, 60.0)
    assert waits["csv"][1] == ["2-4", "ringleaf", 3.0, 1.0, 20.0, 60.0]


def test_what_nobody_waits_for_is_no_cause() -> None:
    why = {"jobs": {"capacity": {"seconds": 50.0}, "quota": {"seconds": 0.0}}}
    text = page(Results([plain_run("ringleaf", why=why)]))

    keys = text[: text.index('id="figures"')]
    assert "not enough chips free" in keys
    assert "the quota of the queue" not in keys


def test_a_card_that_is_0_for_every_policy_gives_way_to_the_wait_time() -> None:
    waits = {"ringleaf": 60.0, "a": 90.0}
    runs = [
        plain_run(
            policy,
            leaves={"conflicts": 0.0},
            chips={"fragmentation": 0.0},
            wait_s={
                "all": {"mean": wait},
                "by_size": {">256": {"n": 1, "mean": 2 * wait}},
            },
        )
        for policy, wait in waits.items()
    ]

    text = page(Results(runs, [*compared(runs, "ringleaf")]))

    titles = re.findall(r'<div class="tile"><h3>(.*?)</h3>', text)
    assert titles == [
        "Wait time (mean)",
        "Wait time, gangs &gt; 64 chips",
        "Stranded chips",
    ]


def test_differences_are_told_as_precisely_as_they_matter() -> None:
    read = Reader(page(noisy()))

    wait, used, slow = (
        read.row(title)
        for title in ("Wait time (mean)", "Effective utilization", "Slowdown")
    )
    assert "x)" not in wait[2]
    assert used[2].rstrip().endswith("about 0 points")
    assert "1 to 7.73" in slow[1]
    assert "95 % confidence interval below, cut to what is possible" in read.texts["p"]


def noisy() -> Results:
    """Two seeds, whose figures hardly differ between policies."""
    runs = [plain_run(policy, seed) for policy in ("ringleaf", "a") for seed in (0, 1)]
    values = {
        "wait_s.all.mean": (100.0, 104.3),
        "use.effective_utilisation": (0.5, 0.50001),
        "bounded_slowdown.all.mean": (3.0, 3.1),
    }
    found = []
    for key, (own, other) in values.items():
        gap = other - own
        found += [
            Measured(key, "ringleaf", Estimate(own, own - 4.73, own + 4.73, 2)),
            Measured(
                key,
                "a",
                Estimate(other, other - 4.73, other + 4.73, 2),
                Estimate(gap, gap - 0.0001, gap + 0.0001, 2),
            ),
        ]
    return Results(runs, found)
