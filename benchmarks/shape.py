"""How large the core is: lines, long files, large classes, names that exist twice.

``python benchmarks/shape.py [ROOT]`` counts the packages below *ROOT*/src/ringleaf.
Fields of a class are those that its methods assign to ``self`` and those that it
annotates; structs (msgspec) are values, and are left out.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGES = (
    *("model", "policies", "framework", "plugins", "actions", "engine"),
    *("config", "explain"),
)
MOST_LINES, MOST_METHODS, MOST_FIELDS = 400, 25, 12


def fields_of(node: ast.ClassDef) -> set[str]:
    """The fields of a class, by their names."""
    found = {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            own = isinstance(each.value, ast.Name) and each.value.id == "self"
            found |= {each.attr} if own else set()
    return found


def public_names(module: ast.Module) -> Iterator[str]:
    """Classes, functions and constants of a module that begin with no underscore."""
    for each in module.body:
        names: list[str] = []
        if isinstance(each, ast.ClassDef | ast.FunctionDef):
            names = [each.name]
        elif isinstance(each, ast.AnnAssign):
            names = [each.target.id] if isinstance(each.target, ast.Name) else []
        elif isinstance(each, ast.Assign):
            names = [n.id for n in each.targets if isinstance(n, ast.Name)]
        yield from (name for name in names if not name.startswith("_"))


class Shape(NamedTuple):
    """What was counted; files and classes by the package and their names."""

    lines: int
    n_files: int
    long: dict[str, int]
    """Files of too many lines."""
    large: dict[str, str]
    """Classes of too many methods or fields."""
    twice: list[str]
    """Public names that exist in two modules."""


def large_classes(module: ast.Module) -> Iterator[tuple[str, str]]:
    """The classes of a module that are too large; structs are values."""
    for node in ast.walk(module):
        if not isinstance(node, ast.ClassDef) or any(
            isinstance(b, ast.Name) and b.id == "Struct" for b in node.bases
        ):
            continue
        methods = sum(isinstance(each, ast.FunctionDef) for each in node.body)
        fields = len(fields_of(node))
        if methods > MOST_METHODS or fields > MOST_FIELDS:
            yield node.name, f"{methods} methods, {fields} fields"


def shape_of(root: Path) -> Shape:
    """Count the core below *root*."""
    base = root / "src" / "ringleaf"
    texts = {
        str(file.relative_to(base)): file.read_text()
        for name in PACKAGES
        for file in sorted((base / name).glob("*.py"))
    }
    modules = {file: ast.parse(text) for file, text in texts.items()}
    where: dict[str, set[str]] = defaultdict(set)
    for file, module in modules.items():
        for name in public_names(module):
            where[name].add(file)
    lines = {file: len(text.splitlines()) for file, text in texts.items()}
    return Shape(
        sum(lines.values()),
        len(texts),
        {file: n for file, n in lines.items() if n > MOST_LINES},
        {k: v for module in modules.values() for k, v in large_classes(module)},
        sorted(name for name, files in where.items() if len(files) > 1),
    )


def main(root: Path) -> None:
    """Print the counts."""
    found = shape_of(root)
    print(f"{found.lines:,} lines in {found.n_files} files")
    long = [f"{file} ({n})" for file, n in found.long.items()]
    large = [f"{name} ({why})" for name, why in found.large.items()]
    for title, listed in (
        (f"files over {MOST_LINES} lines", long),
        (f"classes over {MOST_METHODS} methods or {MOST_FIELDS} fields", large),
        ("public names that exist twice", found.twice),
    ):
        print(f"{len(listed)} {title}: {', '.join(sorted(listed))}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
