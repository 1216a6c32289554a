"""Commands as functions: parameters are options, the docstring is the help.

A parameter is ``Annotated[type, Option(...)]`` or ``Annotated[type, Argument(...)]``.
A parameter whose type is a ``NamedTuple`` of such fields stands for all of them, so
that commands share options; the docstring of the tuple is their heading in the help.
What is wrong with a call becomes one line of ours: option, found, wanted, hint.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
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

from ringleaf.cli.failure import BadUse, program

HELP: Final = ("-h", "--help")
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


class Command:
    """A function that can be called from the command line.

    Args:
        name: Its words, such as ``topology check``.
        group: The heading under which it is listed.
        function: What it does; the exit status comes back.
        examples: Calls of it, as they are typed.
        forms: Ways to call it that are listed elsewhere: heading, words, sentence.

    """

    def __init__(
        self,
        name: str,
        group: str,
        function: Callable[..., int],
        examples: Sequence[str] = (),
        forms: Sequence[tuple[str, str, str]] = (),
    ) -> None:
        self.name, self.group, self.function = name, group, function
        self.examples, self.forms = examples, forms

    @property
    def title(self) -> str:
        """What it does, in one sentence."""
        return self._paragraphs[0]

    @property
    def body(self) -> list[str]:
        """The other paragraphs of its help."""
        return self._paragraphs[1:]

    @cached_property
    def _paragraphs(self) -> list[str]:
        text = inspect.getdoc(self.function) or ""
        return [" ".join(part.split()) for part in text.split("\n\n")]

    @cached_property
    def parameters(self) -> list[Parameter]:
        """What it takes, in order; options of a tuple one by one."""
        return [*_parameters(self.function)]

    @property
    def arguments(self) -> list[Parameter]:
        """What is given without an option."""
        return [p for p in self.parameters if isinstance(p.form, Positional)]

    @property
    def options(self) -> list[Parameter]:
        """What is given by an option."""
        return [p for p in self.parameters if isinstance(p.form, Option)]

    @cached_property
    def by_name(self) -> Mapping[str, Parameter]:
        """Every option, by every way to write it."""
        return {name: each for each in self.options for name in each.names}

    def wants_help(self, words: Sequence[str]) -> bool:
        """Whether its help is asked for."""
        before = words[: words.index("--")] if "--" in words else words
        return any(word in HELP for word in before)

    def call(self, words: Sequence[str]) -> int:
        """Do it with the *words* after its name; the exit status."""
        return self.function(**self.values_of(words))

    def values_of(self, words: Sequence[str]) -> dict[str, Any]:
        """The arguments of the function that the *words* say.

        Raises:
            BadUse: An option is unknown, a value is bad, or something is missing.

        """
        try:
            return self._values(words)
        except BadUse as error:
            if "hint:" in str(error):
                raise
            raise BadUse(f"{error}; hint: {program()} {self.name} --help") from None

    def _values(self, words: Sequence[str]) -> dict[str, Any]:
        """The arguments of the function."""
        rest, given = self._split(words)
        found: dict[tuple[str, ...], Any] = {}
        for parameter, texts in given.items():
            found[parameter.path] = _value(parameter, texts)
        for parameter in self.arguments:
            if rest:
                found[parameter.path] = parameter.value_of(rest.pop(0))
        if rest:
            taken = " ".join(p.long for p in self.arguments) or "only options"
            raise BadUse(f"{self.name} has the extra word {rest[0]!r}, want {taken}")
        for parameter in self.parameters:
            if parameter.path not in found and parameter.is_required:
                raise BadUse(f"{parameter.long} is missing, want {_about(parameter)}")
        return _nested(self.function, found)

    def _split(
        self, words: Sequence[str]
    ) -> tuple[list[str], dict[Parameter, list[str]]]:
        """Words without an option, and what was given for every option."""
        rest: list[str] = []
        given: dict[Parameter, list[str]] = {}
        todo = iter(words)
        for word in todo:
            if word == "--":
                rest += todo
            elif word == "-" or not word.startswith("-"):
                rest.append(word)
            else:
                name, value = _cut(word)
                option = self._option(name)
                if value is None and not option.is_flag:
                    value = next(todo, None)
                given.setdefault(option, []).append(self._text(option, name, value))
        return rest, given

    def _option(self, name: str) -> Parameter:
        if name in self.by_name:
            return self.by_name[name]
        line = f"{self.name} has no option {name!r}"
        if guess := close_to(name, [*self.by_name, *HELP]):
            line += f"; hint: did you mean {guess!r}?"
        raise BadUse(line)

    def _text(self, option: Parameter, name: str, value: str | None) -> str:
        """What an option is given, a flag its own name."""
        if option.is_flag:
            if value is not None:
                raise BadUse(f"{name} is {value!r}, want no value")
            return name
        if value is None or value in self.by_name:
            raise BadUse(f"{name} has no value, want {option.form.metavar}")
        return value


def _cut(word: str) -> tuple[str, str | None]:
    """An option and the value that is written with it, if there is one.

    >>> _cut("--top=3"), _cut("-nresearch"), _cut("-n=research"), _cut("--json")
    (('--top', '3'), ('-n', 'research'), ('-n', 'research'), ('--json', None))
    """
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    return word[:2], word[2:].removeprefix("=") if word[2:] else None


def _value(parameter: Parameter, texts: Sequence[str]) -> Any:  # noqa: ANN401
    """What was given; of an option that counts once, the last."""
    if parameter.is_flag:
        return texts[-1] != parameter.opposite
    if parameter.many:
        return [parameter.value_of(text) for text in texts]
    return parameter.value_of(texts[-1])


def _about(parameter: Parameter) -> str:
    """What a parameter is, for a line that misses it."""
    if isinstance(parameter.form, Option) and parameter.words:
        return either(parameter.words)
    first = parameter.form.help.partition(";")[0].partition(". ")[0].rstrip(".")
    word = first.partition(" ")[0]
    return first if word[1:] != word[1:].lower() else first[:1].lower() + first[1:]


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


def _parameters(function: Callable[..., int]) -> Iterator[Parameter]:
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if hasattr(hint, "_fields"):
            yield from _fields(name, hint)
        else:
            yield _parameter((name,), hint, parameter.default, OPTIONS)


def _fields(name: str, tuple_type: Any) -> Iterator[Parameter]:  # noqa: ANN401
    heading = (tuple_type.__doc__ or OPTIONS).partition("\n")[0].rstrip(".")
    hints = get_type_hints(tuple_type, include_extras=True)
    for field in tuple_type._fields:
        default = tuple_type._field_defaults.get(field, inspect.Parameter.empty)
        yield _parameter((name, field), hints[field], default, heading)


def _parameter(
    path: tuple[str, ...],
    hint: Any,  # noqa: ANN401 - an annotation
    default: Any,  # noqa: ANN401 - of its kind
    heading: str,
) -> Parameter:
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


def _nested(
    function: Callable[..., int], found: Mapping[tuple[str, ...], Any]
) -> dict[str, Any]:
    """The values as the function takes them: those of a tuple in one."""
    hints = get_type_hints(function)
    values: dict[str, Any] = {}
    for path, value in found.items():
        if len(path) == 1:
            values[path[0]] = value
    for name in inspect.signature(function).parameters:
        if hasattr(hints[name], "_fields"):
            own = {path[1]: v for path, v in found.items() if path[0] == name}
            values[name] = hints[name](**own)
    return values


def given(options: Any) -> dict[str, Any]:  # noqa: ANN401 - a tuple of options
    """The options of a tuple that are not at their default: as written -> value."""
    values = options._asdict()
    return {
        each.long: values[each.path[1]]
        for each in _fields("", type(options))
        if values[each.path[1]] != each.default
    }
