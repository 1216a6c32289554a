"""The verdict at the head of the page: sentences, cards, losses."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from msgspec import Struct

from ringleaf.report.contest import ComparisonOutcome, Contest, contest_of
from ringleaf.report.losses import (
    SIGNIFICANT,
    Loss,
    Uncompared,
    alike,
    losses,
    not_compared,
)
from ringleaf.report.measures import (
    ALL_JOBS,
    NONE,
    Better,
    MeasureTable,
    brief,
    measure_of,
    number,
    tick,
)
from ringleaf.report.results import Results
from ringleaf.report.unstarted import unstarted
from ringleaf.report.verdict import MAIN, VerdictSentence, findings, side_of
from ringleaf.report.wait_verdict import has_one_seed, how_counted, notes_on

COLOURS: Final = 8
"""Colours of policies; the ninth has the first again, with other dashes."""
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 2 2")
"""As ``web/tools.js`` has them."""


MOST_LINES: Final = 5
"""Policies that charts show at first; the others are a click away."""
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


def swatch(i: int) -> str:
    """The line by which the charts draw policy *i*."""
    dashes = DASHES[(i + i // COLOURS) % len(DASHES)] if i else ""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<svg class="swatch" viewBox="0 0 30 10" aria-hidden="true"><path '
        f'class="line p{i % COLOURS}{"" if i else " own"}" d="M1 5L29 5"{dashed}/>'
        "</svg>"
    )


def section(key: str, title: str, *parts: str) -> Iterator[str]:
    """A section of the page with its title."""
    yield f'<section id="{key}" aria-labelledby="{key}-title" tabindex="-1">'
    yield f'<h2 id="{key}-title">{escape(title)}</h2>'
    yield from parts
    yield "</section>"


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


def contests(table: MeasureTable) -> list[Contest]:
    """The rows of the verdict."""
    known = map(table.compared, (*MAIN, *MORE))
    keys = [key for key in known if table.tells(measure_of(key))]
    found = [contest_of(table, key) for key in keys]
    return [each for each in found if each is not None]


def legend(results: Results) -> str:
    """A button for every policy; the script draws its line."""
    keys = "".join(
        f'<button type="button" class="key" data-policy="{i}" '
        f'aria-pressed="{"true" if i < MOST_LINES else "false"}">'
        f"{swatch(i)}{escape(policy)}</button>"
        for i, policy in enumerate(results.policies)
    )
    return f'<div class="legend" role="group" aria-label="Policies shown">{keys}</div>'


def verdict_section(results: Results) -> Iterator[str]:
    """The verdict: sentences, cards, losses."""
    table = MeasureTable(results)
    told = findings(results)
    short = [each for each in told if each.head == "In short"]
    against = [each for each in told if each.head.startswith("Against ")]
    known = contests(table)
    heads = {each.measure.title for each in known} | {"In short"}
    rest = [e for e in told if e not in against and e.head not in heads]
    yield from section(
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
        words = "not significant" if contest.has_interval else "nearly a tie"
        told = f" <small>{escape(gap)}</small>" if gap else ""
        return f'<p><span class="badge">{words}</span>{told}</p>'
    kind = contest.standing.value if contest.has_interval else ""
    how = contest.standing.value
    how = side_of(contest.measure, contest.standing) if one_seed else how
    words = f"{how} than {contest.rival}"
    more = ", ".join(filter(None, [gap, SIGNIFICANT if contest.has_interval else ""]))
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
    """The values of measures that are not compared, as a table."""
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
    yield f'<div class="bar">{legend(results)}<span class="tools"></span></div>'
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
