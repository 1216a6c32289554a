"""JSON that is nested too deep for a decoder."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.kube import depth
from ringleaf.kube.depth import MOST_LEVELS, decoded, shallow
from tests.effort import examples

_TEXTS = st.text(alphabet='{}[]"\\,:é a', max_size=8)
_VALUES = st.recursive(
    st.none() | st.integers() | _TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4)
    ),
    max_leaves=40,
)


def cut(value: object, levels: int) -> object:
    """The same by the book: every container that is *levels* deep is 0."""
    if isinstance(value, (dict, list)) and levels == 0:
        return 0
    if isinstance(value, dict):
        return {key: cut(inner, levels - 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [cut(inner, levels - 1) for inner in value]
    return value


@settings(max_examples=examples(400))
@given(
    st.lists(_VALUES, min_size=1, max_size=3),
    st.integers(1, 5),
    st.sampled_from([(",", ":"), (", ", ": ")]),
)
def test_what_is_deeper_is_cut_and_nothing_else(
    values: list[object], levels: int, separators: tuple[str, str]
) -> None:
    lines = [json.dumps(value, separators=separators) for value in values]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(depth, "MOST_LEVELS", levels)
        found = shallow("\n".join(lines).encode())

    assert [json.loads(line) for line in found.split(b"\n")] == [
        cut(value, levels) for value in values
    ]


def test_the_property_cuts_often_enough() -> None:
    deep = ['[[[["}"]]]]', '{"a":{"b":[{"\\\\":"\\"{"}]}}']

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(depth, "MOST_LEVELS", 2)
        found = [shallow(each.encode()) for each in deep]

    assert found == [b"[[0]]", b'{"a":{"b":0}}']


@pytest.mark.parametrize("levels", [900, 9_000, 100_000])
def test_an_object_is_read_however_deep_it_is(levels: int) -> None:
    text = b'{"x":' + levels * b'{"a":' + b"1" + levels * b"}" + b',"name":"n"}'

    found = decoded(msgspec.json.Decoder(dict[str, object]).decode, text)

    assert found["name"] == "n"


def test_what_can_be_decoded_is_left_as_it_is() -> None:
    text = b"[" * (MOST_LEVELS + 1) + b"]" * (MOST_LEVELS + 1)

    assert decoded(bytes, text) == text
    assert shallow(text) == b"[" * MOST_LEVELS + b"0" + b"]" * MOST_LEVELS
    assert shallow(b"{}") == b"{}"
