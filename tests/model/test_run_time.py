"""Names of jobs without their numbers, whatever tenants call them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from ringleaf.model.run_time import MOST_NAME, base_name

ENDS = st.sampled_from(
    [
        *("7", "-17", "²", "٣", "-", "_", ".", "/", " ", "\n", "-x7k2p", "-9f86d08"),
        "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        "abcdefab-cdef-abcd-efab-abcdefabcdef",
    ]
)
NAMES = st.text(max_size=40) | st.lists(ENDS, max_size=8).map("".join)


@pytest.mark.parametrize("name", ["job²", "job٣", "²", "job-²", "x1²"])
def test_digits_of_other_scripts_are_letters_like_others(name: str) -> None:
    assert base_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "train-1b4e28ba-2fa1-11d2-883f-0016d3cca427-3",
        "train-abcdefab-cdef-abcd-efab-abcdefabcdef_17",
        "train1b4e28ba-2fa1-11d2-883f-0016d3cca427",
    ],
)
def test_a_uid_before_a_number_goes_too(name: str) -> None:
    assert base_name(name) == "train"


@pytest.mark.parametrize("piece", ["a", "1-", "-", "1", "x7k2p-", "9f86d081", "²"])
def test_a_name_of_any_length_is_cut_first(piece: str) -> None:
    name = piece * 200_000

    assert base_name(name) == base_name(name[:MOST_NAME])


@settings(max_examples=examples(2000))
@given(NAMES)
def test_what_is_left_of_a_name_begins_it_and_has_no_number(name: str) -> None:
    left = base_name(name)

    assert name.startswith(left)
    assert base_name(left) == left
    assert not left.endswith((*"0123456789-_./ ",))
