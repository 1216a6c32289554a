"""Change every hand-written table entry, one at a time, and see a test fail.

``make mutate`` runs it. A mutant is the source of one module with one literal changed,
one element of a tuple, set or mapping dropped, or two neighbours of a tuple swapped.
Each runs in a forked process that imports the mutant in place of the module; it is
killed when the tests fail. Survivors are listed and the exit status is 1.
"""

import ast
import copy
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import hypothesis  # noqa: F401 - imported once here, not once per mutant
import msgspec  # noqa: F401
import numpy as np  # noqa: F401
import pytest
import rich.table  # noqa: F401
import yaml  # noqa: F401
from rich.console import Console
from rich.progress import track

ROOT = Path(__file__).parent.parent

# Module -> the tests that are tried first, then the rest that knows the tables.
TABLES = {
    "ringleaf.policies.rules": ["tests/policies/test_rules.py"],
    "ringleaf.policies.products": ["tests/policies/test_products.py"],
    "ringleaf.model.decision": ["tests/policies/test_words.py"],
    "ringleaf.policies.words": ["tests/policies/test_words.py"],
    "ringleaf.simulator.running_jobs": ["tests/simulator/test_running_jobs.py"],
    "ringleaf.simulator.wanted": ["tests/simulator/test_scenario.py"],
}
THEN = ["tests/policies", "tests/scenarios", "tests/properties/test_exhaustive.py"]

# Of modules that are not all tables: the names whose values are.
ONLY = {
    "ringleaf.policies.products": {
        "ASCEND_910",
        "ASCEND_310",
        "ASCEND_310P",
        "NPU",
        "SPINE_LEAF_1",
        "SPINE_LEAF_2",
        "SINGLE_LAYER",
        "EVEN_UP_TO_14",
        "_ROWS",
    },
    "ringleaf.model.decision": {"Reason"},
    "ringleaf.policies.words": {"SAME_EVERYWHERE"},
    "ringleaf.simulator.running_jobs": {
        "CROSSED_BY",
        "RANK",
        "BLOCK",
        "STATE",
        "HEALTH",
    },
    "ringleaf.simulator.wanted": {"WANTED", "ELEMENT_WANTED"},
}


TERMS = {"POSITION", "WHOLE", "SPARE", "LEFT"}


@dataclass(frozen=True)
class Mutant:
    """One module's source with one change."""

    module: str
    line: int
    change: str
    source: str


def mutants(module: str) -> Iterator[Mutant]:
    """Every change of the tables of *module*."""
    path = ROOT / "src" / Path(*module.split(".")).with_suffix(".py")
    tree = ast.parse(path.read_text())
    tables = list(_tables(tree, ONLY.get(module)))
    for number, node in enumerate(tables):
        for change, new in _changes(node):
            altered = copy.deepcopy(tree)
            _replace(altered, list(_tables(altered, ONLY.get(module)))[number], new)
            source = ast.unparse(ast.fix_missing_locations(altered))
            yield Mutant(module, getattr(node, "lineno", 0), change, source)


def _tables(tree: ast.Module, only: set[str] | None) -> Iterator[ast.AST]:
    """What may change: values of tables and bodies of rules, no docstrings."""
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        if only is not None and not _names(statement) & only:
            continue
        for node in ast.walk(statement):
            yield from _inside(node)


def _names(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case ast.ClassDef(name=name):
            return {name}
    return set()


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of *node* worth changing; annotations and docstrings are not."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        if isinstance(node, ast.Subscript | ast.FormattedValue | ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Constant | ast.Tuple | ast.Set | ast.Dict):
                if not isinstance(node, ast.Expr):
                    yield child
            elif isinstance(child, ast.Call):
                yield child


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Constant(value=bool(value)):
            yield f"{value} -> {not value}", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield f"{value} -> {value + 1}", ast.Constant(value + 1)
        case ast.Constant(value=str(value)) if value:
            yield f"{value!r} -> {value + '?'!r}", ast.Constant(value + "?")
        case ast.Tuple() | ast.Set() if len(node.elts) > 1:
            yield from _fewer(node)
        case ast.Dict() if len(node.keys) > 1:
            yield from _fewer_keys(node)
        case ast.Call():
            yield from _fewer_terms(node)


def _fewer(node: ast.Tuple | ast.Set) -> Iterator[tuple[str, ast.AST]]:
    parts = node.elts
    for i, part in enumerate(parts):
        new = copy.copy(node)
        new.elts = parts[:i] + parts[i + 1 :]
        yield f"without {ast.unparse(part)[:40]}", new
    if isinstance(node, ast.Tuple):
        for i in range(len(parts) - 1):
            swapped = [*parts[:i], parts[i + 1], parts[i], *parts[i + 2 :]]
            if ast.dump(parts[i]) != ast.dump(parts[i + 1]):
                yield f"swapped at {i}", ast.Tuple(swapped, node.ctx)


def _fewer_keys(node: ast.Dict) -> Iterator[tuple[str, ast.AST]]:
    keys, values = node.keys, node.values
    for i, key in enumerate(keys):
        shown = ast.unparse(key) if key else "**"
        new = ast.Dict(keys[:i] + keys[i + 1 :], values[:i] + values[i + 1 :])
        yield f"without {shown}", new


def _fewer_terms(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    for i, part in enumerate(node.args):
        if isinstance(part, ast.Name) and part.id in TERMS:
            new = copy.copy(node)
            new.args = node.args[:i] + node.args[i + 1 :]
            yield f"without {part.id}", new


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if value is old:
                setattr(node, name, new)
                return
            if isinstance(value, list):
                for i, child in enumerate(value):
                    if child is old:
                        value[i] = new
                        return


class _Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the mutant's source under the module's name."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, name: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if name != self._mutant.module:
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._mutant.source, module.__name__, "exec"), vars(module))  # noqa: S102


def survives(mutant: Mutant) -> bool:
    """Whether all tests pass with *mutant* in place of its module."""
    return all(_passes(mutant, tests) for tests in (TABLES[mutant.module], THEN))


def _passes(mutant: Mutant, tests: list[str]) -> bool:
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        sys.meta_path.insert(0, _Instead(mutant))
        status = 1
        try:
            plain = [
                "-p",
                "no:cacheprovider",
                "-o",
                "addopts=",
                "-o",
                "filterwarnings=",
            ]
            status = int(pytest.main(["-x", "-q", *plain, *tests]))
        finally:
            os._exit(status)
    _child, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


def main() -> int:
    """Try every mutant, two at a time; print the survivors."""
    os.chdir(ROOT)
    console = Console(stderr=True)
    every = [mutant for module in TABLES for mutant in mutants(module)]
    plain = (ROOT / "src/ringleaf/policies/rules.py").read_text()
    if not survives(Mutant("ringleaf.policies.rules", 0, "none", plain)):
        console.print("the tests fail without any change; nothing to learn here")
        return 2
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = track(
            pool.map(survives, every), "mutating", len(every), console=console
        )
        left = [m for m, alive in zip(every, results, strict=True) if alive]
    for mutant in left:
        print(f"survived: {mutant.module}:{mutant.line}: {mutant.change}")  # noqa: T201
    print(f"{len(every) - len(left)} of {len(every)} mutants killed")  # noqa: T201
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
