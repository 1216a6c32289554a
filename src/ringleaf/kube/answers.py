"""What the API server answers, and what each status means."""

from typing import Final

import msgspec
from msgspec import Struct

UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT = 401, 403, 404, 409
GONE, INVALID, TOO_MANY, SERVER_ERROR, TIMEOUT = 410, 422, 429, 500, 504
NOT_ALLOWED: Final = frozenset({UNAUTHORIZED, FORBIDDEN})
"""Rights that lack; they may be granted later."""
REFUSED: Final = frozenset({FORBIDDEN, NOT_FOUND, INVALID})
"""Rights that lack, a namespace that is not there, a name that is none."""
RELIST: Final = frozenset({400, NOT_FOUND, GONE, TIMEOUT})
"""Answers to a watch after which its version is of no use."""


class _Status(Struct):
    message: str = ""


class Answer(Struct, frozen=True):
    """What the API server said."""

    status: int
    body: bytes
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        """Whether it did what was asked."""
        return 200 <= self.status < 300  # noqa: PLR2004 - HTTP

    @property
    def is_missing(self) -> bool:
        """Whether there is no such object."""
        return self.status == NOT_FOUND

    @property
    def is_conflict(self) -> bool:
        """Whether the object is there already, or has another version."""
        return self.status == CONFLICT

    @property
    def is_forbidden(self) -> bool:
        """Whether the right to do it lacks."""
        return self.status == FORBIDDEN

    @property
    def is_transient(self) -> bool:
        """Whether the API server is overloaded or in trouble: asking again may help."""
        return self.status == TOO_MANY or self.status >= SERVER_ERROR

    def words(self, most: int = 300) -> str:
        """The status and what is said of it, for the log."""
        return f"{self.status} {self.body[:most].decode(errors='replace')}"

    @property
    def message(self) -> str:
        """The status and what the API server says of a refusal."""
        try:
            said = msgspec.json.decode(self.body, type=_Status).message
        except (msgspec.DecodeError, UnicodeDecodeError):
            said = self.body[:200].decode(errors="replace")
        return f"{self.status} {said}"
