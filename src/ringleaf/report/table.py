"""Every policy by every measure, as the page's table."""

from collections.abc import Iterator
from html import escape
from typing import Final

from ringleaf.report.contest import ComparisonOutcome, comparison_outcome, has_interval
from ringleaf.report.losses import alike
from ringleaf.report.measures import (
    NONE,
    Better,
    Measure,
    MeasureTable,
    listed,
    measure_of,
    number,
    share,
    tick,
)
from ringleaf.report.results import Estimate, ResourceBound, Results
from ringleaf.report.wait_verdict import has_one_seed

MOST_COLUMNS: Final = 7
"""Policies that stand side by side; more of them flow below each measure."""
ALIKE: Final = 0.05
"""Values that differ by no larger part are no multiple of each other."""
WISHES: Final = {Better.UP: "Higher is better.", Better.DOWN: "Lower is better."}


def table_of(results: Results) -> Iterator[str]:
    """How it is read, the table, what is 0 for every policy, and the bounds."""
    table = MeasureTable(results)
    policies = results.policies
    heads = "".join(f"<th scope='col'>{escape(policy)}</th>" for policy in policies)
    beside = f"difference to {results.reference}" if results.baseline else ""
    below = f"<small>{escape(beside)}</small>" if beside else ""
    if results.bounds:
        heads = f"<th scope='col'>bound</th>{heads}"
    rows = [_row(table, m) for m in table.measures if table.tells(m)]
    kind = "figures many" if len(policies) > MOST_COLUMNS else "figures"
    yield f"<p>{escape(_read_as(results))}</p>"
    yield f'<table class="{kind}"><thead><tr><th scope="col">measure{below}</th>'
    yield f"{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
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


def _row(table: MeasureTable, measure: Measure) -> str:
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


def _bound(measure: Measure, bound: ResourceBound | None) -> str:
    if bound is None:
        return f'<td class="none" data-policy="bound">{NONE}</td>'
    return (
        f'<td data-policy="bound" title="{escape(bound.title)}">'
        f"{measure.written(bound.value)}<small>{escape(bound.name)}</small></td>"
    )


def _limit(bound: ResourceBound) -> str:
    """Of what a bound is, and its value."""
    measure = measure_of(bound.measure)
    return f"{measure.noun}: {measure.written(bound.value)}"


def _read_as(results: Results) -> str:
    """How the table is read: with intervals and colours only where there are some."""
    if not any(each.value.low is not None for each in results.comparison):
        if not has_one_seed(results):
            runs = max(len(results.of(policy)) for policy in results.policies)
            return f"Means over {runs} seeds. {alike(results)}".strip()
        return "With one seed significance is unknown, so nothing is coloured."
    return (
        f"Means over seeds, with the {tick(results.confidence)} confidence interval "
        "below, cut to what is possible; then the difference, paired by seed, with its "
        "own, which is not cut. "
        f"Colours mark significant differences. {alike(results)}"
    ).strip()


def _cell(table: MeasureTable, measure: Measure, policy: str) -> str:
    value = table.value(measure.key, policy)
    name = f'data-policy="{escape(policy)}"'
    if value is None:
        return f'<td class="none" {name}>{NONE}</td>'
    parts = [f"<b>{measure.written(value.mean)}</b>", _interval(measure, value)]
    reference = table.results.reference
    own = table.value(measure.key, reference)
    gap = table.difference(measure.key, policy)
    if policy != reference and own is not None and gap is not None:
        parts += _gap(table, measure, policy, gap)
    kind = ' class="own"' if policy == reference else ""
    return f"<td{kind} {name}>{''.join(parts)}</td>"


def _gap(
    table: MeasureTable, measure: Measure, policy: str, gap: Estimate
) -> Iterator[str]:
    """The difference to the reference, with its interval."""
    if not gap.mean and gap.low == gap.high:
        yield "<small>no difference</small>"
        return
    own = table.value(measure.key, table.results.reference)
    value = table.value(measure.key, policy)
    assert own is not None
    assert value is not None
    told, kind = f"{_signed(measure, gap.mean)}{_ratio(measure, own, value)}", ""
    told = f"about {told}" if told == "0 points" else told
    standing = comparison_outcome(table, measure, policy)
    if (
        standing is not ComparisonOutcome.EVEN
        and standing
        and has_interval(table, measure.key, policy)
    ):
        # The reference being better makes the other policy worse.
        word = "worse" if standing is ComparisonOutcome.BETTER else "better"
        told, kind = f"{told}, {word}", f' class="{word}"'
    yield f"<small{kind}>{told}</small>"
    if gap.low is not None and gap.high is not None:
        ends = [_signed(measure, each) for each in (gap.low, gap.high)]
        if ends[0] == ends[1] == "0 points":
            return
        yield f"<small>({' to '.join(ends).replace(' points', '')})</small>"
    elif gap.n > 1:
        yield "<small>(the same with every seed)</small>"


def _ratio(measure: Measure, own: Estimate, value: Estimate) -> str:
    """How many times *own* the other value is, unless points say so, or hardly more.

    >>> _ratio(measure_of("wait_s.all.mean"), Estimate(120.0), Estimate(648.0))
    ' (5.4x)'
    >>> _ratio(measure_of("wait_s.all.mean"), Estimate(120.0), Estimate(125.0))
    ''
    """
    if measure.written is share or not own.mean:
        return ""
    ratio = value.mean / own.mean
    if abs(ratio - 1) <= ALIKE:
        return ""
    return f" ({number(float(f'{ratio:.2g}'))}x)"


def _signed(measure: Measure, value: float) -> str:
    """A difference with its sign.

    >>> [_signed(measure_of("use.utilisation"), v) for v in (0.0123, -0.0002, -0.004)]
    ['+1.2 points', '0 points', '-0.4 points']
    """
    if measure.written is share:
        points = round(100 * value, 1)
        return f"{points:+.1f} points" if points else "0 points"
    return f"{'+' if value > 0 else ''}{measure.written(value)}"


def _interval(measure: Measure, value: Estimate) -> str:
    """Where the mean is likely to be, as far as that is possible."""
    if value.low is None or value.high is None:
        return ""
    told = [measure.written(each) for each in measure.cut(value.low, value.high)]
    return "" if told[0] == told[1] else f"<small>{' to '.join(told)}</small>"
