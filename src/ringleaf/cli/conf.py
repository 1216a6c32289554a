"""``ringleaf check-conf``: a scheduler configuration, checked, explained and mended."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct, to_builtins
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ringleaf.cli.failure import BadUse
from ringleaf.cli.file import bytes_of, name_of, one_line
from ringleaf.cli.indentation import GO, compact, mended
from ringleaf.cli.output import TrimmedConsole, print_json, print_line, so_many
from ringleaf.cli.plugins import installed_plugins
from ringleaf.config.arguments import Argument, Value, find_argument
from ringleaf.config.conf import (
    Conf,
    PluginConf,
    RefusedConf,
    Remark,
)
from ringleaf.config.parameters import PARAMETERS
from ringleaf.config.reader import read_conf
from ringleaf.config.vocabulary import ACTIONS, FLAGS
from ringleaf.simulator import source

KEYS: Final = ("volcano-scheduler.conf", "volcano-scheduler-ci.conf")
"""Keys of a ConfigMap that hold a configuration; the first there is counts."""

WANTED: Final = f"a configuration, or a ConfigMap with {KEYS[0]}"
MORE: Final = "docs/configuration.md describes every key."
STARTER: Final = "ringleaf init conf writes one"

_USUAL: Final = "by default: "
_GO_HINT: Final = "this is Go source: keep only the text between the backquotes"
_LINE: Final = re.compile(r"line (\d+), column \d+: ")
_SAYS_SOMETHING: Final = re.compile(r"^\s*(?!null$|~$)[^\s#-]", re.MULTILINE)
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Source(Struct, frozen=True):
    """A configuration as plain values, and its YAML nodes, which know their lines."""

    document: object
    node: Any = None


def check_file(file: str, *, as_json: bool) -> int:
    """Print what is wrong with a configuration, or what it does; the exit status."""
    shown = name_of(file)
    read = _read(file, shown)
    conf = read_conf(read.document, installed_plugins())
    problems = conf.problems if isinstance(conf, RefusedConf) else ()
    told, warnings = _told(read, problems), _told(read, conf.warnings)
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
    """Write a configuration with its indentation mended; the exit status.

    To standard output, or to *output*, which must not be there. What was
    mended and what else is wrong goes to standard error. A configuration with problems
    is not written.
    """
    shown = name_of(file)
    with one_line(shown, source.BadInput, starter=STARTER):
        text = _text(bytes_of(file, WANTED))
        text, notes, read = _mended(text)
    conf = read_conf(read.document, installed_plugins())
    problems = conf.problems if isinstance(conf, RefusedConf) else ()
    told, warnings = _told(read, problems), _told(read, conf.warnings)
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
        return text, [], _configuration(text)
    except source.BadInput:
        found = mended(text)
        if not found.notes:
            raise
    return found.text, list(compact(found.notes)), _configuration(found.text)


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


def read_file(file: str) -> tuple[Conf, list[str]]:
    """The configuration in *file*, and warnings; ``BadUse`` names what is wrong."""
    shown = name_of(file)
    read = _read(file, shown)
    conf = read_conf(read.document, installed_plugins())
    if isinstance(conf, RefusedConf):
        first, *others = _told(read, conf.problems)
        more = f"; and {len(others)} more: ringleaf check-conf {file} lists them"
        raise BadUse(f"{shown}: {first}{more if others else ''}")
    return conf, _told(read, conf.warnings)


def _read(file: str, shown: str) -> Source:
    with one_line(shown, source.BadInput, starter=STARTER):
        return _configuration(_text(bytes_of(file, WANTED)))


def _text(data: bytes) -> str:
    text = source.decoded(data)
    if not _SAYS_SOMETHING.search(text):
        raise source.BadInput(f"the file is empty, want {WANTED}")
    return text


def _configuration(text: str) -> Source:
    """The configuration of a bare file or of a ConfigMap in it."""
    if GO.match(text):
        _documents(re.sub(GO, "", text, count=1).replace("`", ""), _GO_HINT, text)
        raise source.BadInput(f"line 1: no YAML, want {WANTED}", _GO_HINT)
    documents, nodes = _documents(text), _nodes(text)
    if any(isinstance(each, dict) and "kind" in each for each in documents):
        return _from_manifest(documents, nodes)
    return Source(_only(documents, "documents"), next(iter(nodes), None))


def _from_manifest(documents: list[Any], nodes: list[Any]) -> Source:
    """The text in the one ConfigMap that has it, with the lines of the file."""
    found = [
        (data[key], key, nodes[i : i + 1])
        for i, data in enumerate(map(_content, documents))
        for key in [key for key in KEYS if key in data][:1]
    ]
    if not found:
        raise source.BadInput(f"no ConfigMap has the key {KEYS[0]}, want {WANTED}")
    text, key, manifest = _only(found, "ConfigMaps with a configuration")
    if not isinstance(text, str) or not _SAYS_SOMETHING.search(text):
        told = source.brief(text)
        raise source.BadInput(f"data.{key} is {told}, want text of a configuration")
    text = "\n" * _lines_before(manifest, key) + text
    document = _only(_documents(text), f"documents in {key}")
    return Source(document, next(iter(_nodes(text)), None))


def _documents(
    text: str, hint: str | None = None, whole: str | None = None
) -> list[Any]:
    """The documents of *text*; an error names the line in *whole*, and a hint."""
    gone = (whole or text).count("\n") - text.count("\n")
    text = "\n" * gone + text
    try:
        return source.documents(text.encode())
    except source.BadInput as error:
        hints = filter(None, (_indent_hint(text, str(error)), hint))
        raise source.BadInput(str(error), "; ".join(hints)) from None


def _indent_hint(text: str, error: str) -> str | None:
    """What to do about a line further left than where everything began."""
    at = _LINE.match(error)
    lines = text.splitlines()
    if at is None or int(at[1]) > len(lines):
        return None
    bad = lines[int(at[1]) - 1]
    first = next(line for line in lines if line.strip() and line.lstrip()[0] != "#")
    missing = _indent(first) - _indent(bad)
    if missing <= 0:
        return None
    return (
        f"line {at[1]} starts {so_many(missing, 'column')} further left than the rest"
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _only(found: list[Any], what: str) -> Any:  # noqa: ANN401 - plain values
    if len(found) != 1:
        raise source.BadInput(f"{len(found)} {what}, want one")
    return found[0]


def _content(document: object) -> Mapping[str, Any]:
    """The data of a ConfigMap; of anything else, nothing."""
    if not isinstance(document, dict) or document.get("kind") != "ConfigMap":
        return {}
    data = document.get("data")
    return data if isinstance(data, dict) else {}


def _nodes(text: str) -> list[Any]:
    """The nodes of the documents that ``source`` gives; none of JSON that no YAML is.

    ``source`` has already bounded depth, size and aliases.
    """
    try:
        nodes = list(yaml.compose_all(text, Loader=_Loader))
    except yaml.YAMLError:
        return []
    return [n for n in nodes if n is not None and n.tag != "tag:yaml.org,2002:null"]


def _lines_before(manifest: Iterable[Any], key: str) -> int:
    """Lines of the file before the first of a literal text, else none."""
    for node in manifest:
        value = _below(_below(node, "data")[1], key)[1]
        if value.style == "|":
            return int(value.start_mark.line) + 1
    return 0


def _steps(node: Any, path: Iterable[object]) -> list[Any]:  # noqa: ANN401
    """What stands along *path*, keys or items, as far as it is there."""
    steps = [node]
    for step in path:
        mark, node = _below(node, step)
        if mark is None:
            break
        steps.append(mark)
    return steps


def _below(node: Any, step: object) -> tuple[Any, Any]:  # noqa: ANN401
    """The key or item at *step*, and its value; nothing where a merge hides it."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key, value
    return None, None


def _told(read: Source, remarks: Iterable[Remark]) -> list[str]:
    """The remarks in the order of the file, with lines where the reader has them."""
    lines = [(_line_of(read, remark), str(remark)) for remark in remarks]
    lines.sort(key=lambda each: each[0])
    return [f"line {line}: {text}" if line else text for line, text in lines]


def _line_of(read: Source, remark: Remark) -> int:
    """The line that a remark is about; 0 where none can be told."""
    if read.node is None or not remark.path:
        return 0
    return int(_steps(read.node, remark.path)[-1].start_mark.line) + 1


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
    """Those that count, line by line; the others have a warning where they are set."""
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
