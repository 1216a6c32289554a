"""The report: one HTML file with the inputs and results of simulations.

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

from ringleaf.report import figures
from ringleaf.report.chart import axis_of
from ringleaf.report.duration import format_duration
from ringleaf.report.measures import NONE, MeasureTable, listed, share
from ringleaf.report.results import Results, RunResult
from ringleaf.report.scene import films_of
from ringleaf.report.table import table_of
from ringleaf.report.verdict import summary
from ringleaf.report.verdict_section import (
    MOST_LINES,
    contests,
    legend,
    section,
    swatch,
    verdict_section,
)

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
        *verdict_section(results),
        *_map(results, data.get("films", ())),
        *_over_time(results, data["lines"]),
        *_waiting(data),
        *section("table", "All measures", *table_of(results)),
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


def _figure(title: str, unit: str, caption: str, data: str, more: str = "") -> str:
    """A chart that the script draws, with its tools."""
    small = f" <small>{escape(unit)}</small>" if unit else ""
    return (
        f'<figure class="chart" {data}><div class="head"><h3>{escape(title)}{small}'
        f'</h3><span class="tools"></span></div>{more}<div class="plot"></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


# The map.


def _map(results: Results, filmed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    link = '<a id="link" href="#map">Link to this view</a>'
    if not filmed:
        told = f"<p>No run was filmed. {link}</p>"
        yield from section("map", "Map of the cluster", told)
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
    yield from section(
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
    bar = f'<div class="bar sticky">{legend(results)}{whole}</div>'
    yield from section(
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
    yield from section(
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
        f"<tr><th scope='row'>{swatch(i)}{escape(policy)}</th>"
        f"<td>{escape(titles[policy]) or NONE}</td></tr>"
        for i, policy in enumerate(results.policies)
    )
    yield from section(
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
