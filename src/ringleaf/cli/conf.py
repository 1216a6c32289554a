"""``ringleaf check-conf``: checks, explains and repairs a scheduler configuration."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import to_builtins
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ringleaf.cli.conf_file import (
    STARTER,
    WANTED,
    Source,
    configuration_in,
    read_source,
    remark_lines,
    text_in,
)
from ringleaf.cli.failure import BadUse
from ringleaf.cli.file import bytes_of, name_of, one_line
from ringleaf.cli.indentation import compact, mended
from ringleaf.cli.output import TrimmedConsole, print_json, print_line, so_many
from ringleaf.cli.plugins import installed_plugins
from ringleaf.config.arguments import Argument, Value, find_argument
from ringleaf.config.conf import Conf, PluginConf, RefusedConf
from ringleaf.config.parameters import PARAMETERS
from ringleaf.config.reader import read_conf
from ringleaf.config.vocabulary import ACTIONS, FLAGS
from ringleaf.simulator import source

MORE: Final = "docs/configuration.md describes every key."

_USUAL: Final = "by default: "


def check_file(file: str, *, as_json: bool) -> int:
    """Print what is wrong with a configuration, or what it does; the exit status."""
    shown = name_of(file)
    read = read_source(file, shown)
    conf = read_conf(read.document, installed_plugins())
    problems = conf.problems if isinstance(conf, RefusedConf) else ()
    told, warnings = remark_lines(read, problems), remark_lines(read, conf.warnings)
    if as_json:
        head = {"problems": told, "warnings": warnings}
        print_json(head if isinstance(conf, RefusedConf) else head | _plain(conf))
        return 1 if problems else 0
    console = TrimmedConsole()
    _print_verdict(console, shown, told, warnings)
    if isinstance(conf, Conf):
        _explain(console, conf)
    return 1 if problems else 0


def fix_file(file: str, output: str | None, *, as_json: bool) -> int:
    """Write a configuration with its indentation repaired; the exit status.

    To standard output, or to *output*, which must not be there. What was
    mended and what else is wrong goes to standard error. A configuration with problems
    is not written.
    """
    shown = name_of(file)
    with one_line(shown, source.BadInput, starter=STARTER):
        text = text_in(bytes_of(file, WANTED))
        text, notes, read = _mended(text)
    conf = read_conf(read.document, installed_plugins())
    problems = conf.problems if isinstance(conf, RefusedConf) else ()
    told, warnings = remark_lines(read, problems), remark_lines(read, conf.warnings)
    if not problems and output is not None:
        _write(output, text)
    if as_json:
        where = {"text": text} if output is None else {"output": output}
        head = {"mended": notes, "problems": told, "warnings": warnings}
        print_json(head if problems else head | where)
        return 1 if problems else 0
    if not problems and output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    console = Console(highlight=False, stderr=True)
    _remarks(console, notes, "fixed: ", "green")
    fixed = f"{shown} as fixed" if notes else shown
    written = None if problems else output
    _print_verdict(console, written or fixed, told, warnings)
    if problems:
        print_line(console, Text("nothing is written: fix these first"))
    elif not notes:
        print_line(console, Text("nothing to fix"))
    return 1 if problems else 0


def _mended(text: str) -> tuple[str, list[str], Source]:
    """*text* as it can be read, what was done to it, and what it says."""
    try:
        return text, [], configuration_in(text)
    except source.BadInput:
        found = mended(text)
        if not found.notes:
            raise
    return found.text, list(compact(found.notes)), configuration_in(found.text)


def _write(output: str, text: str) -> None:
    """Write a file that is not there yet."""
    with one_line(f"--output: {output}"):
        try:
            with Path(output).open("x") as stream:
                stream.write(text)
        except FileExistsError:
            hint = "hint: remove it first, or name another file"
            raise BadUse(f"--output: {output} is there already; {hint}") from None


def _print_verdict(
    console: Console, shown: str, problems: list[str], warnings: list[str]
) -> None:
    _remarks(console, problems, "problem: ", "bold red")
    _remarks(console, warnings, "warning: ", "yellow")
    verdict = so_many(len(problems), "problem") if problems else "no problems"
    also = f", {so_many(len(warnings), 'warning')}" if warnings else ""
    print_line(console, Text(f"{shown}: {verdict}{also}", style="bold"))


def _plain(conf: Conf) -> dict[str, Any]:
    return {
        "actions": [
            {"action": name, "arguments": conf.action_arguments[name]}
            for name in conf.actions
        ],
        "tiers": [
            [
                {
                    "plugin": plugin.name,
                    "written": plugin.written,
                    "votes": plugin.votes,
                    "flags": {key: key in plugin.enabled for key in FLAGS},
                    "arguments": plugin.arguments,
                }
                for plugin in tier
            ]
            for tier in conf.tiers
        ],
        "init-params": conf.parameters,
        "settings": to_builtins(conf.settings),
        "others": conf.others,
    }


def _explain(console: Console, conf: Conf) -> None:
    console.print()
    console.print(Text("Actions, in this order", style="bold"))
    actions = [
        (str(i), name, [ACTIONS[name].meaning, *_action_lines(conf, name)])
        for i, name in enumerate(conf.actions, 1)
    ]
    console.print(_grid(actions))
    for i, tier in enumerate(conf.tiers, 1):
        console.print()
        console.print(Text(f"Tier {i}", style="bold"))
        console.print(_grid(("", p.name, list(_plugin_lines(p))) for p in tier))
    console.print()
    console.print(Text("init-params", style="bold"))
    console.print(_parameters(conf))
    console.print()
    console.print(Text(MORE))


def _action_lines(conf: Conf, name: str) -> Iterator[str]:
    return _argument_lines(ACTIONS[name].arguments, conf.action_arguments[name])


def _plugin_lines(plugin: PluginConf) -> Iterator[str]:
    yield plugin.about.meaning
    if plugin.written != plugin.name:
        yield f"written {plugin.written!r} in the file"
    yield f"votes: {', '.join(plugin.votes) or 'none'}"
    for flag, value in plugin.changed.items():
        said = "" if plugin.heeds(flag) else ", which changes nothing here"
        yield f"{flag}: {_shown(value)} (default {_shown(not value)}){said}"
    yield from _argument_lines(plugin.about.arguments, plugin.arguments)


def _argument_lines(
    known: Mapping[str, Argument], values: Mapping[str, Value]
) -> Iterator[str]:
    """A line for each argument that is not at its default, one for all that are.

    Those without effect have a warning where they are set.
    """
    usual = []
    for key, value in values.items():
        argument = find_argument(known, key)
        assert argument is not None, key
        if argument.idle:
            continue
        if value == argument.default:
            usual.append(f"{key} {_default(argument)}")
        else:
            default = _default(argument)
            yield f"{key}: {_shown(value)} (default {default}). {argument.meaning}"
    if usual:
        yield f"{_USUAL}{', '.join(usual)}"


def _default(argument: Argument) -> str:
    return argument.without if argument.default is None else _shown(argument.default)


def _shown(value: Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(str, value)) or "none"
        case _:
            return f"{value}"


def _parameters(conf: Conf) -> RenderableType:
    """The parameters in effect, line by line; the others have a warning."""
    rows = []
    for key, argument in PARAMETERS.items():
        value, default = conf.parameters[key], _default(argument)
        usual = value == argument.default
        shown = (
            f"{default} (default" if usual else f"{_shown(value)} (default {default}"
        )
        if argument.has_effect:
            rows.append(("", key, [f"{shown}): {argument.meaning}"]))
    return _grid(rows)


def _grid(rows: Iterable[tuple[str, str, list[str]]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for number, name, (first, *others) in rows:
        table.add_row(number, name, Text(first))
        for line in others:
            usual = "dim" if line.startswith(_USUAL) else ""
            table.add_row("", "", Text(line, style=usual))
    return Padding(table, (0, 0, 0, 1))


def _remarks(console: Console, lines: Iterable[str], head: str, style: str) -> None:
    for line in lines:
        print_line(console, Text.assemble((head, style), line))
