"""The pages and the Makefile name the same targets."""

import re

from tests.docs.pages import PAGES, ROOT, text_of

_MENTIONED = re.compile(r"(?:`|^\$ )make ([a-z-]+)", re.MULTILINE)


def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    return set(phony[1].split())


def test_every_target_that_a_page_mentions_exists() -> None:
    mentioned = {name for page in PAGES for name in _MENTIONED.findall(text_of(page))}

    assert mentioned - targets() == set()


def test_every_target_is_told_to_contributors_or_readers() -> None:
    told = {
        name
        for page in ("README.md", "CONTRIBUTING.md")
        for name in _MENTIONED.findall(text_of(page))
    }

    assert targets() - told == set()
