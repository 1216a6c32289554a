"""Enums whose members have words for people beside their values."""

from enum import StrEnum
from typing import Self


class Worded(StrEnum):
    """An enum whose members are written as a value and its words."""

    words: str

    def __new__(cls, value: str, words: str) -> Self:
        """The member *value*."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.words = words
        return member
