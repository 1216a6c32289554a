"""Amounts as Kubernetes writes them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.kube.quantity import MOST, BadQuantity, quantity, resources

UNITS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ("0", 0),
        ("4", 4000),
        ("+4", 4000),
        ("500m", 500),
        ("0.5", 500),
        (".5", 500),
        ("5.", 5000),
        ("1.5", 1500),
        ("1.0005", 1001),
        ("-1.0005", -1001),
        ("100n", 1),
        ("-100n", -1),
        ("1000000n", 1),
        ("1500u", 2),
        ("1k", 10**6),
        ("64Gi", 64 * 2**30 * 1000),
        ("1.5Ki", 1536 * 1000),
        ("0.1Ki", 102_400),
        ("1e3", 10**6),
        ("1E3", 10**6),
        ("1e+3", 10**6),
        ("12e-1", 1200),
        ("1e-9", 1),
        ("0e-9", 0),
        ("2E", 2 * 10**21),
        ("1Ei", 2**60 * 1000),
        ("1e400000000", MOST * 1000),
        ("-9999Ei", -MOST * 1000),
        ("1e-400000000", 1),
        (4, 4000),
        (-4, -4000),
        (0.5, 500),
        (1e22, MOST * 1000),
        (1e-7, 1),
    ],
)
def test_an_amount_is_thousandths_rounded_away_from_zero(
    written: str | float, want: int
) -> None:
    assert quantity(written) == want


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "four",
        "1 Gi",
        " 1",
        "1\n",
        "1gi",
        "1ki",
        "1K",
        "1mi",
        "1e",
        "1e1.5",
        "1e1m",
        "1ee1",
        ".",
        "-",
        "+-1",
        "1.2.3",
        "0x10",
        "1_000",
        "\u0661",
        "1" * 101,
        "nan",
        float("nan"),
        float("inf"),
        True,
    ],
)
def test_what_is_no_amount_is_refused_in_one_line(written: str | float) -> None:
    with pytest.raises(BadQuantity, match="want an amount such as") as refused:
        quantity(written)

    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


def test_what_was_read_before_does_not_excuse_what_is_no_amount() -> None:
    """True equals 1.0, and both would share an entry of an untyped cache."""
    quantity(1.0)

    with pytest.raises(BadQuantity):
        quantity(True)  # noqa: FBT003


@given(
    st.from_regex(r"\A[+-]?[0-9]{1,12}(\.[0-9]{0,12})?\Z"),
    st.sampled_from(sorted(UNITS)) | st.integers(-12, 12),
)
def test_an_amount_is_what_fractions_say(number: str, unit: str | int) -> None:
    written = f"{number}e{unit}" if isinstance(unit, int) else number + unit
    factor = Fraction(10) ** unit if isinstance(unit, int) else UNITS[unit]
    exact = Fraction(number) * factor * 1000
    up = -(-abs(exact.numerator) // exact.denominator)
    capped = min(up, 1000 * (2**63 - 1))

    assert quantity(written) == (capped if exact >= 0 else -capped)


@given(st.text(max_size=12) | st.text("0123456789.eE+-KMGinumk", max_size=12))
def test_no_text_does_worse_than_a_refusal(text: str) -> None:
    try:
        found = quantity(text)
    except BadQuantity as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert abs(found) <= 1000 * MOST


def test_resources_are_read_by_name() -> None:
    assert resources({"cpu": "500m", "pods": 3}) == {"cpu": 500, "pods": 3000}
    assert resources(None) == {}


def test_a_bad_amount_is_told_with_its_name() -> None:
    with pytest.raises(BadQuantity, match=r"^'cpu' is 'four', want an amount"):
        resources({"memory": "1", "cpu": "four"})
