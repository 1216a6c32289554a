"""The pages of the documentation, as text and in parts."""

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = tuple(
    path.relative_to(ROOT).as_posix()
    for path in (
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "deploy").rglob("*.md")),
    )
)

_COG: Final = re.compile(r"<!-- \[\[\[cog\n.*?\n\]\]\] -->\n", re.DOTALL)
_FENCE: Final = re.compile(
    r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    body: str


def text_of(page: str) -> str:
    """What a reader sees: the code that makes tables is cut out."""
    return _COG.sub(
        lambda code: "\n" * code[0].count("\n"),
        (ROOT / page).read_text(encoding="utf-8"),
    )


def blocks(language: str) -> list[Block]:
    """The fenced blocks of all pages in one language."""
    return [
        Block(page, text_of(page)[: fence.start()].count("\n") + 1, language, body)
        for page in PAGES
        for fence in _FENCE.finditer(text_of(page))
        if fence["language"] == language
        for body in [fence["body"]]
    ]


def joined(text: str) -> str:
    r"""Commands of several lines, each on one: a backslash ends all but the last.

    >>> joined("$ ls \\\n    -l\na\n")
    '$ ls -l\na\n'
    """
    return re.sub(r" *\\\n *", " ", text)


def prose_of(page: str) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", text_of(page))


def section(page: str, heading: str) -> str:
    """What stands under a heading, subsections included.

    >>> section("docs/benchmarks.md", "Benchmarks").count("Decisions per second")
    1
    """
    text = text_of(page)
    start = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert start is not None, f"{page} has no heading {heading!r}"
    level = len(start[1])
    end = re.search(rf"^#{{1,{level}}} ", text[start.end() :], re.MULTILINE)
    return text[start.end() :][: end.start() if end else None]


def table_rows(text: str) -> list[list[str]]:
    """The cells of every table line, heads and rules included.

    >>> table_rows("| a | b |")
    [['a', 'b']]
    """
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
