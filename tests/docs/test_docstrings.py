"""Docstrings describe arguments that exist."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.docs.pages import ROOT

SECTION: Final = re.compile(r"^Args:\n((?:    .*\n|\n)+)", re.MULTILINE)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def described(node: ast.ClassDef | Function) -> list[str]:
    """The arguments that a docstring describes."""
    found = SECTION.search((ast.get_docstring(node) or "") + "\n")
    return re.findall(r"^    \*?(\w+): ", found[1], re.MULTILINE) if found else []


def arguments(node: ast.ClassDef | Function) -> Iterator[str]:
    """The arguments of a function, or of a class: its fields, too."""
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                yield part.target.id
            elif isinstance(part, ast.FunctionDef) and part.name == "__init__":
                yield from arguments(part)
        return
    own = node.args
    every = [*own.posonlyargs, *own.args, own.vararg, *own.kwonlyargs, own.kwarg]
    yield from (each.arg for each in every if each is not None)


def unknown() -> Iterator[tuple[str, str, str]]:
    """File, class or function, and an argument that it does not have."""
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef | Function):
                known = {*arguments(node)}
                for name in described(node):
                    if name not in known:
                        yield str(file.relative_to(ROOT)), node.name, name


def test_every_argument_that_is_described_exists() -> None:
    assert [*unknown()] == []


def test_there_are_many_such_docstrings() -> None:
    nodes = [
        node
        for file in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ClassDef | Function)
    ]

    assert sum(bool(described(node)) for node in nodes) > 150
