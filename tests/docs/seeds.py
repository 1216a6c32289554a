"""Checks docs/seeds.md: every line names what is there, and a test that is there.

``make check`` runs it. A line of the page is ``| number | statement | where | test |
state |``. *Where* names symbols below ``ringleaf``, *test* names test functions
(``tests/path.py::name``), golden scenarios (``case file-number``) or all tests of a
decision (``test_d35_*``), *state* is "holds" or the decision that changes it.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Final

from tests.docs.pages import ROOT, table_rows

PAGE: Final = "docs/seeds.md"
COLUMNS: Final = 5
NUMBER: Final = re.compile(r"00[0-4]-\d+")
QUOTED: Final = re.compile(r"`([^`]+)`")
HOLDS: Final = "holds"
TABLES: Final = "policies.rules."


def problems(text: str) -> list[str]:
    """Everything that is wrong with the page, a line each."""
    found: list[str] = []
    numbers: set[str] = set()
    for row in statements(text):
        number, said, where, test, state = row
        if number in numbers:
            found.append(f"{number}: the number stands twice")
        numbers.add(number)
        if not said:
            found.append(f"{number}: no statement")
        symbols, tests = QUOTED.findall(where), QUOTED.findall(test)
        found += [f"{number}: no symbol"] * (not symbols)
        found += [f"{number}: no test"] * (not tests)
        found += [f"{number}: no symbol {s!r}" for s in symbols if not is_symbol(s)]
        found += [f"{number}: no test {t!r}" for t in tests if not is_test(t)]
        found += [f"{number}: {each}" for each in wrong_state(state)]
    return found


def statements(text: str) -> list[list[str]]:
    """The lines of the page with a number."""
    rows = [row for row in table_rows(text) if NUMBER.fullmatch(row[0])]
    assert all(len(row) == COLUMNS for row in rows), [r for r in rows if len(r) != 5]
    return rows


def is_symbol(name: str) -> bool:
    """Whether there is such a thing below ``ringleaf``.

    >>> is_symbol("policies.rules.RING_OF_4"), is_symbol("policies.rules.RING_OF_5")
    (True, False)
    >>> is_symbol("policies.roles.X"), is_symbol("framework.session.Session.decide")
    (False, True)
    """
    try:
        symbol_at(name)
    except LookupError:
        return False
    return True


def symbol_at(name: str) -> object:
    """What has that name below ``ringleaf``; None for a field without a default."""
    parts = name.split(".")
    for at in range(len(parts) - 1, 0, -1):
        try:
            found: object = import_module(f"ringleaf.{'.'.join(parts[:at])}")
        except ModuleNotFoundError:
            continue
        for part in parts[at:]:
            if not hasattr(found, part) and part not in getattr(
                found, "__annotations__", {}
            ):
                raise LookupError(name)
            found = getattr(found, part, None)
        return found
    raise LookupError(name)


def function_at(name: str) -> FunctionType | None:
    """The function of that name, or that of a property.

    None for a class, a field and a table, and for what makes tables when its module is
    imported.

    >>> function_at("model.job.Job.network").__name__
    'network'
    >>> function_at("model.job.Job"), function_at("policies.rules.flat_rule")
    (None, None)
    """
    found = symbol_at(name)
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, cached_property):
        found = found.func
    found = inspect.unwrap(found) if callable(found) else found
    made_before = name.startswith(TABLES)
    return found if isinstance(found, FunctionType) and not made_before else None


def is_test(name: str) -> bool:
    """Whether there is such a test, golden scenario, or any test of a decision."""
    if name.startswith("case "):
        file, _dash, number = name.removeprefix("case ").rpartition("-")
        path = ROOT / "tests/scenarios/cases" / f"{file}.yaml"
        documents = path.read_text().split("\n---\n") if path.is_file() else []
        return number.isdecimal() and 0 < int(number) <= len(documents)
    if name.endswith("*"):
        prefix = name.removesuffix("*")
        return any(each.startswith(prefix) for each in all_tests())
    path_name, _colons, function = name.partition("::")
    path = ROOT / path_name
    return path.is_file() and function in functions_of(path)


@cache
def functions_of(path: Path) -> frozenset[str]:
    """The test functions of a file."""
    return frozenset(
        re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE)
    )


@cache
def all_tests() -> frozenset[str]:
    """The names of all test functions."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return frozenset(name for file in files for name in functions_of(file))


def wrong_state(state: str) -> Iterator[str]:
    """What is wrong with the last column."""
    if state == HOLDS:
        return
    rows = table_rows((ROOT / "docs/decisions.md").read_text())
    listed = {row[0].rpartition(">")[2] for row in rows}  # after its anchor
    named = re.findall(r"D\d+", state)
    if not named:
        yield f"state is {state!r}, want 'holds' or a decision"
    yield from (f"no decision {each}" for each in named if each not in listed)


def main() -> int:
    """Print what is wrong; the exit status."""
    found = problems((ROOT / PAGE).read_text(encoding="utf-8"))
    for line in found:
        print(f"{PAGE}: {line}")  # noqa: T201 - a command
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
