"""Every policy by every measure, as the page's table."""

from collections.abc import Iterator
from html import escape
from typing import Final

from ringleaf.report.contest import Standing, is_sure, standing_of
from ringleaf.report.measures import (
    NONE,
    Better,
    Measure,
    Table,
    listed,
    measure_of,
    share,
)
from ringleaf.report.results import Bound, Estimate, Results
from ringleaf.report.verdict import alike, has_one_seed

MANY_TIMES: Final = 3
"""From here on percentages are hard to read."""
MOST_COLUMNS: Final = 7
"""Policies that stand side by side; more of them flow below each measure."""
WISHES: Final = {Better.UP: "Higher is better.", Better.DOWN: "Lower is better."}


def table_of(results: Results) -> Iterator[str]:
    """How it is read, the table, what is 0 for every policy, and the bounds."""
    table = Table(results)
    policies = results.policies
    heads = "".join(f"<th scope='col'>{escape(policy)}</th>" for policy in policies)
    if results.bounds:
        heads = f"<th scope='col'>bound</th>{heads}"
    rows = [_row(table, m) for m in table.measures if table.tells(m)]
    kind = "figures many" if len(policies) > MOST_COLUMNS else "figures"
    yield f"<p>{escape(_read_as(results))}</p>"
    yield f'<table class="{kind}"><thead><tr><th scope="col">measure</th>{heads}</tr>'
    yield f"</thead><tbody>{''.join(rows)}</tbody></table>"
    idle = [m.noun for m in table.measures if not table.tells(m)]
    if idle:
        yield f"<p>0 for every policy: {escape(listed(idle))}.</p>"
    told = "".join(
        f"<li><b>{escape(bound.name)}</b>, {escape(_limit(bound))}. "
        f"{escape(bound.title)}</li>"
        for bound in results.bounds
    )
    if told:
        yield f"<h3>Bounds</h3><ul>{told}</ul>"


def _row(table: Table, measure: Measure) -> str:
    results = table.results
    about = f"{measure.about} {WISHES.get(measure.better, '')}".strip()
    cells = "".join(_cell(table, measure, policy) for policy in results.policies)
    if results.bounds:
        bounds = {bound.measure: bound for bound in results.bounds}
        cells = _bound(measure, bounds.get(measure.key)) + cells
    return (
        f'<tr><th scope="row">{escape(measure.title)}'
        f"<small>{escape(about)}</small></th>{cells}</tr>"
    )


def _bound(measure: Measure, bound: Bound | None) -> str:
    if bound is None:
        return f'<td class="none" data-policy="bound">{NONE}</td>'
    return (
        f'<td data-policy="bound" title="{escape(bound.title)}">'
        f"{measure.written(bound.value)}<small>{escape(bound.name)}</small></td>"
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
        return told + (alike(results) or "Nothing is coloured.")
    return (
        f"Means over seeds, with the {results.confidence:.0%} confidence interval "
        f"below; then the difference to {reference}, paired by seed, with its own. "
        f"Colours mark significant differences. {alike(results)}"
    ).strip()


def _cell(table: Table, measure: Measure, policy: str) -> str:
    value = table.value(measure.key, policy)
    name = f'data-policy="{escape(policy)}"'
    if value is None:
        return f'<td class="none" {name}>{NONE}</td>'
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
            if has_one_seed(table.results):
                word = "lower" if value.mean < own.mean else "higher"
            kind = f' class="{word}"' if sure else ""
            parts.append(f"<small{kind}>{_ratio(own, value)}{word}</small>")
    kind = ' class="own"' if policy == reference else ""
    return f"<td{kind} {name}>{''.join(parts)}</td>"


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
