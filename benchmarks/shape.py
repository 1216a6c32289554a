"""How large the code is: lines, long files, large classes, names that exist twice.

``python benchmarks/shape.py [ROOT]`` counts the packages below *ROOT*/src/ringleaf: the
core together, each edge, and everything.
Fields of a class are those that its methods assign to ``self`` and those that it
annotates; structs (msgspec) are values, and are left out.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGES = (
    *("model", "policies", "framework", "plugins", "actions", "engine"),
    *("config", "explain"),
)
"""The core."""
EDGES = (
    *("kube", "cli", "simulator", "report", "baselines", "study"),
    *("testbed", "../ringleaf_testbed"),
)
"""Everything else that is there; a package may be missing."""
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
    classes_twice: list[str]
    """Public classes whose names exist in two modules."""


def values_of(module: ast.Module) -> set[str]:
    """The structs of a module and the classes that are made from them: values."""
    found = {"Struct", "NamedTuple"}
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            bases = {each.id for each in node.bases if isinstance(each, ast.Name)}
            found |= {node.name} if bases & found else set()
    return found


def large_classes(module: ast.Module) -> Iterator[tuple[str, str]]:
    """The classes of a module that are too large; values are left out."""
    values = values_of(module)
    for node in ast.walk(module):
        if not isinstance(node, ast.ClassDef) or node.name in values:
            continue
        methods = sum(
            isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            for each in node.body
        )
        fields = len(fields_of(node))
        if methods > MOST_METHODS or fields > MOST_FIELDS:
            yield node.name, f"{methods} methods, {fields} fields"


def public_classes(module: ast.Module) -> Iterator[str]:
    """Classes of a module that begin with no underscore."""
    for each in module.body:
        if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
            yield each.name


def twice(where: dict[str, set[str]]) -> list[str]:
    """Names that are in more than one of their files."""
    return sorted(name for name, files in where.items() if len(files) > 1)


def shape_of(root: Path, packages: Iterable[str] = PACKAGES) -> Shape:
    """Count *packages* below *root*."""
    base = root / "src" / "ringleaf"
    texts = {
        str(file.relative_to(base)): file.read_text()
        for name in packages
        for file in sorted((base / name).rglob("*.py"))
    }
    modules = {file: ast.parse(text) for file, text in texts.items()}
    where: dict[str, set[str]] = defaultdict(set)
    classes: dict[str, set[str]] = defaultdict(set)
    for file, module in modules.items():
        for name in public_names(module):
            where[name].add(file)
        for name in public_classes(module):
            classes[name].add(file)
    lines = {file: len(text.splitlines()) for file, text in texts.items()}
    return Shape(
        sum(lines.values()),
        len(texts),
        {file: n for file, n in lines.items() if n > MOST_LINES},
        {
            f"{file}: {name}": why
            for file, module in modules.items()
            for name, why in large_classes(module)
        },
        twice(where),
        twice(classes),
    )


def show(title: str, found: Shape) -> None:
    """Print the counts of some packages."""
    print(f"{title}: {found.lines:,} lines in {found.n_files} files")
    long = [f"{file} ({n})" for file, n in found.long.items()]
    large = [f"{name} ({why})" for name, why in found.large.items()]
    for what, listed in (
        (f"files over {MOST_LINES} lines", long),
        (f"classes over {MOST_METHODS} methods or {MOST_FIELDS} fields", large),
        ("public names that exist twice", found.twice),
        ("public classes that exist twice", found.classes_twice),
    ):
        print(f"  {len(listed)} {what}: {', '.join(sorted(listed))}")


def main(root: Path) -> None:
    """Print the counts of the core, of each edge, and of everything."""
    show("core", shape_of(root))
    for name in EDGES:
        if (root / "src" / "ringleaf" / name).is_dir():
            show(name, shape_of(root, [name]))
    show("all", shape_of(root, [*PACKAGES, *EDGES]))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
