"""Python in the pages runs, and prints what it says."""

import doctest

import pytest

from tests.docs.pages import Block, blocks


@pytest.mark.parametrize(
    "block", blocks("python"), ids=lambda each: f"{each.page}:{each.line}"
)
def test_the_example_does_what_it_says(block: Block) -> None:
    name = f"{block.page}:{block.line}"
    example = doctest.DocTestParser().get_doctest(block.body, {}, name, block.page, 0)
    lines: list[str] = []

    result = doctest.DocTestRunner().run(example, out=lines.append)

    assert example.examples
    assert result.failed == 0, "".join(lines)


def test_the_tour_has_the_library_example() -> None:
    assert [block.page for block in blocks("python")].count("docs/tour.md") == 1
