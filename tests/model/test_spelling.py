"""Words that are like others."""

import pytest

from ringleaf.model.spelling import MAX_COMPARED, closest, did_you_mean

KNOWN = ("best-fit", "enableJobOrder", "random")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("bestfit", "best-fit"),
        ("enablejoborder", "enableJobOrder"),
        (" RANDOM ", "random"),
        ("zzz", None),
        ("", None),
    ],
)
def test_the_closest_word(word: str, meant: str | None) -> None:
    assert closest(word, KNOWN) == meant


def test_nothing_is_like_no_words() -> None:
    assert closest("random", ()) is None


def test_how_alike_words_are_is_a_choice() -> None:
    assert closest("module-999", ["module"], alike=0.6) == "module"
    assert closest("module-999", ["module"], alike=0.8) is None


def test_a_long_word_is_compared_by_its_beginning() -> None:
    long = "a" * MAX_COMPARED

    assert closest(long + "z" * 10_000, [long]) == long


def test_the_hint_is_one_sentence_or_nothing() -> None:
    assert did_you_mean("randum", KNOWN) == "did you mean 'random'?"
    assert did_you_mean("zzz", KNOWN) == ""
