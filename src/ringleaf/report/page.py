"""One HTML file that tells what was simulated and what it comes to.

It needs nothing else: styles, script, drawings and figures are in it, and its own
policy of content forbids it to load anything.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from ringleaf.report import chart
from ringleaf.report.measures import (
    NONE,
    Better,
    Measure,
    Table,
    duration,
    listed,
    measure_of,
    number,
    share,
    tick,
    value_of,
)
from ringleaf.report.results import Bound, Estimate, Results, Run
from ringleaf.report.scene import films_of
from ringleaf.report.spread import Spread, SpreadChart
from ringleaf.report.stack import StackChart
from ringleaf.report.verdict import (
    Finding,
    Standing,
    alike,
    findings,
    is_sure,
    standing_of,
    summary,
)
from ringleaf.simulator.metrics import SERIES

MOST_LINES: Final = 5
"""Policies whose lines are shown at first; the others are a click away."""
AFTER_ARRIVALS: Final = 1.1
"""How far charts go, by the time in which jobs arrive."""
MANY_TIMES: Final = 3
"""From here on percentages are hard to read."""
SIZES: Final = ("1", "2-4", "5-8", "9-64", "65-256", ">256")

BLAMES: Final = {
    "capacity": "not enough chips free",
    "fragmentation": "enough free, but scattered",
    "rule": "a wiring or network rule",
    "quota": "its queue has its share",
    "order": "others before it",
}
"""Why jobs wait, in words; docs/measures.md defines each."""

USUAL_ORDER: Final = "none named: the configured plugins decide"
"""What is said of runs without an order of their own."""

POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:"
)


def write_report(path: Path, results: Results) -> None:
    """Write the page of *results* to *path*."""
    path.write_text(page(results), encoding="utf-8")


def page(results: Results) -> str:
    """The page of *results*, which has at least one run."""
    assert results.runs
    data: dict[str, Any] = {"policies": results.policies}
    sections = [
        *_simulated(results),
        *_verdict(results),
        *_over_time(results, data),
        *_waiting(results),
        *_reasons(results),
        *_map(results, data),
        *_table(results),
    ]
    shown = "".join(
        f" hide-{i}" for i in range(len(results.policies)) if i >= MOST_LINES
    )
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
            f"<style>\n{_part('page.css')}{_hiding(len(results.policies))}</style>",
            "</head>",
            f'<body class="{shown.strip()}">',
            *_header(results),
            f"<main>\n{chr(10).join(sections)}\n</main>",
            *_footer(results),
            f'<script type="application/json" id="figures">{_json(data)}</script>',
            f"<script>\n{_part('page.js')}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _part(name: str) -> str:
    return (files("ringleaf.report") / name).read_text(encoding="utf-8")


def _json(data: Mapping[str, Any]) -> str:
    """JSON that can stand in a page, whatever the names in it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _hiding(n: int) -> str:
    return "".join(f".hide-{i} .s-{i}{{display:none}}\n" for i in range(n))


def _header(results: Results) -> Iterator[str]:
    yield '<header><a class="skip" href="#verdict">Skip to the verdict</a>'
    yield f"<h1>{escape(results.title)}</h1>"
    yield f'<p class="lead">{escape(summary(results))}</p>'
    yield (
        '<button id="theme" type="button" aria-label="Light or dark">'
        "Light / dark</button>"
    )
    links = (
        ("simulated", "What was simulated"),
        ("verdict", "Verdict"),
        ("time", "Over time"),
        ("waiting", "Waiting"),
        ("reasons", "Why"),
        ("map", "Map"),
        ("table", "Table"),
    )
    listed_links = "".join(f'<a href="#{key}">{words}</a>' for key, words in links)
    yield f'<nav aria-label="Parts of this page">{listed_links}</nav></header>'


def _section(key: str, title: str, *parts: str) -> Iterator[str]:
    yield f'<section id="{key}" aria-labelledby="{key}-title">'
    yield f'<h2 id="{key}-title">{escape(title)}</h2>'
    yield from parts
    yield "</section>"


def _figure(drawing: str, caption: str, more: str = "") -> str:
    return f"<figure>{drawing}<figcaption>{caption}</figcaption>{more}</figure>"


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
        ("Cluster", escape(spec.site), escape(size)),
        ("Workload", f"{escape(spec.workload)}, {spec.jobs:,} jobs",
         escape(spec.about)),
        ("Load", share(spec.load),
         "what the jobs ask for, by what the cluster has while they arrive"),
        ("Seeds", escape(", ".join(map(str, seeds))),
         "every policy had the same jobs at the same times"),
        ("Queue order", escape(", ".join(orders)), "who is looked at first"),
        ("Counted", escape(_window(results.runs[0])),
         "from when a fifth of the jobs has come to the last arrival"),
    ]  # fmt: skip
    cards = "".join(
        f"<div><dt>{name}</dt><dd><b>{value}</b><span>{about}</span></dd></div>"
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
        "<h3>Who placed the jobs</h3>",
        '<div class="scroll"><table class="rules">'
        f"<tbody>{rules}</tbody></table></div>",
    )


def _window(run: Run) -> str:
    window = run.metrics.get("window", {})
    start, stop = window.get("from_s", 0.0), window.get("to_s", 0.0)
    return f"{duration(start)} to {duration(stop)}"


# The verdict.


def _verdict(results: Results) -> Iterator[str]:
    told = findings(results)
    against = [each for each in told if each.head.startswith("Against ")]
    first = [each for each in told if each not in against]
    more = "".join(map(_finding, against))
    details = (
        f"<details><summary>Policy by policy</summary>"
        f'<ul class="findings">{more}</ul></details>'
        if against
        else ""
    )
    yield from _section(
        "verdict",
        "Verdict",
        f'<ul class="findings">{"".join(map(_finding, first))}</ul>',
        details,
    )


_MARKS: Final = {Standing.BETTER: "better", Standing.WORSE: "worse", Standing.EVEN: ""}


def _finding(each: Finding) -> str:
    mark = _MARKS[each.standing]
    kind = f"badge {mark}" if each.is_sure else "badge"
    badge = f'<span class="{kind}">{mark}</span>' if mark else ""
    about = f" <small>{escape(each.about)}</small>" if each.about else ""
    return f"<li><b>{escape(each.head)}</b>{badge} {escape(each.text)}{about}</li>"


# Over time.


def _swatch(i: int) -> str:
    return (
        f'<svg class="swatch" viewBox="0 0 30 10" aria-hidden="true"><path '
        f'class="line {chart.colour_of(i)}{"" if i else " own"}" d="M1 5L29 5"'
        f"{chart.dashes_of(i)}/></svg>"
    )


def _legend(results: Results) -> str:
    keys = "".join(
        f'<button type="button" class="key" data-policy="{i}" '
        f'aria-pressed="{"true" if i < MOST_LINES else "false"}">'
        f"{_swatch(i)}{escape(policy)}</button>"
        for i, policy in enumerate(results.policies)
    )
    return f'<div class="legend" role="group" aria-label="Policies shown">{keys}</div>'


def _keys(results: Results) -> str:
    """What is drawn how, where nothing can be hidden."""
    keys = "".join(
        f"<span>{_swatch(i)}{escape(policy)}</span>"
        for i, policy in enumerate(results.policies)
    )
    return f'<div class="keys">{keys}</div>'


def axis_of(runs: Sequence[Run]) -> chart.Axis:
    """Time as charts show it: all arrivals, and a little after them."""
    window = runs[0].metrics.get("window", {})
    ends = [run.series[-1][0] for run in runs if run.series]
    last = float(window.get("to_s", 0.0)) or max(ends, default=1.0)
    end = min(max(ends, default=last), last * AFTER_ARRIVALS)
    return chart.Axis(end, float(window.get("from_s", 0.0)), last)


_LINES: Final = (
    ("utilisation", "Utilization", "share of all chips", 1.0, tick),
    ("queue_length", "Queue length", "pending jobs", None, number),
    ("waiting_chips", "Queued demand (chips)", "chips that pending jobs ask for", None,
     number),
    ("fragmentation", "Stranded chips",
     "free chips that no usual pod can use, share of all chips", None, tick),
    ("conflicts", "Spine conflicts",
     "jobs that use a leaf's links to the spine beyond the first, over all leaves",
     None, number),
    ("largest_gang_nodes", "Largest schedulable gang",
     "nodes of the largest gang that could start under the network rules", None,
     number),
)  # fmt: skip
"""Column of the rows over time, title, unit, top of the axis, how it is written."""

_CAPTIONS: Final = {
    "utilisation": "How much of the cluster jobs hold. Higher is better, as far as "
    "jobs are not slowed down for it.",
    "queue_length": "Pending jobs. Lower is better.",
    "waiting_chips": "Chips that pending jobs ask for: one gang of 1,024 weighs as "
    "much as 1,024 small jobs.",
    "fragmentation": "Free chips where no usual pod fits. Lower is better.",
    "conflicts": "Gangs that meet on a leaf's links to the spine slow each other "
    "down. Lower is better; 0 is what switch affinity 1.0 promises.",
    "largest_gang_nodes": "The largest job that would start at once if it came now.",
}


def _over_time(results: Results, data: dict[str, Any]) -> Iterator[str]:
    runs = [results.of(policy)[0] for policy in results.policies]
    axis = axis_of(runs)
    seed = runs[0].spec.seed
    data["end"], data["last"] = axis.end, axis.last
    data["charts"] = {}
    figures = []
    for key, title, unit, most, written in _LINES:
        column = SERIES.index(key)
        lines = {
            run.spec.policy: chart.binned(run.series, column, axis.end) for run in runs
        }
        if not any(np.nansum(values) for values in lines.values()):
            continue
        drawn = chart.LineChart(key, title, unit, axis, lines, most, written)
        data["charts"][key] = {
            "share": written is tick,
            "lines": [_rounded(values) for values in lines.values()],
        }
        heading = f"<h3>{title} <small>{escape(unit)}</small></h3>"
        figures.append(heading + _figure(drawn.svg(), escape(_CAPTIONS[key])))
    note = (
        f"<p>One run each, seed {seed}. Grey spans are not counted: the cluster fills "
        "up at first, and empties when no more jobs come. Where lines coincide, the "
        "thick one is below.</p>"
    )
    yield from _section("time", "Over time", note, _legend(results), *figures)


def _rounded(values: chart.Floats) -> list[float | None]:
    return [float(f"{v:.4g}") if np.isfinite(v) else None for v in values.tolist()]


# Waiting.


def mean_of(runs: Iterable[Run], key: str) -> float | None:
    """The mean over runs of a value of their metrics."""
    found = [value_of(run.metrics, key) for run in runs]
    values = [value for value in found if value is not None]
    return sum(values) / len(values) if values else None


def spreads(results: Results) -> dict[tuple[str, str], Spread]:
    """Size and policy -> how long such jobs wait, means over seeds."""
    found = {}
    for policy in results.policies:
        runs = results.of(policy)
        for size in SIZES:
            head = f"wait_s.by_size.{size}"
            n, mean, p95 = (mean_of(runs, f"{head}.{k}") for k in ("n", "mean", "p95"))
            if n and mean is not None and p95 is not None:
                found[size, policy] = Spread(n, mean, p95)
    return found


def _waiting(results: Results) -> Iterator[str]:
    found, policies = spreads(results), results.policies
    sizes = [size for size in SIZES if any(key[0] == size for key in found)]
    drawing = SpreadChart("Waiting by size of job", sizes, policies, found).svg()
    head = "".join(f"<th scope='col'>{escape(p)}</th>" for p in policies)
    rows = "".join(
        f"<tr><th scope='row'>{escape(size)}</th>"
        + "".join(_wait_cell(found.get((size, policy))) for policy in policies)
        + "</tr>"
        for size in sizes
    )
    numbers = (
        "<details><summary>The numbers</summary><div class='scroll'><table>"
        f"<thead><tr><th scope='col'>chips</th>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div></details>"
    )
    caption = (
        "From submission to start, by the chips that a job asks for. The dot is the "
        "mean, the line ends at the 95th percentile; means over seeds. To the left is "
        "better. Jobs that never start are in no dot: the table counts them."
    )
    yield from _section(
        "waiting", "Waiting by size of job", _keys(results),
        _figure(drawing, caption, numbers),
    )  # fmt: skip


def _wait_cell(own: Spread | None) -> str:
    if own is None:
        return f"<td>{NONE}</td>"
    return f"<td>{duration(own.mean)}<small>95 %: {duration(own.p95)}</small></td>"


def blames(results: Results) -> dict[str, dict[str, float]]:
    """Policy -> cause -> jobs that wait for it on average, means over seeds."""
    found = {}
    for policy in results.policies:
        runs = results.of(policy)
        parts = {}
        for blame, words in BLAMES.items():
            values = []
            for run in runs:
                window = run.metrics.get("window", {})
                span = window.get("to_s", 0.0) - window.get("from_s", 0.0)
                seconds = value_of(run.metrics, f"why.jobs.{blame}.seconds") or 0.0
                values.append(seconds / span if span > 0 else 0.0)
            parts[words] = sum(values) / len(values)
        found[policy] = parts
    return found


def _reasons(results: Results) -> Iterator[str]:
    bars = blames(results)
    causes = [
        (i, words)
        for i, words in enumerate(BLAMES.values())
        if any(parts[words] for parts in bars.values())
    ]
    unit = "jobs that wait, on average over time"
    drawing = StackChart("Why jobs waited", unit, bars, number).svg()
    keys = "".join(
        f'<span><i class="b{i}"></i>{escape(words)}</span>' for i, words in causes
    )
    head = "".join(f"<th scope='col'>{escape(p)}</th>" for p in bars)
    rows = "".join(
        f"<tr><th scope='row'>{escape(words)}</th>"
        + "".join(f"<td>{number(parts[words])}</td>" for parts in bars.values())
        + "</tr>"
        for _i, words in causes
    )
    numbers = (
        "<details><summary>The numbers</summary><div class='scroll'><table>"
        f"<thead><tr><th scope='col'>because of</th>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div></details>"
    )
    caption = (
        "What held back the jobs that waited, from what each scheduler said of them "
        "and from what was free. Baselines say less than Ringleaf: what they do not "
        "say counts as scattered for the job that came first, and as others before "
        "it for the rest."
    )
    yield from _section(
        "reasons", "Why jobs waited", f'<div class="parts">{keys}</div>',
        _figure(drawing, caption, numbers),
    )  # fmt: skip


# The map.


def _map(results: Results, data: dict[str, Any]) -> Iterator[str]:
    filmed = films_of(results)
    if not filmed:
        yield from _section("map", "Map of the cluster", "<p>No run was filmed.</p>")
        return
    data["films"] = filmed
    policies = results.policies
    n_panels = min(2, len(filmed))
    first = [0, _most_conflicts(results, filmed)][:n_panels]
    panels = "".join(_panel(i, at, filmed, policies) for i, at in enumerate(first))
    controls = (
        '<div class="controls">'
        '<button type="button" id="play" aria-label="Play">Play</button>'
        '<input type="range" id="moment" min="0" max="1" value="0" step="1" '
        'aria-label="Time in the run">'
        '<output id="clock" for="moment">start</output></div>'
    )
    caption = (
        "Every cell is a node, filled as far as its chips are in use; nodes of a leaf "
        "or a SuperPoD stand together. A colour is a gang, the same on both maps; grey "
        "are jobs inside one node. A leaf is framed in red where two gangs that "
        "cross leaves share its links. Crossed out: a node that is down; a red corner: "
        "chips that are broken. Space plays, arrows move, a cell tells its job."
    )
    yield from _section(
        "map",
        "Map of the cluster over time",
        "<noscript><p>The map needs JavaScript; it loads nothing.</p></noscript>",
        controls,
        f'<figure><div class="panels n{n_panels}">{panels}</div>'
        f"<figcaption>{caption}</figcaption></figure>",
    )


def _most_conflicts(results: Results, filmed: Sequence[Mapping[str, Any]]) -> int:
    """The film to see beside the first: most spine conflicts, else the last."""
    table = Table(results)

    def conflicts(place: int) -> tuple[float, int]:
        policy = results.policies[filmed[place]["policy"]]
        value = table.value("leaves.conflicts", policy)
        return (0.0 if value is None else value.mean), place

    return max(range(1, len(filmed)), key=conflicts, default=0)


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


# The table.


def _table(results: Results) -> Iterator[str]:
    table = Table(results)
    policies = results.policies
    bounds = {bound.measure: bound for bound in results.bounds}
    head = "".join(
        f"<th scope='col'>{_swatch(i)}{escape(p)}</th>" for i, p in enumerate(policies)
    )
    head = f"<th scope='col'>bound</th>{head}" if bounds else head
    rows = []
    for measure in table.measures:
        if not table.tells(measure):
            continue
        cells = "".join(_cell(table, measure, policy) for policy in policies)
        if bounds:
            bound = bounds.get(measure.key)
            limit = (
                f"<td>{NONE}</td>"
                if bound is None
                else f'<td title="{escape(bound.title)}">'
                f"{measure.written(bound.value)}<small>{escape(bound.name)}</small></td>"
            )
            cells = limit + cells
        wish = {Better.UP: "more is better", Better.DOWN: "less is better"}
        about = f"{measure.about} {wish.get(measure.better, '').capitalize()}"
        rows.append(
            f'<tr><th scope="row">{escape(measure.title)}'
            f"<small>{escape(about.strip())}.</small></th>{cells}</tr>"
        )
    idle = [m.noun for m in table.measures if not table.tells(m)]
    silent = f"<p>0 for every policy: {escape(listed(idle))}.</p>" if idle else ""
    told = "".join(
        f"<li><b>{escape(bound.name)}</b>, {escape(_limit(bound))}. "
        f"{escape(bound.title)}</li>"
        for bound in results.bounds
    )
    yield from _section(
        "table",
        "Every policy and bound",
        f"<p>{escape(_read_as(results))}</p>",
        '<div class="scroll box" tabindex="0" role="region" '
        'aria-label="Table of measures">'
        f'<table class="figures"><thead><tr><th scope="col">measure</th>{head}</tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>",
        silent,
        f"<h3>Bounds</h3><ul>{told}</ul>" if told else "",
    )


def _limit(bound: Bound) -> str:
    """Of what a bound is, and its value."""
    measure = measure_of(bound.measure)
    return f"{measure.noun}: {measure.written(bound.value)}"


def _read_as(results: Results) -> str:
    """How the table is read: with intervals and colours only where there are some."""
    reference = results.reference
    if not any(each.value.low is not None for each in results.comparison):
        runs = max(len(results.of(policy)) for policy in results.policies)
        told = f"Means over {runs} seeds" if runs > 1 else "One run each"
        told += f", and the difference to {reference}. "
        return told + (
            alike(results)
            or "With one seed there are no intervals: no difference is significant, "
            "and nothing is coloured."
        )
    return (
        f"Means over seeds, with the {results.confidence:.0%} confidence interval "
        f"below; then the difference to {reference}, paired by seed, with its own. "
        f"Colours mark significant differences. {alike(results)}"
    ).strip()


def _cell(table: Table, measure: Measure, policy: str) -> str:
    value = table.value(measure.key, policy)
    if value is None:
        return f"<td>{NONE}</td>"
    parts = [f"<b>{measure.written(value.mean)}</b>", _interval(measure, value)]
    reference = table.results.reference
    own = table.value(measure.key, reference)
    if policy != reference and own is not None:
        standing = standing_of(table, measure, policy)
        gap = table.difference(measure.key, policy)
        if gap is not None:
            parts.append(_gap(measure, gap))
        if standing in (Standing.BETTER, Standing.WORSE):
            # The reference being better makes the other policy worse.
            word = "worse" if standing is Standing.BETTER else "better"
            sure = is_sure(table, measure.key, policy)
            kind = f' class="{word}"' if sure else ""
            parts.append(f"<small{kind}>{_ratio(own, value)}{word}</small>")
    kind = ' class="own"' if policy == reference else ""
    return f"<td{kind}>{''.join(parts)}</td>"


def _ratio(own: Estimate, value: Estimate) -> str:
    """How much larger or smaller *value* is than *own*."""
    if not own.mean:
        return ""
    ratio = value.mean / own.mean
    if ratio >= MANY_TIMES:
        return f"{ratio:,.1f} times: "
    return f"{100 * (ratio - 1):+.3g} %: "


def _gap(measure: Measure, gap: Estimate) -> str:
    """The difference to the reference, with its interval."""
    if not gap.mean and gap.low == gap.high:
        return "<small>no difference</small>"
    told = f"difference {_signed(measure, gap.mean)}"
    if gap.low is not None and gap.high is not None:
        ends = [_signed(measure, each) for each in (gap.low, gap.high)]
        told += f"</small><small>({' to '.join(ends).replace(' points', '')})"
    elif gap.n > 1:
        told += "</small><small>(the same with every seed)"
    return f"<small>{told}</small>"


def _signed(measure: Measure, value: float) -> str:
    if measure.written is share:
        points = 100 * value
        return f"{points:+.1f} points" if abs(points) >= 1 else f"{points:+.2g} points"
    return f"{'+' if value > 0 else ''}{measure.written(value)}"


def _interval(measure: Measure, value: Estimate) -> str:
    """Where the mean is likely to be; no measure is below 0, no share above 1."""
    if value.low is None or value.high is None:
        return ""
    low, high = max(0.0, value.low), value.high
    if measure.written is share:
        high = min(1.0, high)
    told = [measure.written(each) for each in (low, high)]
    return "" if told[0] == told[1] else f"<small>{' to '.join(told)}</small>"


def _footer(results: Results) -> Iterator[str]:
    yield "<footer>"
    if results.command:
        yield f"<p>Made by <code>{escape(results.command)}</code></p>"
    version = f" {escape(results.version)}" if results.version else ""
    yield (
        f"<p>Ringleaf{version}. Measures are defined in docs/measures.md, baselines in "
        "docs/baselines.md. This file loads nothing from anywhere.</p></footer>"
    )
