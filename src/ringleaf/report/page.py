"""One HTML file that tells what was simulated and what it comes to.

It needs nothing else: styles, script and figures are in it, and its own policy of
content forbids it to load anything. The script draws charts and maps; ``web`` has it,
a module a file.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from ringleaf.report import figures
from ringleaf.report.chart import axis_of
from ringleaf.report.contest import ComparisonOutcome, Contest, contest_of
from ringleaf.report.duration import format_duration
from ringleaf.report.measures import (
    ALL_JOBS,
    NONE,
    Better,
    MeasureTable,
    brief,
    listed,
    measure_of,
    number,
    share,
    tick,
)
from ringleaf.report.results import Results, RunResult
from ringleaf.report.scene import films_of
from ringleaf.report.table import table_of
from ringleaf.report.unstarted import unstarted
from ringleaf.report.verdict import (
    MAIN,
    SIGNIFICANT,
    Loss,
    Uncompared,
    VerdictSentence,
    alike,
    findings,
    has_one_seed,
    how_counted,
    losses,
    not_compared,
    notes_on,
    side_of,
    summary,
)

MOST_LINES: Final = 5
"""Policies that charts show at first; the others are a click away."""

USUAL_ORDER: Final = "as the plugins decide"
"""What is said of runs without an order of their own."""

POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:"
)
SCRIPTS: Final = (
    "tools.js",
    "linechart.js",
    "rangechart.js",
    "barchart.js",
    "clustermap.js",
    "report.js",
)
"""The modules of the script, those that others need first."""

PARTS: Final = {
    "verdict": "Verdict",
    "map": "Map",
    "time": "Over time",
    "waiting": "Wait time",
    "table": "All measures",
    "simulated": "Set-up",
}
"""The sections, and what links to them are called."""


def write_report(path: Path, results: Results) -> None:
    """Write the page of *results* to *path*."""
    path.write_text(page(results), encoding="utf-8")


def page(results: Results) -> str:
    """The page of *results*, which has at least one run."""
    assert results.runs
    data = _data(results)
    sections = [
        *_verdict(results),
        *_map(results, data.get("films", ())),
        *_over_time(results, data["lines"]),
        *_waiting(data),
        *_section("table", "All measures", *table_of(results)),
        *_simulated(results),
    ]
    script = "".join(_part(name) for name in SCRIPTS)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(results.title)}</title>",
            f"<style>\n{_part('page.css')}</style>",
            "</head>",
            "<body>",
            *_header(results),
            f"<main>\n{chr(10).join(sections)}\n</main>",
            *_footer(results),
            f'<script type="application/json" id="figures">{_json(data)}</script>',
            f'<script>\n"use strict";\n(() => {{\n{script}}})();\n</script>',
            "</body>",
            "</html>",
            "",
        ]
    )


def _part(name: str) -> str:
    return (files("ringleaf.report") / "web" / name).read_text(encoding="utf-8")


def _data(results: Results) -> dict[str, Any]:
    """What the script reads."""
    policies, table = results.policies, MeasureTable(results)
    axis = axis_of([results.of(policy)[0] for policy in policies])
    found = {
        "policies": policies,
        "reference": 0,
        "hidden": list(range(MOST_LINES, len(policies))),
        "end": axis.end,
        "warm": axis.warm,
        "last": axis.last,
        "lines": figures.lines_of(results, axis),
        "waits": figures.waits_of(results),
        "causes": figures.causes_of(results),
        "contests": [figures.contest_plain(table, each) for each in contests(table)],
    }
    films = films_of(results)
    return found | {"films": films} if films else found


def _json(data: Mapping[str, Any]) -> str:
    """JSON that can stand in a page, whatever the names in it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _header(results: Results) -> Iterator[str]:
    yield '<header><a class="skip" href="#verdict">Skip to the verdict</a>'
    yield '<div class="top">'
    yield f'<div><h1>{escape(results.title)}</h1><p class="lead">'
    yield f"{escape(summary(results))}</p></div>"
    yield '<button id="theme" type="button" aria-label="Light or dark">Dark</button>'
    yield "</div>"
    links = "".join(f'<a href="#{key}">{name}</a>' for key, name in PARTS.items())
    yield f'<nav aria-label="Parts of this page">{links}</nav></header>'


def _section(key: str, title: str, *parts: str) -> Iterator[str]:
    yield f'<section id="{key}" aria-labelledby="{key}-title" tabindex="-1">'
    yield f'<h2 id="{key}-title">{escape(title)}</h2>'
    yield from parts
    yield "</section>"


def _figure(title: str, unit: str, caption: str, data: str, more: str = "") -> str:
    """A chart that the script draws, with its tools."""
    small = f" <small>{escape(unit)}</small>" if unit else ""
    return (
        f'<figure class="chart" {data}><div class="head"><h3>{escape(title)}{small}'
        f'</h3><span class="tools"></span></div>{more}<div class="plot"></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


NO_SCRIPT: Final = (
    "<noscript><p>Charts and maps need JavaScript; the page loads nothing. All figures "
    'are in <a href="#table">the table</a>.</p></noscript>'
)


# The verdict.


class Tile(Struct, frozen=True):
    """A figure that stands first, by the first of its measures that is known."""

    title: str
    keys: tuple[str, ...]


TILES: Final = (
    Tile("Spine conflicts", ("leaves.conflicts", "superpods.split_blocks")),
    Tile("Wait time, gangs > 64 chips", ("wait_s.by_size.>64.mean", "wait_s.all.mean")),
    Tile("Effective utilization", ("use.effective_utilisation",)),
    Tile("Stranded chips", ("chips.fragmentation",)),
)
INSTEAD: Final = "wait_s.all.mean"
"""The measure of a card whose own measures are 0 for every policy."""
MORE: Final = (
    "wait_s.all.p95",
    "wait_s.by_size.1.mean",
    "bounded_slowdown.all.mean",
    "chips.ring_violations_per_1000_pods",
    "superpods.split_blocks",
    "faults.chip_hours_lost_to_faults",
    "faults.recovery_s.mean",
)
"""Rows of the verdict that are a click away."""


def contests(table: MeasureTable) -> list[Contest]:
    """The rows of the verdict."""
    known = map(table.compared, (*MAIN, *MORE))
    keys = [key for key in known if table.tells(measure_of(key))]
    found = [contest_of(table, key) for key in keys]
    return [each for each in found if each is not None]


def _verdict(results: Results) -> Iterator[str]:
    table = MeasureTable(results)
    told = findings(results)
    short = [each for each in told if each.head == "In short"]
    against = [each for each in told if each.head.startswith("Against ")]
    known = contests(table)
    heads = {each.measure.title for each in known} | {"In short"}
    rest = [e for e in told if e not in against and e.head not in heads]
    yield from _section(
        "verdict",
        "Verdict",
        "".join(map(_warning, results.warnings)),
        "".join(f'<p class="short">{escape(each.text)}</p>' for each in short),
        _never_started(table),
        f'<div class="tiles">{"".join(_tiles(table))}</div>',
        NO_SCRIPT,
        *_rows(results, known),
        _worse(results),
        f'<ul class="findings">{"".join(map(_finding, rest))}</ul>',
        _policy_by_policy(against),
    )


def _warning(text: str) -> str:
    return f'<p class="warning">{escape(text[:1].upper() + text[1:])}.</p>'


def _never_started(table: MeasureTable) -> str:
    """Which jobs never start, as a sentence and a table; empty of none."""
    results = table.results
    if not table.unstarted:
        return ""
    seeds = " (means over seeds)" if len(results.of(results.reference)) > 1 else ""
    head = (
        f"Some of the {results.runs[0].spec.jobs:,} jobs never start{seeds}. "
        f"{' '.join((how_counted(table), *notes_on(results)))}"
    )
    rows = ""
    for policy in table.unstarted:
        found = unstarted([run.metrics for run in results.of(policy)])
        if found is not None:
            causes = found.causes.removeprefix(":").strip()
            rows += (
                f"<tr><th scope='row'>{escape(policy)}</th>"
                f"<td>{number(found.jobs)}</td>"
                f"<td>{escape(found.sizes) or NONE}</td>"
                f"<td>{escape(causes) or NONE}</td></tr>"
            )
    return (
        f'<p class="short">{escape(head)}</p><table class="losses never"><thead><tr>'
        '<th scope="col">scheduler</th><th scope="col">never start</th>'
        '<th scope="col">size</th><th scope="col">held back</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _tiles(table: MeasureTable) -> Iterator[str]:
    """The cards; for one measure that is 0 for every policy the mean wait time."""
    reference = table.results.reference
    chosen = []
    for tile in TILES:
        known = map(table.compared, tile.keys)
        keys = [key for key in known if table.value(key, reference) is not None]
        chosen += [(tile, key) for key in keys[:1]]
    instead = table.compared(INSTEAD)
    is_free = table.tells(measure_of(instead)) and all(k != instead for _t, k in chosen)
    for tile, key in chosen:
        if is_free and not table.tells(measure_of(key)):
            key, is_free = instead, False  # noqa: PLW2901 - another measure
        yield _tile(table, tile, key)


def _tile(table: MeasureTable, tile: Tile, key: str) -> str:
    reference = table.results.reference
    measure = measure_of(key)
    title = tile.title if key == tile.keys[0] else measure.title
    own, contest = table.value(key, reference), contest_of(table, key)
    assert own is not None
    one = has_one_seed(table.results)
    beside = _beside(contest, one_seed=one) if contest is not None else ""
    return (
        f'<div class="tile"><h3>{escape(title)}</h3>'
        f'<p class="big">{escape(brief(own.mean, measure.written))}</p>{beside}</div>'
    )


def _beside(contest: Contest, *, one_seed: bool) -> str:
    """How a contest ends, then the baselines to name."""
    written, known = contest.measure.written, contest.known
    told = ""
    for what, policy in contest.beside:
        gap = contest.gap_to(policy)
        more = ", ".join(filter(None, [policy if what else "", gap]))
        told += f"<dt>{escape(what or policy)}</dt>"
        told += f"<dd>{escape(brief(known[policy], written))}"
        told += f" <small>{escape(more)}</small></dd>" if more else "</dd>"
    return f"{_outcome(contest, one_seed=one_seed)}<dl>{told}</dl>"


def _outcome(contest: Contest, *, one_seed: bool, with_gap: bool = False) -> str:
    """How a contest ends, in a few words; coloured only where it is significant.

    *with_gap* adds how far the rival is from the reference.
    """
    if not contest.of_same_jobs:
        return '<p><span class="badge">not over the same jobs</span></p>'
    even = contest.standing is ComparisonOutcome.EVEN
    if even and contest.rival in contest.tied:
        words = f"tie with {contest.rival}"
        return f'<p><span class="badge">{escape(words)}</span></p>'
    gap = contest.gap_to(contest.rival) if with_gap else ""
    gap = f"{contest.rival}: {gap}" if gap else ""
    if even:
        words = "not significant" if contest.is_sure else "nearly a tie"
        told = f" <small>{escape(gap)}</small>" if gap else ""
        return f'<p><span class="badge">{words}</span>{told}</p>'
    kind = contest.standing.value if contest.is_sure else ""
    how = contest.standing.value
    how = side_of(contest.measure, contest.standing) if one_seed else how
    words = f"{how} than {contest.rival}"
    more = ", ".join(filter(None, [gap, SIGNIFICANT if contest.is_sure else ""]))
    told = f" <small>{escape(more)}</small>" if more else ""
    return f'<p><span class="badge {kind}">{escape(words)}</span>{told}</p>'


def _worse(results: Results) -> str:
    """Where the reference is worse than a baseline, as a table."""
    if not results.baseline:
        return ""
    reference, found = escape(results.reference), losses(results)
    one = has_one_seed(results)
    run = " in this run" if one else ""
    head = f"<h3>Where {reference} is worse{run}</h3>"
    hidden = _not_compared(results)
    if not found:
        how = "" if one else " significantly"
        among = " of those over the same jobs" if hidden else ""
        return f"{head}<p>By no measure{among}{how}.</p>{hidden}"
    return (
        f'{head}<table class="losses"><thead><tr><th scope="col">measure</th>'
        f'<th scope="col">{reference}</th><th scope="col">better</th>'
        "</tr></thead>"
        f"<tbody>{''.join(map(_loss, found))}</tbody></table>{hidden}"
    )


def _not_compared(results: Results) -> str:
    """What every policy comes to by measures that are not compared, as a table."""
    found = not_compared(MeasureTable(results))
    if not found:
        return ""
    reference = escape(results.reference)
    return (
        "<h3>Not compared</h3><p>These measures leave out jobs that never start, so "
        "they are over other jobs: each value is over the jobs that start under the "
        f"policy. Where a baseline is lower, {reference} may be worse.</p>"
        '<table class="losses"><thead><tr><th scope="col">measure</th>'
        f'<th scope="col">{reference}</th><th scope="col">baseline</th>'
        f"</tr></thead><tbody>{''.join(map(_hidden, found))}</tbody></table>"
    )


def _hidden(each: Uncompared) -> str:
    written = each.measure.written
    values = "".join(
        f"<div>{escape(written(value))} <small>{escape(policy)}"
        f"{', lower' if policy in each.lower else ''}</small></div>"
        for policy, value in each.values.items()
    )
    return (
        f"<tr><th scope='row'>{escape(each.measure.title)}</th>"
        f"<td>{escape(written(each.own))}</td><td>{values}</td></tr>"
    )


def _loss(each: Loss) -> str:
    written = each.measure.written
    better = "".join(
        f"<div>{escape(written(value))} <small>{escape(policy)}</small></div>"
        for policy, value in each.better.items()
    )
    how = f"<small>{escape(each.how)}</small>" if each.how else ""
    return (
        f"<tr><th scope='row'>{escape(each.measure.title)}{how}</th>"
        f"<td>{escape(written(each.own))}</td><td>{better}</td></tr>"
    )


def _rows(results: Results, known: Sequence[Contest]) -> Iterator[str]:
    if not known:
        return
    reference = results.reference
    sure = any(
        each.difference is not None and each.difference.low is not None
        for each in results.comparison
    )
    caption = " ".join(
        (
            f"A dot is a policy; the upright line is {reference}.",
            f"A horizontal line is the {tick(results.confidence)} confidence interval "
            f"of the difference to {reference}, paired by seed: where it crosses the "
            "upright line, the difference is not significant."
            if sure
            else alike(results),
            "Axes are logarithmic where values differ by a factor of 100 or more.",
        )
    )
    yield f'<div class="bar">{_legend(results)}<span class="tools"></span></div>'
    one = has_one_seed(results)
    rows = [_contest(i, each, one_seed=one) for i, each in enumerate(known)]
    main = {*MAIN, *ALL_JOBS.values()}
    n_main = sum(each.measure.key in main for each in known)
    yield f'<div class="contests">{"".join(rows[:n_main])}</div>'
    if rows[n_main:]:
        yield f"<details><summary>{len(rows) - n_main} more measures</summary>"
        yield f'<div class="contests">{"".join(rows[n_main:])}</div></details>'
    yield f'<p class="caption">{escape(caption)}</p>'


def _contest(i: int, contest: Contest, *, one_seed: bool) -> str:
    wish = "higher" if contest.measure.better is Better.UP else "lower"
    outcome = _outcome(contest, one_seed=one_seed, with_gap=True)
    return (
        f'<div class="contest" title="{escape(contest.measure.about)}">'
        f"<div><b>{escape(contest.measure.title)}</b>"
        f"<small>{wish} is better</small></div>"
        f'<div data-contest="{i}"></div>'
        f'<div class="said">{outcome}</div></div>'
    )


def _finding(each: VerdictSentence) -> str:
    about = f" <small>{escape(each.about)}</small>" if each.about else ""
    return f"<li><b>{escape(each.head)}</b> {escape(each.text)}{about}</li>"


def _policy_by_policy(against: Sequence[VerdictSentence]) -> str:
    if not against:
        return ""
    told = "".join(map(_finding, against))
    return (
        "<details><summary>Policy by policy</summary>"
        f'<ul class="findings">{told}</ul></details>'
    )


def _legend(results: Results) -> str:
    """A button for every policy; the script draws its line."""
    keys = "".join(
        f'<button type="button" class="key" data-policy="{i}" '
        f'aria-pressed="{"true" if i < MOST_LINES else "false"}">'
        f"{_swatch(i)}{escape(policy)}</button>"
        for i, policy in enumerate(results.policies)
    )
    return f'<div class="legend" role="group" aria-label="Policies shown">{keys}</div>'


COLOURS: Final = 8
"""Colours of policies; the ninth has the first again, with other dashes."""
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 2 2")
"""As ``web/tools.js`` has them."""


def _swatch(i: int) -> str:
    dashes = DASHES[(i + i // COLOURS) % len(DASHES)] if i else ""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<svg class="swatch" viewBox="0 0 30 10" aria-hidden="true"><path '
        f'class="line p{i % COLOURS}{"" if i else " own"}" d="M1 5L29 5"{dashed}/>'
        "</svg>"
    )


# The map.


def _map(results: Results, filmed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    link = '<a id="link" href="#map">Link to this view</a>'
    if not filmed:
        told = f"<p>No run was filmed. {link}</p>"
        yield from _section("map", "Map of the cluster", told)
        return
    policies = results.policies
    n_panels = min(2, len(filmed))
    first = range(n_panels)  # the reference, and the scheduler in use
    panels = "".join(_panel(i, at, filmed, policies) for i, at in enumerate(first))
    controls = (
        '<div class="controls">'
        '<button type="button" id="play" aria-label="Play">Play</button>'
        '<input type="range" id="moment" min="0" max="1" value="0" step="1" '
        'aria-label="Time in the run">'
        f'<output id="clock" for="moment">start</output>{link}</div>'
    )
    caption = (
        "A cell is a node, filled as far as its chips are in use; nodes of a leaf or a "
        "SuperPoD are adjacent. A colour is a gang, the same on both maps; grey is "
        "jobs inside one node. A red frame is a leaf whose links to the spine several "
        "gangs share. Crossed out: a node that is down; red corner: broken chips. "
        "The maps open at the time at which they differ most: in used chips, and in "
        "leaves whose links are shared. Space plays, arrows move."
    )
    yield from _section(
        "map",
        "Map of the cluster over time",
        controls,
        f'<figure><div class="panels n{n_panels}">{panels}</div>'
        f"<figcaption>{caption}</figcaption></figure>",
    )


def _panel(
    i: int, at: int, filmed: Sequence[Mapping[str, Any]], policies: Sequence[str]
) -> str:
    """A map that opens on the film *at* its place."""
    options = "".join(
        f'<option value="{j}"{" selected" if j == at else ""}>'
        f"{escape(policies[film['policy']])}</option>"
        for j, film in enumerate(filmed)
    )
    return (
        f'<div class="panel"><label>Policy <select data-panel="{i}">{options}</select>'
        f'</label><canvas data-panel="{i}" tabindex="0" role="img" '
        f'aria-label="Map of the cluster"></canvas>'
        f'<p class="told" data-panel="{i}" aria-live="polite"></p></div>'
    )


# Charts.


def _over_time(results: Results, lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seed = results.of(results.policies[0])[0].spec.seed
    note = (
        f"<p>One run each, seed {seed}. Grey spans are not counted: the cluster fills "
        "up at first, and empties after the last arrival. Click to move the maps to a "
        "time, drag to zoom.</p>"
    )
    charts = "".join(
        _figure(line["title"], line["unit"], line["about"], f'data-line="{i}"')
        for i, line in enumerate(lines)
    )
    whole = '<button type="button" id="all-time" hidden>Show all time</button>'
    bar = f'<div class="bar sticky">{_legend(results)}{whole}</div>'
    yield from _section(
        "time", "Over time", note, bar, f'<div class="charts">{charts}</div>'
    )


def _waiting(data: Mapping[str, Any]) -> Iterator[str]:
    used = [
        any(values[i] for values in data["causes"]["values"])
        for i in range(len(figures.BLAMES))
    ]
    keys = "".join(
        f'<span><i class="b{i}"></i>{escape(name)}</span>'
        for i, name in enumerate(figures.BLAMES.values())
        if used[i]
    )
    waits = _figure(
        "Wait time by size of job",
        "logarithmic",
        "From submission to start, by the chips of a job. The dot is the mean, the "
        "line goes from p50 to p95; means over seeds. Lower is better. Jobs that never "
        "start are not in it: the verdict counts them.",
        "data-waits",
    )
    causes = _figure(
        "Why jobs wait",
        "pending jobs, mean over time",
        "From the reasons that each scheduler gives and from what is free. Baselines "
        "give fewer reasons than Ringleaf: without one, the oldest pending job counts "
        "as scattered, and the others as behind it; their quota includes admission "
        "(enqueue, overcommit).",
        "data-causes",
        f'<div class="parts">{keys}</div>',
    )
    yield from _section(
        "waiting", "Wait time", f'<div class="charts">{waits}{causes}</div>'
    )


# What was simulated.


def _simulated(results: Results) -> Iterator[str]:
    spec = results.runs[0].spec
    seeds = sorted({run.spec.seed for run in results.runs})
    groups = [f"{spec.leaves:,} leaf switches"] if spec.leaves else []
    if spec.superpods:
        groups.append(f"{spec.superpods:,} SuperPoDs")
    size = listed([f"{spec.nodes:,} nodes", f"{spec.chips:,} chips", *groups])
    orders = dict.fromkeys(run.spec.order or USUAL_ORDER for run in results.runs)
    facts = [
        ("Cluster", spec.site, size),
        ("Workload", f"{spec.workload}, {spec.jobs:,} jobs", spec.about),
        ("Load", share(spec.load),
         "what the jobs ask for, over what the cluster has while they arrive"),
        ("Seeds", ", ".join(map(str, seeds)),
         "every policy has the same jobs at the same times"),
        ("Queue order", ", ".join(orders), "which job is tried first"),
        ("Counted", _window(results.runs[0]),
         "from when a fifth of the jobs has arrived to the last arrival"),
    ]  # fmt: skip
    cards = "".join(
        f"<div><dt>{name}</dt><dd><b>{escape(value)}</b>"
        f"<span>{escape(about)}</span></dd></div>"
        for name, value, about in facts
    )
    notes = dict.fromkeys(note for run in results.runs for note in run.spec.notes)
    told = "".join(f"<li>{escape(note)}</li>" for note in notes)
    titles = {run.spec.policy: run.spec.title for run in results.runs}
    rules = "".join(
        f"<tr><th scope='row'>{_swatch(i)}{escape(policy)}</th>"
        f"<td>{escape(titles[policy]) or NONE}</td></tr>"
        for i, policy in enumerate(results.policies)
    )
    yield from _section(
        "simulated",
        "What was simulated",
        f'<dl class="cards">{cards}</dl>',
        f"<ul>{told}</ul>" if told else "",
        "<h3>Policies</h3>",
        f'<table class="rules"><tbody>{rules}</tbody></table>',
    )


def _window(run: RunResult) -> str:
    window = run.metrics.get("window", {})
    start, stop = window.get("from_s", 0.0), window.get("to_s", 0.0)
    return f"{format_duration(start)} to {format_duration(stop)}"


def _footer(results: Results) -> Iterator[str]:
    yield "<footer>"
    if results.command:
        yield f"<p>Made by <code>{escape(results.command)}</code></p>"
    version = f" {escape(results.version)}" if results.version else ""
    yield (
        f"<p>Ringleaf{version}. Measures are defined in docs/measures.md, baselines in "
        "docs/baselines.md. This file loads nothing from anywhere.</p></footer>"
    )
