"""Commands as functions: parameters are options, the docstring is the help.

A parameter is ``Annotated[type, Option(...)]`` or ``Annotated[type, Argument(...)]``.
A parameter whose type is a ``NamedTuple`` of such fields stands for all of them, so
that commands share options; the docstring of the tuple is their heading in the help.
What is wrong with a call becomes one line of ours: option, found, wanted, hint.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, get_type_hints

from ringleaf.cli.failure import BadUse, program
from ringleaf.cli.parameter import (
    OPTIONS,
    Option,
    Parameter,
    Positional,
    close_to,
    either,
    fields_of,
    parameter_of,
)

HELP: Final = ("-h", "--help")


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


def _parameters(function: Callable[..., int]) -> Iterator[Parameter]:
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if hasattr(hint, "_fields"):
            yield from fields_of(name, hint)
        else:
            yield parameter_of((name,), hint, parameter.default, OPTIONS)


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
