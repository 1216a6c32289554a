"""Checks the fenced blocks of all pages: ``python -m tests.docs.codeblocks``.

``make check`` runs it. Every block says its language. What a block calls of Ringleaf
exists: the command, and every long option. YAML, JSON and Python can be parsed. What
commands print is compared by ``test_transcripts.py``, which runs them.
"""

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from itertools import takewhile
from textwrap import dedent
from typing import Final

import yaml

from ringleaf.cli.command import HELP
from ringleaf.cli.failure import BadUse
from ringleaf.cli.main import find
from tests.docs.pages import PAGES, text_of

FENCE: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_CALL: Final = re.compile(r"^(?:\$ )?(?:kubectl )?ringleaf ([a-z].*)$")
_OPTION: Final = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")


def problems(page: str, text: str) -> Iterator[str]:
    r"""What is wrong with the blocks of a page, a line each.

    >>> page = "```console\n$ ringleaf plan --jsn FILE\n```\n"
    >>> list(problems("a.md", page))
    ["a.md:2: 'ringleaf plan' has no option '--jsn'"]
    """
    for fence in FENCE.finditer(text):
        line = text[: fence.start()].count("\n") + 1
        language, body = fence["language"], fence["body"]
        if not language:
            yield f"{page}:{line}: the block does not say its language"
        yield from (f"{page}:{line}: {each}" for each in unparsed(language, body))
        if language in ("console", "bash", "text"):
            for at, each in typed(body):
                said = wrong_call(each.strip())
                yield from (f"{page}:{line + at}: {each}" for each in said)


def typed(body: str) -> Iterator[tuple[int, str]]:
    r"""The lines with their numbers from 1; a line that ends in a backslash goes on.

    >>> list(typed("a\nb \\\n  c\nd\n"))
    [(1, 'a'), (2, 'b c'), (4, 'd')]
    """
    lines = body.splitlines()
    at = 0
    while at < len(lines):
        first, line = at, lines[at]
        while line.endswith("\\") and at + 1 < len(lines):
            at += 1
            line = f"{line[:-1].rstrip()} {lines[at].lstrip()}"
        at += 1
        yield first + 1, line


def unparsed(language: str, body: str) -> Iterator[str]:
    """Why a block is not what it says it is.

    >>> list(unparsed("json", "{"))[0].partition(":")[0]
    'not json'
    """
    parse = PARSERS.get(language)
    if parse is None:
        return
    try:
        parse(body)
    except (ValueError, SyntaxError, yaml.YAMLError) as error:
        yield f"not {language}: {str(error).splitlines()[0]}"


def python(body: str) -> None:
    """Parse Python, or the input lines of a doctest."""
    typed = re.findall(r"^ *(?:>>>|\.\.\.) ?(.*)$", body, re.MULTILINE)
    ast.parse("\n".join(typed) if typed else dedent(body))


PARSERS: Final[dict[str, Callable[[str], object]]] = {
    "json": json.loads,
    "yaml": lambda body: list(yaml.safe_load_all(body)),
    "python": python,
}


def wrong_call(line: str) -> Iterator[str]:
    """What is wrong with a line that calls Ringleaf.

    >>> list(wrong_call("$ ringleaf plann FILE"))
    ["there is no command 'ringleaf plann FILE'"]
    >>> list(wrong_call("ringleaf topology check FILE --json"))
    []
    """
    call = _CALL.match(line)
    if call is None:
        return
    words = call[1].partition(" | ")[0].split()
    typed = [*takewhile(lambda word: not word.startswith("-"), words)]
    try:
        found, _rest = find(typed)
    except BadUse:
        yield f"there is no command {'ringleaf ' + ' '.join(typed[:2])!r}"
        return
    if isinstance(found, str):
        return
    for option in _OPTION.findall(" ".join(words)):
        if option not in found.by_name and option not in HELP:
            yield f"{'ringleaf ' + found.name!r} has no option {option!r}"


def main() -> int:
    """Print what is wrong; the exit status."""
    found = [each for page in PAGES for each in problems(page, text_of(page))]
    for line in found:
        print(line)  # noqa: T201 - a command
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
