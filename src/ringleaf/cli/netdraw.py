"""Leaves drawn by slots and SuperPoDs by blocks, as one job finds them."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Final

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from ringleaf.cli.marks import FAULTY, FREE, HELD, JOB_STYLES, PARTLY, packed
from ringleaf.cli.output import so_many
from ringleaf.explain.netview import (
    LeafRule,
    LeafView,
    NodeState,
    SlotView,
    SuperpodRule,
    SuperpodView,
)
from ringleaf.explain.survey import NetworkView
from ringleaf.model.cluster import Cluster
from ringleaf.model.settings import SwitchMode
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.obstacles import rule_name

CHOSEN, EXCLUDED, RESERVE, BLOCK, OWN = "*", "/", "r", "|", ">"
MAX_NAME: Final = 24
"""Longer names of leaves are cut."""
MAX_SPACED: Final = 44
"""Columns of slots with blanks between them; larger leaves are drawn without."""
BESIDE_BARS: Final = 26
"""Columns of a line before the nodes of a SuperPoD."""
LETTERS: Final = ascii_lowercase.replace(HELD, "").replace(RESERVE, "")

_MARKS: Final[Mapping[NodeState, tuple[str, str]]] = {
    NodeState.FREE: (FREE, ""),
    NodeState.PARTLY_FREE: (PARTLY, "dim"),
    NodeState.TAKEN: (HELD, "dim"),
    NodeState.FAULTY: (FAULTY, "bold red"),
    NodeState.EXCLUDED: (EXCLUDED, "dim"),
}
_WORDS: Final[Mapping[str, str]] = {
    CHOSEN: "this job",
    FREE: "free",
    RESERVE: "free, kept in reserve",
    PARTLY: "partly free",
    HELD: "taken",
    FAULTY: "faulty",
    EXCLUDED: "not for this job",
    BLOCK: "end of a block",
    OWN: "the node is here",
}
_GLOSSARY: Final[Mapping[str, str]] = {
    "complete": "complete: all nodes of the leaf are free",
    "closed": "closed: other jobs cross the leaf, and this one may not cross it too",
    "idle": "idle: no job crosses the leaf",
    "shared": "shared: jobs share its links, each may use a few such leaves",
    "exclusive": "exclusive: one job has its links to itself",
    "unhealthy": "unhealthy: its links carry more than they should",
}


class Focus(Struct, frozen=True):
    """What is pointed out: nodes of the job, and one that is asked about."""

    chosen: Collection[str] = ()
    node: str | None = None
    most: int = 10
    """Leaves or SuperPoDs that are drawn."""


def draw_network(
    console: Console, view: NetworkView, focus: Focus, superpod_of: Mapping[str, int]
) -> None:
    """Draw the leaves or SuperPoDs, and say what the marks mean."""
    if isinstance(view.rule, LeafRule):
        _Leaves(view.rule, view.leaves, focus).print(console)
    elif isinstance(view.rule, SuperpodRule):
        taken = Counter(superpod_of[name] for name in focus.chosen)
        own = None if focus.node is None else superpod_of.get(focus.node)
        _Superpods(view.rule, view.superpods, taken, own).print(console, focus.most)


def superpods_by_node(cluster: Cluster) -> dict[str, int]:
    """Node -> its SuperPoD, for nodes that are in one."""
    numbers = zip(cluster.names, cluster.superpod.tolist(), strict=True)
    return {name: number for name, number in numbers if number != NOWHERE}


def _print_title(console: Console, rule: str, needs: str, units: str) -> None:
    """The rule, what the job needs, and how many leaves or SuperPoDs are drawn."""
    text = f"{rule}: {needs}; {units}"
    console.print(Text(f"\n{text[0].upper()}{text[1:]}"))


def _units(n_shown: int, n_all: int, one: str, several: str) -> str:
    """How many of them are drawn.

    >>> _units(1, 1, "leaf", "leaves"), _units(2, 4, "leaf", "leaves")
    ('1 leaf', '2 of 4 leaves, most free first')
    """
    if n_shown < n_all:
        return f"{n_shown} of {n_all} {several}, most free first"
    return so_many(n_all, one, several)


class _Leaves:
    """Leaves as lines of slots."""

    def __init__(self, rule: LeafRule, views: Sequence[LeafView], focus: Focus) -> None:
        self._rule, self._views, self._focus = rule, views, focus
        self._taken = {
            view.leaf: sum(slot.node in focus.chosen for slot in view.slots)
            for view in views
        }
        self._shown = self._choose()
        jobs = dict.fromkeys(job for view in self._shown for job in view.crossed_by)
        self._letters = dict(zip(jobs, LETTERS, strict=False))
        last = max((s.slot for view in self._shown for s in view.slots), default=0)
        self._size = max(last + 1, rule.leaf_size)
        digits = [len(str(need.free)) for need in rule.slots]
        self._cell_width = max(len(str(self._size - 1)), *digits, 1)
        self._spaced = self._size * (self._cell_width + 1) <= MAX_SPACED
        names = [_short(view.leaf) for view in self._shown]
        self._indent = max(map(len, [*names, "per slot" * bool(self._needs), "leaf"]))

    @property
    def _needs(self) -> bool:
        """Whether the slots are counted: there are enough nodes, but not everywhere."""
        rule = self._rule
        enough = rule.fitting_in_open_leaves >= rule.needed
        return self._spaced and enough and bool(rule.slots) and not self._focus.chosen

    def _choose(self) -> list[LeafView]:
        """The leaves that are drawn: that of the node, those of the job, then others.

        Where all are drawn they stay in their order.
        """
        if len(self._views) <= self._focus.most:
            return list(self._views)

        def key(view: LeafView) -> tuple[int, ...]:
            taken = self._taken[view.leaf]
            return (not self._is_own(view), -taken, view.closed, -view.fitting)

        return sorted(self._views, key=key)[: self._focus.most]

    def _is_own(self, view: LeafView) -> bool:
        """Whether it is the leaf of the node that is asked about."""
        return any(slot.node == self._focus.node for slot in view.slots)

    def print(self, console: Console) -> None:
        """A line for every leaf, the slots where they count, and what marks mean."""
        self._print_title(console)
        slots = [Text(str(slot)) for slot in range(self._size)]
        self._width = self._cells(slots).cell_len
        head = self._cells(slots) if self._spaced else Text("slots from 0")
        self._width = max(self._width, head.cell_len)
        self._line(console, "leaf", head, "free", style="bold")
        used: set[str] = set()
        noted: set[str] = set()
        for view in self._shown:
            cells = {slot.slot: self._cell(slot) for slot in view.slots}
            used |= {cell.plain for cell in cells.values()}
            drawn = [cells.get(slot, Text(" ")) for slot in range(self._size)]
            notes = list(self._notes(view))
            noted |= {word for note in notes for word in note.split(", ")}
            name, free = _short(view.leaf), str(view.fitting)
            own = OWN if self._is_own(view) else " "
            used.add(own)
            note = ", ".join(notes)
            self._line(console, name, self._cells(drawn), free, note, mark=own)
        self._print_rest(console)
        if self._needs:
            self._print_needs(console)
        _print_legend(console, used, self._letters)
        for word, meaning in _GLOSSARY.items():
            if word in noted:
                console.print(Text(f"  {meaning}", style="dim"))

    def _print_title(self, console: Console) -> None:
        rule = self._rule
        single = rule.mode is SwitchMode.SINGLE_LAYER
        job = "job" if single else f"{rule.job_type.value} job"
        one = ", all under one leaf" * rule.one_leaf
        needs = f"{job} of {so_many(rule.needed, 'node')}{one}"
        drawn = _units(len(self._shown), len(self._views), "leaf", "leaves")
        _print_title(console, rule_name(rule.mode), needs, drawn)

    def _line(
        self,
        console: Console,
        name: str,
        cells: Text,
        free: str,
        note: str = "",
        *,
        mark: str = " ",
        style: str = "",
    ) -> None:
        line = Text(f"{mark} {name.ljust(self._indent)}  ", style=style)
        line.append_text(cells)
        line.append(f"{' ' * (self._width - cells.cell_len)}  {free:>4}  {note}")
        line.rstrip()
        console.print(line, soft_wrap=True)

    def _cells(self, cells: Sequence[Text]) -> Text:
        """One cell after the other: with blanks between them, or in groups of eight."""
        line = Text()
        for i, cell in enumerate(cells):
            if self._spaced:
                line.append(" " * (i > 0) + " " * (self._cell_width - cell.cell_len))
                line.append_text(cell)
            else:
                line.append(" " * (i > 0 and i % 8 == 0))
                line.append_text(cell[:1])
        return line

    def _cell(self, slot: SlotView) -> Text:
        if slot.node in self._focus.chosen:
            return Text(CHOSEN, style="bold green")
        held = slot.state in {NodeState.TAKEN, NodeState.PARTLY_FREE}
        if held and slot.job in self._letters:
            return Text(self._letters[slot.job], style=self._style(slot.job))
        mark, style = _MARKS[slot.state]
        return Text(mark, style=style)

    def _style(self, job: str) -> str:
        return JOB_STYLES[list(self._letters).index(job) % len(JOB_STYLES)]

    def _notes(self, view: LeafView) -> Iterator[str]:
        """What else is to be known of a leaf."""
        rule = self._rule
        if self._taken[view.leaf]:
            yield f"{self._taken[view.leaf]} for this job"
        if rule.mode is SwitchMode.SPINE_LEAF_2:
            yield view.state
        elif view.complete and not rule.one_leaf:
            yield "complete"
        if view.closed:
            yield "closed"
        named = [self._letters[j] for j in view.crossed_by if j in self._letters]
        if named:
            yield f"crossed by {', '.join(named)}"
        elif view.state == "busy":
            yield "crossed by another job"

    def _print_needs(self, console: Console) -> None:
        """Free nodes of each slot under the open leaves, and those that are needed."""
        needs = self._rule.slots
        short = [need for need in needs if need.free < need.needed]
        free = [
            Text(str(need.free), style="bold red" if need in short else "")
            for need in needs
        ]
        wanted = [Text(str(need.needed)) for need in needs]
        slots = ", ".join(str(need.slot) for need in short)
        note = f"short at slot{'s' * (len(short) > 1)} {slots}" if short else ""
        found = str(sum(need.free for need in needs))
        self._line(console, "per slot", self._cells(free), found)
        total = str(self._rule.needed)
        self._line(console, "needed", self._cells(wanted), total, note)

    def _print_rest(self, console: Console) -> None:
        shown = {view.leaf for view in self._shown}
        rest = [view for view in self._views if view.leaf not in shown]
        if not rest:
            return
        full = sum(not view.fitting for view in rest)
        closed = sum(view.closed for view in rest)
        parts = [f"{full} without a free node"] * bool(full)
        parts += [f"{closed} closed"] * bool(closed)
        more = so_many(len(rest), "more leaf", "more leaves")
        text = ": ".join([more, *[", ".join(parts)] * bool(parts)])
        console.print(Text(f"  … and {text}", style="dim"))


def _print_legend(
    console: Console, used: Collection[str], letters: Mapping[str, str]
) -> None:
    """What the marks mean that were *used*, and the letters of jobs."""
    entries = [Text(f" {mark} {word}") for mark, word in _WORDS.items() if mark in used]
    for place, (job, letter) in enumerate(letters.items()):
        style = JOB_STYLES[place % len(JOB_STYLES)]
        entries.append(Text.assemble(" ", (letter, style), f" job {job}"))
    for line in packed(entries, console.width - 1) if entries else ():
        console.print(Text(" ") + line, soft_wrap=True)


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


class _Superpods:
    """SuperPoDs as lines of nodes: the free ones in blocks, then the others."""

    def __init__(
        self,
        rule: SuperpodRule,
        views: Sequence[SuperpodView],
        taken: Mapping[int, int],
        own: int | None,
    ) -> None:
        self._rule, self._views, self._taken, self._own = rule, views, taken, own

    def print(self, console: Console, most: int) -> None:
        """A line for every SuperPoD, *most* of them at most."""
        shown = list(self._views)
        if len(shown) > most:
            shown = sorted(shown, key=self._weight)[:most]
        self._print_title(console, len(shown))
        bars = [self._bar(view) for view in shown]
        width = max((bar.cell_len for bar in bars), default=0)
        drawn = width <= console.width - BESIDE_BARS
        column = "visit" if self._taken else "blocks"
        head = f"  SuperPoD  free  {column:>6}{'  nodes' * drawn}"
        console.print(Text(head, style="bold"))
        for view, bar in zip(shown, bars, strict=True):
            line = Text(f"{OWN if view.superpod == self._own else ' '} ")
            figure = (view.visited or "") if self._taken else view.blocks
            line.append(f"{view.superpod:<8}  {view.fitting:>4}  {figure:>6}  ")
            line.append_text(bar if drawn else Text())
            line.rstrip()
            console.print(line, soft_wrap=True)
        if len(shown) < len(self._views):
            more = so_many(len(self._views) - len(shown), "more SuperPoD")
            console.print(Text(f"  … and {more}", style="dim"))
        marks = {mark for bar in bars for mark in bar.plain} if drawn else set[str]()
        marks |= {OWN} if self._own in {view.superpod for view in shown} else set()
        _print_legend(console, marks, {})

    def _weight(self, view: SuperpodView) -> tuple[int, ...]:
        taken = self._taken.get(view.superpod, 0)
        return (view.superpod != self._own, -taken, -view.fitting, view.superpod)

    def _print_title(self, console: Console, n_shown: int) -> None:
        rule = self._rule
        blocks, nodes = so_many(rule.blocks, "block"), so_many(rule.block_nodes, "node")
        needs = f"{blocks} of {nodes}, reserve {rule.reserve}"
        drawn = _units(n_shown, len(self._views), "SuperPoD", "SuperPoDs")
        _print_title(console, f"SuperPoD rule, {rule.affinity}", needs, drawn)

    def _bar(self, view: SuperpodView) -> Text:
        """The free nodes of a SuperPoD as blocks, the reserve last; then the others."""
        rule, bar = self._rule, Text()
        chosen = min(self._taken.get(view.superpod, 0), view.fitting)
        reserve = max(chosen, view.fitting - rule.reserve)
        for i in range(view.fitting):
            mark = CHOSEN if i < chosen else FREE if i < reserve else RESERVE
            bar.append(mark, style="bold green" if mark == CHOSEN else "")
            if (i + 1) % rule.block_nodes == 0 and rule.block_nodes > 1:
                bar.append(BLOCK)
        for state, (mark, style) in _MARKS.items():
            if state is not NodeState.FREE:
                bar.append(mark * view.nodes.get(state, 0), style=style)
        return bar
