"""The core stays readable: short files, small classes, each public name once."""

from pathlib import Path

from benchmarks.shape import EDGES, PACKAGES, shape_of

LONG = {
    "policies/products.py": "the catalogue: a row for each product",
    "policies/switches.py": "the rules 1.0 and 2.0 are read side by side",
}
"""Files that may be long, and why."""

LARGE = {
    "model/cluster.py: Cluster": "a structure of arrays: the columns of one table",
}
"""Classes that may be large, and why."""

SHAPE = shape_of(Path())


def test_files_of_the_core_are_short_but_for_those_with_a_reason() -> None:
    assert SHAPE.long.keys() == LONG.keys()


def test_classes_of_the_core_are_small_but_for_those_with_a_reason() -> None:
    assert SHAPE.large.keys() == LARGE.keys()


def test_no_public_name_of_the_core_exists_twice() -> None:
    assert SHAPE.twice == []


def test_no_public_class_exists_twice_in_all_of_the_code() -> None:
    assert shape_of(Path(), [*PACKAGES, *EDGES]).classes_twice == []
