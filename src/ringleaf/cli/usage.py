"""Help on a terminal: whole sentences, in 80 columns at most."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Final

from ringleaf.cli.command import Command
from ringleaf.cli.failure import program
from ringleaf.cli.parameter import OPTIONS, Option, Parameter

WIDTH: Final = 80
LEAST_WIDTH: Final = 50
MAX_NAME: Final = 30
"""Columns for the names of options; a longer one has a line of its own."""

NO_BREAK: Final = "\N{NO-BREAK SPACE}"


def width() -> int:
    """Columns of the help."""
    return max(LEAST_WIDTH, min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns))


def help_of(command: Command) -> str:
    """The help of one command."""
    parts = [_usage(command), *_filled([command.title, *command.body], "  ")]
    if command.examples:
        lines = "\n".join(f"  {example}" for example in command.examples)
        parts.append(f"Examples:\n{lines}")
    if command.arguments:
        rows = [(each.long, each.form.help) for each in command.arguments]
        parts.append(_section("Arguments", rows))
    headings = [OPTIONS, *(each.heading for each in command.options)]
    for heading in dict.fromkeys(headings):
        rows = [
            (spelled(each), described(each))
            for each in command.options
            if each.heading == heading
        ]
        if heading == OPTIONS:
            rows.append(("-h, --help", "Show this help."))
        parts.append(_section(heading, rows))
    return "\n\n".join(parts)


def _usage(command: Command) -> str:
    """How it is called, with what must be given."""
    words = [
        each.long if each.is_required else f"[{each.long}]"
        for each in command.arguments
    ]
    words += [
        f"{each.long} {each.form.metavar}"
        for each in command.options
        if each.is_required
    ]
    return " ".join(["Usage:", program(), command.name, *words, "[OPTIONS]"])


def _filled(paragraphs: Iterable[str], indent: str) -> list[str]:
    return [
        "\n".join(
            wrap(
                text,
                width(),
                initial_indent=indent,
                subsequent_indent=indent,
                break_on_hyphens=False,
            )
        )
        for text in paragraphs
    ]


def spelled(option: Parameter) -> str:
    """An option as it is written, with the word for its value.

    >>> spelled(Parameter(("top",), int, False, 3, Option("N", "")))
    '--top N'
    """
    assert isinstance(option.form, Option)
    names = ", ".join(option.names)
    return f"{names} {option.form.metavar}".rstrip()


def described(option: Parameter) -> str:
    """What an option does, and its default.

    >>> described(Parameter(("top",), int, False, 3, Option("N", "The best N.")))
    'The best N. [default: 3]'
    """
    assert isinstance(option.form, Option)
    default = default_of(option)
    shown = f" [default: {default}]" if default else ""
    return option.form.help + shown


def default_of(option: Parameter) -> str:
    """The default in words; nothing where there is none to tell."""
    assert isinstance(option.form, Option)
    if option.form.default:
        return option.form.default
    if option.is_required or option.default is None or option.is_flag:
        return ""
    if isinstance(option.default, float):
        return f"{option.default:g}"
    return str(option.default)


def _section(heading: str, rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join([f"{heading}:", *_rows(rows)])


def _rows(rows: Sequence[tuple[str, str]], least: int = 0) -> Iterator[str]:
    """Names on the left, sentences on the right."""
    fitting = [len(name) for name, _text in rows if len(name) <= MAX_NAME]
    left = max([least, *fitting]) + 4
    for name, text in rows:
        lines = _wrapped(text, width() - left)
        if len(name) > MAX_NAME:
            yield f"  {name}"
        else:
            yield f"  {name:{left - 2}}{lines.pop(0)}"
        yield from (" " * left + line for line in lines)


def _wrapped(text: str, columns: int) -> list[str]:
    """Lines of *text*; a default in brackets is kept together if it fits a line."""
    before, bracket, default = text.partition(" [default: ")
    if bracket and len(bracket + default) <= columns:
        together = (bracket[1:] + default).replace(" ", NO_BREAK)
        text = f"{before} {together}"
    lines = wrap(text, columns, break_on_hyphens=False, break_long_words=False)
    return [line.replace(NO_BREAK, " ") for line in lines]


def overview(
    title: str, groups: Mapping[str, Sequence[tuple[str, str]]], more: Sequence[str]
) -> str:
    """The help of the program: its commands in groups."""
    least = max(len(name) for rows in groups.values() for name, _text in rows)
    parts = [
        f"Usage: {program()} COMMAND [OPTIONS]",
        *_filled([title], ""),
        *(
            "\n".join([f"{heading}:", *_rows(rows, least)])
            for heading, rows in groups.items()
        ),
        *_filled(more, ""),
    ]
    return "\n\n".join(parts)


def commands_of(title: str, name: str, commands: Sequence[Command]) -> str:
    """The help of a word that several commands begin with."""
    rows = [(each.name.removeprefix(f"{name} "), each.title) for each in commands]
    examples = [example for each in commands for example in each.examples[:1]]
    return "\n\n".join(
        [
            f"Usage: {program()} {name} COMMAND [OPTIONS]",
            *_filled([title], "  "),
            "Examples:\n" + "\n".join(f"  {example}" for example in examples),
            _section("Commands", rows),
            *_filled([f"{program()} {name} COMMAND --help shows the options."], ""),
        ]
    )
