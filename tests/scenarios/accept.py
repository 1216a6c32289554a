"""Write what the code answers now into the cases: ``make accept``, then read the diff.

Only the block under ``expect`` is written anew; everything else keeps its layout.
"""

import json
import re
import sys
from collections.abc import Mapping

from tests.scenarios.case import Expected, cases_of, files, outcomes, stem

_BETWEEN = re.compile(r"^---\n", re.MULTILINE)
_EXPECT = re.compile(r"^expect:.*\n(?:(?:[ #].*)?\n)*", re.MULTILINE)


def accepted(text: str) -> str:
    """The text of a file with what its cases answer now under ``expect``."""
    documents = _BETWEEN.split(text)
    found = cases_of("", text)
    written = [
        _rewritten(document, outcomes(case)) if document.strip() else document
        for document, case in zip(documents, found, strict=True)
    ]
    return "---\n".join(written)


def _rewritten(document: str, found: Mapping[str, Expected]) -> str:
    lines = ["expect:", *(line for job in found.items() for line in _lines(*job))]
    block = "\n".join(lines) + "\n"
    if _EXPECT.search(document):
        return _EXPECT.sub(lambda _match: block, document, count=1)
    return document.rstrip("\n") + "\n" + block


def _lines(job: str, expected: Expected) -> list[str]:
    """One job: on one line when it fits, else one line per key."""
    on_one_line = f"  {_flow(job)}: {_flow(expected)}"
    if len(on_one_line) <= 100 and "message" not in expected:
        return [on_one_line]
    pairs = expected.items()
    return [f"  {_flow(job)}:", *(f"    {key}: {_flow(v)}" for key, v in pairs)]


def _flow(value: object) -> str:
    """A value as YAML on one line."""
    if isinstance(value, dict):
        pairs = (f"{_flow(key)}: {_flow(own)}" for key, own in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    plain = re.fullmatch(r"[a-z][A-Za-z0-9/-]*", str(value)) and value not in _WORDS
    return str(value) if plain or isinstance(value, int) else json.dumps(value)


_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
"""Plain words that YAML takes for something else than text."""


def main() -> None:
    """Rewrite every case, and name those that changed."""
    for path in files():
        before = path.read_text()
        after = accepted(before)
        if after != before:
            path.write_text(after)
            sys.stdout.write(f"{stem(path)} changed\n")


if __name__ == "__main__":
    main()
