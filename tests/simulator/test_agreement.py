"""The simulator agrees with a live cluster by construction: the engine decides.

What may be imported is a contract of ``pyproject.toml``, which ``make check`` holds.
"""

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

import ringleaf.simulator
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event
from ringleaf.framework.instruction import Bind, Delete, Evict, Instruction
from ringleaf.framework.state import SchedulerState
from ringleaf.simulator.clock import play
from tests.simulator.trials import PREEMPT, Diary, busy, engine

DECISIONS = {"Bind", "Evict", "Delete", "Report", "Repaired"}


class Heard:
    """An engine, and everything that it heard and said."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.heard: list[tuple[list[Event], float]] = []
        self.said: list[list[Instruction]] = []

    @property
    def view(self) -> SchedulerState:
        return self._inner.view

    def handle_all(self, events: Iterable[Event], now: float) -> list[Instruction]:
        listed = list(events)
        self.heard.append((listed, now))
        self.said.append(self._inner.handle_all(listed, now))
        return self.said[-1]


class Notes(Diary):
    """A diary that has what was said, too."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[Instruction] = []

    def says(self, said: Instruction, now: float) -> None:
        del now
        self.said.append(said)


@pytest.mark.parametrize("conf", [DEFAULT, PREEMPT], ids=["default", "preempt"])
def test_an_engine_that_hears_the_same_says_the_same(conf: Conf) -> None:
    trial = busy(4, 3, under=2, conf=conf, contention=0.3)
    heard, notes = Heard(engine(trial)), Notes()
    play(trial, heard, [notes])

    alone = engine(trial)
    again = [alone.handle_all(events, now) for events, now in heard.heard]

    assert again == heard.said
    assert notes.said == [each for said in again for each in said]
    bound = [each for each in notes.said if isinstance(each, Bind)]
    starts = [line for line in notes.lines if " starts " in line]
    assert len(starts) == len(bound) > 90
    assert any(isinstance(each, Delete | Evict) for each in notes.said)


def test_nothing_in_the_simulator_makes_a_decision() -> None:
    (root,) = ringleaf.simulator.__path__
    found = [
        f"{path.name}:{call.lineno} {call.func.id}"
        for path in sorted(Path(root).rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in DECISIONS
    ]

    assert found == []
