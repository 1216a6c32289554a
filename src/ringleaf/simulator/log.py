"""The recorded log of an engine: JSON lines that can be replayed.

The first line is what there was at the beginning; every further line is what happened
at a time and what the engine said. Where an engine has failed and another has followed
it, there is a line as the first one again. The engine is a pure function of what
happened, so playing the log again says the same, byte for byte, or shows where it does
not.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from math import inf
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct

import ringleaf
from ringleaf.config.conf import NO_OTHERS, Conf, Others
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event
from ringleaf.framework.instruction import Instruction
from ringleaf.framework.state import SchedulerState
from ringleaf.model.cluster import Node
from ringleaf.model.decision import Decision
from ringleaf.model.queue import Queue
from ringleaf.model.uplinks import Leaf
from ringleaf.simulator import encode, encode_rules
from ringleaf.simulator.answer import instruction_plain
from ringleaf.simulator.event_context import EventContext
from ringleaf.simulator.events import EventReader
from ringleaf.simulator.fault import read
from ringleaf.simulator.format import LogEntry, SettingsEntry, StepEntry
from ringleaf.simulator.nodes import leaves_of, node_groups, nodes_of
from ringleaf.simulator.plain import whole
from ringleaf.simulator.rules import conf_of, queue_of
from ringleaf.simulator.source import MAX_BYTES, BadInput
from ringleaf.simulator.wanted import wanted_at

Plain = dict[str, Any]

_FORM: Final = 1
_LINE: Final = "a line of a log"
HEAD: Final = "ringleaf-log"
"""The key of a line with which an engine begins: the first one, and any later one."""
_HEAD: Final = f"a mapping with the key '{HEAD}'"
_STEP: Final = "a mapping with at, events and instructions"


class Beginning(Struct, frozen=True):
    """What an engine is made of."""

    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...]
    queues: tuple[Queue, ...]
    conf: Conf

    def engine(self) -> Engine:
        """The engine, before anything happened."""
        return Engine(self.nodes, self.leaves, self.queues, self.conf)


class Recorder:
    """An engine that records its events and instructions.

    It must be there before the engine hears anything.
    """

    def __init__(self, engine: Engine, out: BinaryIO) -> None:
        assert not engine.view.job_states, "the beginning is over"
        self._engine, self._out = engine, out
        self._write(written_head(beginning_of(engine)))

    @property
    def view(self) -> SchedulerState:
        """What the engine knows."""
        return self._engine.view

    @property
    def has_more(self) -> bool:
        """Whether the last call stopped before everything was decided."""
        return self._engine.has_more

    @property
    def admitted(self) -> Sequence[str]:
        """The jobs that the last call let in."""
        return self._engine.admitted

    def explain(self, name: str, *, hints: bool = True) -> Decision:
        """Where a job is, or why it waits; nothing is written down."""
        return self._engine.explain(name, hints=hints)

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """What is to be done after *event*; written down."""
        return self.handle_all([event], now)

    def handle_all(
        self, events: Iterable[Event], now: float, most: float = inf
    ) -> list[Instruction]:
        """What is to be done after *events*; written down."""
        heard = list(events)
        said = self._engine.handle_all(heard, now, most)
        step = {
            "at": whole(now),
            **({} if most == inf else {"most": most}),
            "events": [encode.event(event) for event in heard],
            "instructions": _instructions_plain(self._engine, said),
        }
        self._write(step)
        return said

    def _write(self, line: Plain) -> None:
        self._out.write(msgspec.json.encode(line) + b"\n")


def beginning_of(engine: Engine) -> Beginning:
    """What *engine* was made of; nothing may have happened since."""
    return Beginning(
        nodes=tuple(engine.nodes),
        leaves=engine.leaves,
        queues=tuple(engine.view.queues.values()),
        conf=engine.context.framework.conf,
    )


def _instructions_plain(engine: Engine, said: Iterable[Instruction]) -> list[Plain]:
    return [instruction_plain(engine.view.cluster, each) for each in said]


def written_head(start: Beginning) -> Plain:
    """The first line: a scenario without jobs."""
    return {
        HEAD: _FORM,
        "version": ringleaf.__version__,
        "nodes": [encode.node(node) for node in start.nodes],
        "leaves": encode.leaves(start.leaves),
        "queues": [encode_rules.queue(queue) for queue in start.queues],
        "configuration": encode_rules.configuration(start.conf),
        "settings": encode_rules.settings(start.conf.settings),
    }


class Difference(Struct, frozen=True):
    """Where playing a log says something else, and what; None is nothing at all."""

    line: int
    at: float
    events: Sequence[Plain]
    recorded: Plain | None
    now: Plain | None


class Replay(Struct, frozen=True):
    """What came of playing a log again."""

    version: str
    steps: int
    instructions: int
    difference: Difference | None
    warnings: tuple[str, ...]


def replay(log: BinaryIO, others: Others = NO_OTHERS) -> Replay:
    """Play a log again, up to the first difference; a bad log is one ``BadInput``.

    Its configurations may name plugins of *others*.
    """
    warnings: list[str] = []
    lines = iter(lambda: log.readline(MAX_BYTES + 1), b"")
    numbered = _plain_lines(lines, warnings)
    _number, first = next(numbered, (1, None))
    with _on_line(1):
        head = read_head(first)
        player = _Player(others)
        player.begin(head)
    found = None
    for number, plain in numbered:
        with _on_line(number):
            if isinstance(plain, dict) and HEAD in plain:
                player.begin(read_head(plain))
                continue
            found = player.play(number, plain)
        if found is not None:
            break
    return Replay(head.version, player.steps, player.said, found, tuple(warnings))


class _Player:
    """Plays one step after the other."""

    def __init__(self, others: Others) -> None:
        self._others = others
        self._before = -inf
        self.steps = self.said = 0

    def begin(self, head: LogEntry) -> None:
        """An engine that knows nothing but what *head* says, as after a failure."""
        start, others = read_beginning(head, self._others), self._others
        self._engine = start.engine()
        nodes = {node.name: node for node in start.nodes}
        self._context = EventContext(
            nodes, {}, SettingsEntry(), strict=False, others=others
        )

    def play(self, number: int, plain: object) -> Difference | None:
        """One step; what is said now that was not, or not any more."""
        step = read(plain, StepEntry, _STEP, wanted_at)
        if step.at < self._before:
            raise BadInput(f"at is {step.at:g}, want {self._before:g} or later")
        self._before = step.at
        events = [
            EventReader(self._context, f"events[{i}]", entry, step.at, []).read()
            for i, entry in enumerate(step.events)
        ]
        most = inf if step.most is None else step.most
        said = self._engine.handle_all(events, step.at, most)
        now = _instructions_plain(self._engine, said)
        self.steps += 1
        self.said += len(now)
        for recorded, again in zip_longest(step.instructions, now):
            if msgspec.json.encode(recorded) != msgspec.json.encode(again):
                heard = [encode.event(event) for event in events]
                return Difference(number, step.at, heard, recorded, again)
        return None


def read_head(plain: object) -> LogEntry:
    """The first line of a log."""
    return read(plain, LogEntry, _HEAD, wanted_at)


def read_beginning(head: LogEntry, others: Others = NO_OTHERS) -> Beginning:
    """What the first line says."""
    groups = node_groups("nodes", head.nodes)
    slots = {name: group.entry.slot or 0 for group in groups for name in group.names}
    return Beginning(
        nodes=tuple(node for group in groups for node in nodes_of(group, {}, slots)),
        leaves=tuple(leaves_of(head.leaves)),
        queues=tuple(queue_of(f"queues[{i}]", q) for i, q in enumerate(head.queues)),
        conf=conf_of(
            "configuration",
            head.configuration,
            [("settings", head.settings)],
            [],
            others,
        ),
    )


@contextmanager
def _on_line(number: int) -> Iterator[None]:
    """What is wrong inside is wrong with that line."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"line {number}: {error}") from None


def _plain_lines(
    lines: Iterable[bytes], warnings: list[str]
) -> Iterator[tuple[int, object]]:
    """Every line with its number; a last one that is cut off is only warned of."""
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_BYTES:
            raise BadInput(f"line {number}: more than {MAX_BYTES} bytes, want fewer")
        try:
            plain = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            if number == 1 or line.endswith(b"\n"):
                raise BadInput(f"line {number}: no JSON, want {_LINE}") from None
            warnings.append(f"line {number} is cut off and left out")
            return
        yield number, plain
