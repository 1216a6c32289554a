"""The pages and the Makefile name the same targets."""

import re
import subprocess

import pytest

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


@pytest.mark.parametrize("python", ["/bin/false", "no-such-python"])
def test_a_python_that_does_not_run_is_refused_in_one_line(python: str) -> None:
    told = subprocess.run(  # noqa: S603 - our own Makefile
        ("make", "--no-print-directory", f"PYTHON={python}", "demo"),  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode == 2
    line = f"make: {python} is not Python 3.11 or later; hint: make PYTHON="
    assert told.stderr.splitlines()[0].startswith(line), told.stderr
