"""Names of jobs as people know them: without the uid that Volcano adds."""

from collections.abc import Callable
from typing import Any

from rich.padding import Padding
from rich.text import Text

from ringleaf.cli.output import TrimmedConsole
from ringleaf.kube.names import NAMED, bare_name


class PeopleConsole(TrimmedConsole):
    """A console that prints what people call a job wherever its name stands.

    Args:
        known: The name of a PodGroup, with a uid -> what people call it.

    """

    def __init__(self, known: Callable[[str], str] = bare_name) -> None:
        super().__init__()
        self._known = known

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401 - as rich does
        """Print *objects*; in tables names stay as they are."""
        super().print(*map(self._renamed, objects), **options)

    def _renamed(self, shown: Any) -> Any:  # noqa: ANN401 - as rich does
        if isinstance(shown, str):
            return NAMED.sub(lambda found: self._known(found[0]), shown)
        if isinstance(shown, Text):
            return self._text(shown)
        if isinstance(shown, Padding) and isinstance(shown.renderable, Text):
            shown.renderable = self._text(shown.renderable)
        return shown

    def _text(self, shown: Text) -> Text:
        """*shown* with other names in it, in the styles it has."""
        text, at = shown.blank_copy(), 0
        for found in NAMED.finditer(shown.plain):
            text.append_text(shown[at : found.start()])
            text.append(self._known(found[0]))
            at = found.end()
        return text.append_text(shown[at:])
