"""The word that a misspelled word was meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

ALIKE: Final = 0.6
"""How alike two words are, from 0 to 1, for one to be meant by the other."""
MAX_COMPARED: Final = 100
"""Letters of a word that are compared: the time grows with their square."""


def closest(word: str, known: Iterable[str], alike: float = ALIKE) -> str | None:
    """The known word that is most like *word*, in whatever case, if one is.

    >>> closest("Bestfit", ["best-fit", "random"]), closest("x", ["best-fit"])
    ('best-fit', None)
    """
    by_lower = {each.lower(): each for each in known}
    given = word[:MAX_COMPARED].strip().lower()
    found = get_close_matches(given, by_lower, n=1, cutoff=alike)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], alike: float = ALIKE) -> str:
    """A hint that asks for the known word that is most like *word*; else nothing.

    >>> did_you_mean("bestfit", ["best-fit"]), did_you_mean("x", ["best-fit"])
    ("did you mean 'best-fit'?", '')
    """
    found = closest(word, known, alike)
    return f"did you mean {found!r}?" if found else ""
