"""Text to plain values."""

from typing import Any

import pytest

from ringleaf.simulator.source import (
    MAX_ALIASED,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NUMBER,
    MAX_VALUES,
    BadInput,
    brief,
    documents,
)


def refusal(text: str | bytes) -> str:
    with pytest.raises(BadInput) as caught:
        documents(text if isinstance(text, bytes) else text.encode())
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("a: 1", [{"a": 1}], id="YAML"),
        pytest.param('{"a": 1}', [{"a": 1}], id="JSON"),
        pytest.param(' \n {"a": 1}', [{"a": 1}], id="JSON after spaces"),
        pytest.param("{a: 1, b: [x]}", [{"a": 1, "b": ["x"]}], id="flow style"),
        pytest.param("a: 1\n---\nb: 2", [{"a": 1}, {"b": 2}], id="two documents"),
        pytest.param('{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}], id="JSON lines"),
        pytest.param('{"a": 1}{"b": 2}', [{"a": 1}, {"b": 2}], id="JSON unspaced"),
        pytest.param('{"a": 1}\n---\nb: 2', [{"a": 1}, {"b": 2}], id="JSON, then YAML"),
        pytest.param("---\n---\na: 1\n---\n", [{"a": 1}], id="empty ones do not count"),
        pytest.param("\ufeffa: 1", [{"a": 1}], id="byte order mark"),
        pytest.param('\ufeff{"a": 1}', [{"a": 1}], id="byte order mark, JSON"),
        pytest.param("a: 1\r\nb: 2\r\n", [{"a": 1, "b": 2}], id="Windows lines"),
        pytest.param('["\\ud83d\\ude00"]', [["😀"]], id="a whole pair of surrogates"),
        pytest.param("- 0x1f\n- 1_0\n- -3", [[31, 10, -3]], id="whole numbers"),
        pytest.param("[1.5, .inf, 1e3]", [[1.5, float("inf"), "1e3"]], id="numbers"),
        pytest.param("[yes, False, on]", [[True, False, True]], id="booleans"),
        pytest.param("[~, null, '']", [[None, None, ""]], id="nothing"),
        pytest.param("['1', \"2\", !!str 3]", [["1", "2", "3"]], id="text in quotes"),
        pytest.param("[!!int '3', !!map {}, !!seq []]", [[3, {}, []]], id="plain tags"),
        pytest.param("- 2001-01-01\n- =\n- <<", [["2001-01-01", "=", "<<"]], id="text"),
        pytest.param("a: |\n  x\n  y\n", [{"a": "x\ny\n"}], id="block text"),
        pytest.param("a: &x [1]\nb: *x", [{"a": [1], "b": [1]}], id="alias"),
        pytest.param(
            "[&x {a: 1, b: 2}, {<<: *x, b: 3}]",
            [[{"a": 1, "b": 2}, {"a": 1, "b": 3}]],
            id="merge: own keys win, before",
        ),
        pytest.param(
            "[&x {a: 1}, {a: 3, <<: *x}]",
            [[{"a": 1}, {"a": 3}]],
            id="merge: own keys win, after",
        ),
        pytest.param(
            "[&x {a: 1}, &y {a: 2, b: 2}, {<<: [*x, *y]}]",
            [[{"a": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 2}]],
            id="merge: the first mapping wins",
        ),
        pytest.param(
            "[&x {a: 1}, &y {<<: *x, a: 2}, {<<: *y, a: 3}]",
            [[{"a": 1}, {"a": 2}, {"a": 3}]],
            id="merge of a merge",
        ),
        pytest.param("'<<': {a: 1}", [{"<<": {"a": 1}}], id="no merge in quotes"),
        pytest.param(
            "[&x '<<', {*x : 1}]", [["<<", {"<<": 1}]], id="no merge by an alias"
        ),
    ],
)
def test_what_is_read(text: str, values: list[Any]) -> None:
    assert documents(text.encode()) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            b"a: \xff",
            "byte 3 is 0xff, want UTF-8 text; hint: a scenario is a YAML or JSON file",
            id="no UTF-8",
        ),
        pytest.param(
            "# nothing",
            "no document found, want a scenario; "
            "hint: a scenario has at least the key 'nodes'",
            id="no document",
        ),
        pytest.param(
            "a: [",
            "line 1, column 5: neither YAML nor JSON: "
            "while parsing a flow node did not find expected node content",
            id="not YAML",
        ),
        pytest.param(
            "a: 1\nb: {\n",
            "line 2, column 5: neither YAML nor JSON: while parsing a flow node "
            "did not find expected node content",
            id="not closed on the last line",
        ),
        pytest.param(
            "a: \x00",
            "neither YAML nor JSON: "
            "the character 0x00, control characters are not allowed",
            id="control character",
        ),
        pytest.param(
            '{"a": 1, "a": 2}',
            "the key 'a' is twice in one mapping",
            id="key twice, JSON",
        ),
        pytest.param(
            "a: 1\nb: 2\na: 3",
            "line 3, column 1: the key 'a' is twice in one mapping",
            id="key twice, YAML",
        ),
        pytest.param(
            "? [a]\n: 1",
            "line 1, column 3: a key is a list or a mapping, want text",
            id="list as a key",
        ),
        pytest.param(
            "a: !!python/name:os.system",
            "line 1, column 4: the tag '!!python/name:os.system', "
            "want values without tags",
            id="tag",
        ),
        pytest.param(
            "a: !mine {}",
            "line 1, column 4: the tag '!mine', want values without tags",
            id="tag of a mapping",
        ),
        pytest.param(
            "a: !!set []",
            "line 1, column 4: the tag '!!set', want values without tags",
            id="tag of a list",
        ),
        pytest.param(
            "a: !!bool x", "line 1, column 4: 'x' is no bool", id="tag that lies"
        ),
        pytest.param(
            "a: *b", "line 1, column 4: the alias 'b' is not defined", id="alias"
        ),
        pytest.param(
            "a: &b [*b]",
            "line 1, column 8: an alias refers to the value that contains it",
            id="alias inside itself",
        ),
        pytest.param(
            "a: {<<: 1}", "line 1, column 9: '<<' merges no mapping", id="bad merge"
        ),
        pytest.param(
            "a: {<<: [{}, 1]}",
            "line 1, column 9: '<<' merges no mapping",
            id="bad merge in a list",
        ),
        pytest.param(
            "a: " + "9" * (MAX_NUMBER + 1),
            "line 1, column 4: 1001 digits, want at most 1000",
            id="long number",
        ),
    ],
)
def test_what_is_refused(text: str | bytes, message: str) -> None:
    assert refusal(text) == message


@pytest.mark.parametrize(
    ("inside", "outside", "message"),
    [
        pytest.param(
            b"0".ljust(MAX_BYTES),
            b"0".ljust(MAX_BYTES + 1),
            "more than 16777216 bytes of text, want fewer",
            id="bytes",
        ),
        pytest.param(
            b"[" * MAX_DEPTH + b"a" + b"]" * MAX_DEPTH,
            b"[" * (MAX_DEPTH + 1) + b"a" + b"]" * (MAX_DEPTH + 1),
            "nested too deeply, want at most 64 levels",
            id="depth",
        ),
        pytest.param(
            b"[" * 500 + b"]" * 500,
            b"[" * 100_000 + b"]" * 100_000,
            "nested too deeply, want at most 64 levels",
            id="depth of JSON, whose reader has its own limit",
        ),
        pytest.param(
            b"[" + b"0," * (MAX_VALUES - 1) + b"0]",
            b"[" + b"0," * MAX_VALUES + b"0]",
            "more than 3000000 values, want fewer; "
            "hint: with 'count', one entry of nodes makes many nodes",
            id="values",
        ),
        pytest.param(
            b"- &a [" + b"0," * 999 + b"]\n" + b"- *a\n" * (MAX_ALIASED // 1000),
            b"- &a [" + b"0," * 999 + b"]\n" + b"- *a\n" * (MAX_ALIASED // 1000 + 1),
            "line 502, column 3: the aliases expand to more than 500000 values",
            id="aliases",
        ),
    ],
)
def test_the_limits_are_where_they_are_said_to_be(
    inside: bytes, outside: bytes, message: str
) -> None:
    documents(inside)

    assert refusal(outside) == message


def test_values_are_counted_in_yaml_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleaf.simulator.source.MAX_VALUES", 20)
    documents(b"- {a: 1, b: 2}\n- [1, 2, 3]\n- x")

    assert refusal("- {a: 1, b: 2}\n- {a: 1, b: 2}\n- [1]").startswith("more than 20")


def test_aliases_count_all_that_they_stand_for() -> None:
    """Each level is ten times the one before it, so the sixth is over the limit."""
    levels = [
        f"- &l{i} [{', '.join([f'*l{i - 1}'] * 10) if i else 'x'}]" for i in range(9)
    ]

    assert refusal("\n".join(levels)).startswith("line 7, ")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (3, "3"),
        ("a\nb", r"'a\nb'"),
        ("x" * 80, "'" + "x" * 58 + "…"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, ...]"),
        ([[[[[1]]]]], "[[[[...]]]]"),
        ({"a": {}}, "{'a': {}}"),
        (10**500, "1" + "0" * 58 + "…"),
    ],
)
def test_values_are_told_briefly(value: object, told: str) -> None:
    assert brief(value) == told
