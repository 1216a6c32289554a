"""Parameters of commands: how each is written, described and read."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from math import isfinite
from types import NoneType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    get_args,
    get_origin,
    get_type_hints,
)

from ringleaf.cli.failure import BadUse

OPTIONS: Final = "Options"
"""The heading of options that no other heading has."""


class Option(NamedTuple):
    """How a parameter is written and described.

    Args:
        metavar: The word for its value; empty for a flag.
        help: What it does, in whole sentences.
        short: Its short form, such as ``-n``.
        long: Its long form, where that is not made from the parameter's name.
        least: The smallest number it takes.
        most: The largest number it takes.
        default: The default in words, where the value does not say it.
        known: What completes its value: words, or a function that finds them.

    """

    metavar: str
    help: str
    short: str = ""
    long: str = ""
    least: float | None = None
    most: float | None = None
    default: str = ""
    known: Sequence[str] | Callable[[], Sequence[str]] = ()


class Positional(NamedTuple):
    """How a word without an option is described.

    Args:
        metavar: The word for it.
        help: What it is, in whole sentences.
        known: What completes it: words, or a function that finds them.

    """

    metavar: str
    help: str
    known: Sequence[str] | Callable[[], Sequence[str]] = ()


class Parameter(NamedTuple):
    """A parameter of a command.

    Args:
        path: Its name, after that of the tuple which it is a field of, if any.
        kind: The type of a value.
        many: Whether it may be given several times.
        default: The value where it is not given; ``inspect.Parameter.empty`` if it
            must be given.
        form: How it is written and described.
        heading: Under which it stands in the help.

    """

    path: tuple[str, ...]
    kind: type
    many: bool
    default: Any
    form: Option | Positional
    heading: str = OPTIONS

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return self.kind is bool

    @property
    def is_required(self) -> bool:
        """Whether it must be given."""
        return self.default is inspect.Parameter.empty

    @property
    def long(self) -> str:
        """The long option, or the word for the argument."""
        if isinstance(self.form, Positional):
            return self.form.metavar
        return self.form.long or "--" + self.path[-1].replace("_", "-")

    @property
    def opposite(self) -> str:
        """The option that turns off what is on by default."""
        return f"--no-{self.long[2:]}" if self.is_flag and self.default is True else ""

    @property
    def names(self) -> list[str]:
        """Every way to write the option."""
        assert isinstance(self.form, Option)
        return [n for n in (self.form.short, self.long, self.opposite) if n]

    @property
    def words(self) -> list[str]:
        """What its value may be, as far as that is known."""
        if issubclass(self.kind, Enum):
            return [str(each.value) for each in self.kind]
        known = self.form.known
        return [*(known() if callable(known) else known)]

    def value_of(self, text: str) -> Any:  # noqa: ANN401 - of its kind
        """What *text* means.

        Raises:
            BadUse: It means nothing, or too much.

        """
        if self.kind is str:
            return text
        if issubclass(self.kind, Enum):
            if text in self.words:
                return self.kind(text)
            guess = close_to(text, self.words)
            hint = f"; hint: did you mean {guess!r}?" if guess else ""
            raise BadUse(f"{self.long} is {text!r}, want {either(self.words)}{hint}")
        value: float | None
        try:
            value = int(text) if self.kind is int else float(text)
        except ValueError:
            value = None
        if value is None or not isfinite(value) or not self._is_inside(value):
            found = repr(text) if value is None else text
            plain = written_out(text, self.kind) if value is None else None
            more = f"; hint: {plain}" if plain else ""
            raise BadUse(f"{self.long} is {found}, want {self.range}{more}")
        return value

    @property
    def range(self) -> str:
        """The numbers that it takes, in words."""
        word = "a whole number" if self.kind is int else "a number"
        if not isinstance(self.form, Option):
            return word
        least, most = self.form.least, self.form.most
        if least is not None and most is not None:
            return f"{word} from {least:,} to {most:,}"
        if least is not None:
            return f"{word}, at least {least:,}"
        return word if most is None else f"{word}, at most {most:,}"

    def _is_inside(self, value: float) -> bool:
        assert isinstance(self.form, Option)
        least, most = self.form.least, self.form.most
        return (least is None or value >= least) and (most is None or value <= most)


def parameter_of(
    path: tuple[str, ...],
    hint: Any,  # noqa: ANN401 - an annotation
    default: Any,  # noqa: ANN401 - of its kind
    heading: str,
) -> Parameter:
    """The parameter that a *hint* describes."""
    assert get_origin(hint) is Annotated, f"{path} has no Option and no Argument"
    kind, form = get_args(hint)[:2]
    kinds = [each for each in get_args(kind) if each is not NoneType] or [kind]
    if get_origin(kind) is list:
        kinds = [kind]
    (kind,) = kinds
    many = get_origin(kind) is list
    return Parameter(
        path, get_args(kind)[0] if many else kind, many, default, form, heading
    )


def fields_of(name: str, tuple_type: Any) -> Iterator[Parameter]:  # noqa: ANN401
    """The parameters that the fields of a tuple are."""
    heading = (tuple_type.__doc__ or OPTIONS).partition("\n")[0].rstrip(".")
    hints = get_type_hints(tuple_type, include_extras=True)
    for field in tuple_type._fields:
        default = tuple_type._field_defaults.get(field, inspect.Parameter.empty)
        yield parameter_of((name, field), hints[field], default, heading)


def either(words: Sequence[str]) -> str:
    """The words, with an "or" before the last.

    >>> either(["a"]), either(["a", "b", "c"])
    ('a', 'a, b or c')
    """
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def close_to(word: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """The known word that *word* was meant to be, or nothing."""
    from ringleaf.model.spelling import closest  # noqa: PLC0415 - only for mistakes

    return closest(word, known, cutoff) or ""


def given(options: Any) -> dict[str, Any]:  # noqa: ANN401 - a tuple of options
    """The options of a tuple that are not at their default: as written -> value."""
    values = options._asdict()
    return {
        each.long: values[each.path[1]]
        for each in fields_of("", type(options))
        if values[each.path[1]] != each.default
    }


_SIGNS: Final = {"k": 1000, "K": 1000, "M": 1_000_000}


def written_out(text: str, kind: type) -> str | None:
    """A hint: the plain number that *text* stands for, of the *kind* that is wanted.

    >>> written_out("90%", float), written_out("1k", int), written_out("x", int)
    ('0.9 is 90 %', '1000', None)
    """
    sign = text[-1:]
    try:
        number = float(text[:-1])
    except ValueError:
        return None
    if sign == "%" and kind is float and isfinite(number):
        return f"{number / 100:g} is {number:g} %"
    whole = number * _SIGNS.get(sign, 0)
    return f"{whole:.0f}" if whole > 0 and isfinite(whole) else None
