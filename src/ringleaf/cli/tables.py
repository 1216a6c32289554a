"""Tables of policies: a row for each policy, and no wider than the terminal."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.cli.output import print_trimmed
from ringleaf.report import measures
from ringleaf.report.contest import ComparisonOutcome, comparison_outcome, has_interval
from ringleaf.report.losses import alike
from ringleaf.report.measures import Measure
from ringleaf.report.results import Estimate, Results
from ringleaf.report.wait_verdict import left_out

PAD: Final = 2
"""Columns between columns."""
MARKS: Final = {"green": "*", "red": "!"}
"""What stands before a value in place of its colour."""
BOUND: Final = "bound"
TWO: Final = 2
"""Policies or seeds of which there must be so many to compare."""


def print_tables(
    console: Console, results: Results, groups: Sequence[Sequence[str]]
) -> None:
    """Print a table for each group of measures, and how to read the colours.

    Measures that are 0 for every policy are named in one line instead.
    """
    found = measures.MeasureTable(results)
    marks = marks_of(console)
    for keys in groups:
        told = [
            measure
            for measure in map(measures.measure_of, keys)
            if _is_known(found, measure) and found.tells(measure)
        ]
        for part in _fitting(found, told, marks, console.width):
            print_trimmed(console, _table(found, part, marks))
            console.print()
    every = [key for keys in groups for key in keys]
    for line in (*_zeros(found, every), *_ties(found, every)):
        print_trimmed(console, line)
    if line := left_out(results):
        print_trimmed(console, line)
    for line in _legend(found, every, marks):
        print_trimmed(console, Text(line, "dim"))


def print_verdict(console: Console, sentences: Sequence[str]) -> None:
    """Print the sentences of a verdict, the first in bold, with a blank line below."""
    for i, sentence in enumerate(sentences):
        print_trimmed(console, Text(sentence, "" if i else "bold"))
    if sentences:
        console.print()


def marks_of(console: Console) -> dict[str, str]:
    """The mark in place of a colour; empty where there are colours."""
    has_colours = console.color_system and not console.no_color
    return dict.fromkeys(MARKS, "") if has_colours else MARKS


def marks_words(
    marks: Mapping[str, str], seen: Collection[str], reference: str, sure: str
) -> str:
    """The meaning of the colours that were *seen*, or of the marks in their place.

    >>> marks_words(MARKS, {"red"}, "ringleaf", "95 %")
    '! worse than ringleaf: significant, 95 %'
    >>> marks_words(MARKS, {""}, "ringleaf", "95 %")
    'no significant difference from ringleaf (95 %)'
    """
    told = [
        f"{mark or colour} {'better' if colour == 'green' else 'worse'}"
        for colour, mark in marks.items()
        if colour in seen
    ]
    if told:
        return f"{', '.join(told)} than {reference}: significant, {sure}"
    return f"no significant difference from {reference} ({sure})"


def _zeros(table: measures.MeasureTable, keys: Sequence[str]) -> Iterator[str]:
    """The measures that are 0 for every policy, in a line."""
    zero = [
        measure.noun
        for measure in map(measures.measure_of, keys)
        if _is_known(table, measure) and not table.tells(measure)
    ]
    if zero:
        yield f"0 for every policy: {measures.listed(zero)}"


def _ties(table: measures.MeasureTable, keys: Sequence[str]) -> Iterator[str]:
    """The policies that tie in every measure, a line for each group of them."""
    alike: dict[tuple[Estimate | None, ...], list[str]] = {}
    for policy in table.results.policies:
        values = tuple(table.value(key, policy) for key in keys)
        alike.setdefault(values, []).append(policy)
    for policies in alike.values():
        if len(policies) > 1:
            yield f"a tie in every measure: {measures.listed(policies)}"


def _is_known(table: measures.MeasureTable, measure: Measure) -> bool:
    return table.value(measure.key, table.results.reference) is not None


def _legend(
    table: measures.MeasureTable, keys: Sequence[str], marks: dict[str, str]
) -> Iterator[str]:
    """What the colours mean that occur; with one seed there are none."""
    results = table.results
    if len(results.policies) < TWO or len(results.of(results.reference)) < TWO:
        return
    seen = {
        colour_of(table, measure, policy)
        for measure in map(measures.measure_of, keys)
        for policy in results.policies
    }
    sure = f"{100 * results.confidence:.0f} %, paired by seed"
    yield marks_words(marks, seen, results.reference, sure)
    if words := alike(results):
        yield words


def _fitting(
    table: measures.MeasureTable,
    told: Sequence[Measure],
    marks: dict[str, str],
    width: int,
) -> Iterator[list[Measure]]:
    """The measures in as many parts as the width wants."""
    names = max(len(name) for name in (*table.results.policies, BOUND))
    part: list[Measure] = []
    left = width - names
    for measure in told:
        wide = PAD + _width(table, measure, marks)
        if wide > left and part:
            yield part
            part, left = [], width - names
        part.append(measure)
        left -= wide
    if part:
        yield part


def _width(
    table: measures.MeasureTable, measure: Measure, marks: dict[str, str]
) -> int:
    """The width of a column: the longest line of its head, or the longest value."""
    cells = [
        len(cell_of(table, measure, policy, marks)) for policy in table.results.policies
    ]
    lines = [len(line) for line in measure.head.splitlines()]
    bounds = [
        len(measure.written(bound.value))
        for bound in table.results.bounds
        if bound.measure == measure.key
    ]
    return max(cells + lines + bounds)


def _table(
    table: measures.MeasureTable, told: Sequence[Measure], marks: dict[str, str]
) -> Table:
    """A row for each policy and one for the bounds, where there are some."""
    results = table.results
    shown = Table(box=None, pad_edge=False, padding=(0, PAD, 0, 0), header_style="dim")
    shown.add_column("", no_wrap=True)
    for measure in told:
        width = _width(table, measure, marks)
        shown.add_column(measure.head, justify="right", width=width, vertical="bottom")
    for policy in results.policies:
        cells = [cell_of(table, measure, policy, marks) for measure in told]
        own = policy == results.reference
        shown.add_row(Text(policy, "bold" if own else ""), *cells)
    best = {bound.measure: bound.value for bound in results.bounds}
    if any(measure.key in best for measure in told):
        limits = [
            measure.written(best[measure.key]) if measure.key in best else ""
            for measure in told
        ]
        shown.add_row(BOUND, *limits, style="dim")
    return shown


def cell_of(
    table: measures.MeasureTable, measure: Measure, policy: str, marks: dict[str, str]
) -> Text:
    """The value of *policy*, coloured where the difference is significant."""
    value = table.value(measure.key, policy)
    if value is None:
        return Text(measures.NONE)
    colour = colour_of(table, measure, policy)
    mark = marks[colour] if colour else ""
    return Text(f"{mark}{measure.written(value.mean)}", colour)


def colour_of(table: measures.MeasureTable, measure: Measure, policy: str) -> str:
    """Green where *policy* is significantly better than the reference, red if worse."""
    if not has_interval(table, measure.key, policy):
        return ""
    standing = comparison_outcome(table, measure, policy)  # of the reference beside it
    if standing is ComparisonOutcome.WORSE:
        return "green"
    return "red" if standing is ComparisonOutcome.BETTER else ""
