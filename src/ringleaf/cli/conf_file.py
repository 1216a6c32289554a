"""Configurations from files, with the lines of what stands in them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml
from msgspec import Struct

from ringleaf.cli.failure import BadUse
from ringleaf.cli.file import bytes_of, name_of, one_line
from ringleaf.cli.indentation import GO
from ringleaf.cli.output import so_many
from ringleaf.cli.plugins import installed_plugins
from ringleaf.config.conf import Conf, RefusedConf, Remark
from ringleaf.config.reader import read_conf
from ringleaf.simulator import source


class Source(Struct, frozen=True):
    """A configuration as plain values, and its YAML nodes, which know their lines."""

    document: object
    node: Any = None


KEYS: Final = ("volcano-scheduler.conf", "volcano-scheduler-ci.conf")
"""Keys of a ConfigMap that hold a configuration; the first there is counts."""


WANTED: Final = f"a configuration, or a ConfigMap with {KEYS[0]}"
STARTER: Final = "ringleaf init conf writes one"
_GO_HINT: Final = "this is Go source: keep only the text between the backquotes"
_LINE: Final = re.compile(r"line (\d+), column \d+: ")
_SAYS_SOMETHING: Final = re.compile(r"^\s*(?!null$|~$)[^\s#-]", re.MULTILINE)
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def text_in(data: bytes) -> str:
    """The text of *data*; a file that says nothing is refused."""
    text = source.decoded(data)
    if not _SAYS_SOMETHING.search(text):
        raise source.BadInput(f"the file is empty, want {WANTED}")
    return text


def configuration_in(text: str) -> Source:
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


def _below(node: Any, step: object) -> tuple[Any, Any]:  # noqa: ANN401
    """The key or item at *step*, and its value; nothing where a merge hides it."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key, value
    return None, None


def read_source(file: str, shown: str) -> Source:
    """The configuration in *file*, or one line on why it cannot be read."""
    with one_line(shown, source.BadInput, starter=STARTER):
        return configuration_in(text_in(bytes_of(file, WANTED)))


def _steps(node: Any, path: Iterable[object]) -> list[Any]:  # noqa: ANN401
    """What stands along *path*, keys or items, as far as it is there."""
    steps = [node]
    for step in path:
        mark, node = _below(node, step)
        if mark is None:
            break
        steps.append(mark)
    return steps


def remark_lines(read: Source, remarks: Iterable[Remark]) -> list[str]:
    """The remarks in the order of the file, with lines where the reader has them."""
    lines = [(_line_of(read, remark), str(remark)) for remark in remarks]
    lines.sort(key=lambda each: each[0])
    return [f"line {line}: {text}" if line else text for line, text in lines]


def _line_of(read: Source, remark: Remark) -> int:
    """The line that a remark is about; 0 if it is not known."""
    if read.node is None or not remark.path:
        return 0
    return int(_steps(read.node, remark.path)[-1].start_mark.line) + 1


def read_file(file: str) -> tuple[Conf, list[str]]:
    """The configuration in *file*, and warnings; ``BadUse`` names what is wrong."""
    shown = name_of(file)
    read = read_source(file, shown)
    conf = read_conf(read.document, installed_plugins())
    if isinstance(conf, RefusedConf):
        first, *others = remark_lines(read, conf.problems)
        more = f"; and {len(others)} more: ringleaf check-conf {file} lists them"
        raise BadUse(f"{shown}: {first}{more if others else ''}")
    return conf, remark_lines(read, conf.warnings)
