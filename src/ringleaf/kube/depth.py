"""Objects that are nested deeper than a decoder goes.

A decoder calls itself for every value inside a value, also where it passes over them,
and Python ends this after about a thousand calls. The API server stores ten thousand
levels: any user that may update an object may write such ``managedFields``. Nothing
that is read is as deep as ``MOST_LEVELS``, so what is deeper is cut out, and the rest
is read.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np
from msgspec import Raw

MOST_LEVELS: Final = 100
"""Levels of values inside values that are left."""

_T = TypeVar("_T")
_QUOTE: Final = 2
_KIND: Final = np.zeros(256, np.int8)
_KIND[[*b"{["]] = 1
_KIND[[*b"}]"]] = -1
_KIND[ord('"')] = _QUOTE


def decoded(decode: Callable[[bytes], _T], text: bytes | Raw) -> _T:
    """What *decode* makes of *text*, or of what is left of it if it is too deep."""
    try:
        return decode(text)
    except RecursionError:
        return decode(shallow(bytes(text)))


def shallow(text: bytes) -> bytes:
    """JSON, or lines of JSON, with 0 in place of every value that is too deep.

    >>> shallow(b'{"a": "}]", "b": ' + 200 * b"[" + 200 * b"]" + b"}").count(b"[")
    99
    """
    # Both replacements keep the length, and leave no quotation mark inside a string.
    plain = text.replace(rb"\\", b"__").replace(rb"\"", b"__")
    kinds = _KIND[np.frombuffer(plain, np.uint8)]
    places = np.flatnonzero(kinds)
    signs = kinds[places]
    quotes = signs == _QUOTE
    # Of the number of quotation marks so far, only whether it is even counts.
    in_string = np.bitwise_xor.accumulate(quotes)
    steps = np.where(in_string | quotes, np.int8(0), signs)
    too_deep = np.cumsum(steps, dtype=np.int32) > MOST_LEVELS
    edges = places[np.flatnonzero(np.diff(too_deep, prepend=False))]
    begins, ends = edges[::2], edges[1::2]  # an end is the sign that closes a value
    found = np.frombuffer(text, np.uint8).copy()
    found[begins] = ord("0")
    marks = np.zeros(len(found) + 1, bool)
    marks[begins + 1] = marks[ends + 1] = True
    return found[~np.bitwise_xor.accumulate(marks[:-1])].tobytes()
