"""The configuration ``volcano-scheduler.conf``, read.

``read_conf`` turns plain values, as any YAML reader gives them, into a ``Conf``, or
into every problem they have. Nothing that an operator wrote is passed over without a
word: what Volcano logs and skips is a problem here (D22), what is accepted without
effect is a warning. What may be said stands in ``vocabulary``.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, TypeGuard

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.framework.plugin import Plugin, votes_of
from ringleaf.framework.vocabulary import (
    ACTIONS,
    AFFINITY,
    AFFINITY_ALIAS,
    ANY_RESOURCE,
    DEFAULT_ACTIONS,
    DEFAULT_FLAGS,
    DEFAULT_TIERS,
    ELSEWHERE,
    FLAG_OF,
    FLAGS,
    HIERARCHY,
    HIERARCHY_VOTES,
    INIT_PARAMS,
    PARAMETERS,
    PLUGINS,
    REFUSED_ACTIONS,
    REFUSED_PLUGINS,
    Argument,
    Kind,
    Value,
    Voter,
    find_argument,
)
from ringleaf.model.settings import Settings
from ringleaf.model.topology import quoted

Path = tuple[str | int, ...]
"""Where something stands in the configuration."""


class PluginConf(Struct, frozen=True):
    """One plugin as configured.

    Args:
        name: Ringleaf's name.
        written: The name in the file, which may be an alias.
        enabled: The flags in force, set or by default.
        arguments: Every argument with its value, set or by default.
        about: What it does, where it could vote, which arguments it takes.
        plugin: Its class, where somebody else wrote it.

    """

    name: str
    written: str
    enabled: frozenset[str]
    arguments: Mapping[str, Value]
    about: Voter
    plugin: type[Plugin] | None = None

    @property
    def votes(self) -> tuple[str, ...]:
        """Where it votes.

        >>> DEFAULT.tiers[0][2].votes
        ('Preemptable', 'Reclaimable')
        """
        return tuple(
            vote
            for vote in self._all_votes()
            if vote not in FLAG_OF or FLAG_OF[vote] in self.enabled
        )

    @property
    def changed(self) -> Mapping[str, bool]:
        """The flags that differ from the default."""
        differ = self.enabled ^ DEFAULT_FLAGS
        return {key: key in self.enabled for key in FLAGS if key in differ}

    def heeds(self, flag: str) -> bool:
        """Whether *flag* changes anything here: it has a vote that the flag governs."""
        if flag == HIERARCHY:
            return self.name == "drf"
        return any(FLAG_OF.get(vote) == flag for vote in self._all_votes())

    def _all_votes(self) -> tuple[str, ...]:
        extra = HIERARCHY_VOTES if HIERARCHY in self.enabled else ()
        return self.about.votes + (extra if self.name == "drf" else ())


class Remark(Struct, frozen=True):
    """A problem or a warning: what was found and wanted, and where it stands."""

    path: Path
    text: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.text}; hint: {self.hint}" if self.hint else self.text


class Conf(Struct, frozen=True):
    """A configuration that holds together.

    Args:
        actions: Names, in the order in which they run.
        tiers: Plugins, tier by tier.
        settings: What the init-params come to.
        parameters: Every init-param with its value, set or by default.
        action_arguments: Action → every argument with its value.
        others: Entries of ``configurations`` that belong to others, as they were.
        warnings: What has no effect, or not the one it seems to have.

    """

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginConf, ...], ...]
    settings: Settings
    parameters: Mapping[str, Value]
    action_arguments: Mapping[str, Mapping[str, Value]]
    others: Mapping[str, object]
    warnings: tuple[Remark, ...] = ()

    @property
    def quiet(self) -> "Conf":
        """The same for one who keeps the books and decides nothing."""
        return replace(self, actions=())


class Refused(Struct, frozen=True):
    """A configuration with problems: all of them, in the order of the file's parts."""

    problems: tuple[Remark, ...]
    warnings: tuple[Remark, ...] = ()


Others = Mapping[str, type[Plugin]]
"""Plugins that others wrote, by name."""

NO_OTHERS: Final[Others] = MappingProxyType({})


def read_conf(document: object, others: Others = NO_OTHERS) -> Conf | Refused:
    """The configuration in *document*, plain values; or everything wrong with it.

    Tiers may name *others* besides Ringleaf's own plugins.
    """
    notes = _Notes([], [])
    parts = _mapping(notes, (), document, _PARTS) or {}
    if "metrics" in parts:
        text = "metrics has no effect: only Volcano's plugin 'usage' reads it"
        notes.warn(("metrics",), text)
    actions = _actions(notes, parts.get("actions"))
    tiers = _tiers(notes, parts.get("tiers"), others)
    entries = _entries(notes, parts.get("configurations"))
    parameters = _parameters(notes, entries)
    action_arguments = _action_arguments(notes, entries, actions)
    unread = _others(notes, entries)
    settings = _settings(notes, entries, parameters)
    if notes.problems:
        return Refused(tuple(notes.problems), tuple(notes.warnings))
    return Conf(
        actions,
        tiers,
        settings,
        {**parameters, "reserve-nodes": settings.reserve_nodes},
        action_arguments,
        unread,
        tuple(notes.warnings),
    )


_PARTS: Final = ("actions", "tiers", "configurations", "metrics")


class _Notes(Struct, frozen=True):
    """What is found on the way."""

    problems: list[Remark]
    warnings: list[Remark]

    def refuse(self, path: Path, text: str, hint: str | None = None) -> None:
        self.problems.append(Remark(path, text, hint))

    def warn(self, path: Path, text: str, hint: str | None = None) -> None:
        self.warnings.append(Remark(path, text, hint))


class _Entry(Struct, frozen=True):
    """One of ``configurations``: where its arguments stand, and what they are."""

    path: Path
    arguments: object


def _actions(notes: _Notes, found: object) -> tuple[str, ...]:
    path = ("actions",)
    if found is None:
        default = ", ".join(DEFAULT_ACTIONS)
        notes.warn((), f"no actions are configured: the default counts, {default}")
        return DEFAULT_ACTIONS
    if found == []:
        notes.warn(path, "actions is empty: nothing is decided")
        return ()
    if not isinstance(found, str) or not found.strip():
        notes.refuse(path, f"actions is {_told(found)}, want {Kind.NAMES}")
        return ()
    names = tuple(name.strip() for name in found.split(","))
    for name in names:
        if name in REFUSED_ACTIONS:
            text = f"action {quoted(name)} is Volcano's and not in Ringleaf"
            notes.refuse(path, text, REFUSED_ACTIONS[name])
        elif name not in ACTIONS:
            known = (*ACTIONS, *REFUSED_ACTIONS)
            hint = _closest(name, known) or f"actions are {', '.join(ACTIONS)}"
            notes.refuse(path, f"unknown action {quoted(name)}", hint)
    if "allocate" not in names:
        notes.warn(path, "'allocate' is not among the actions: no job is placed")
    return names


def _tiers(
    notes: _Notes, found: object, others: Others
) -> tuple[tuple[PluginConf, ...], ...]:
    if found is None or found == []:
        default = "; ".join(", ".join(tier) for tier in DEFAULT_TIERS)
        notes.warn((), f"no tiers are configured: the default counts, {default}")
        found = [
            {"plugins": [{"name": name} for name in tier]} for tier in DEFAULT_TIERS
        ]
    seen: dict[str, Path] = {}
    tiers = tuple(
        _tier(notes, ("tiers", i), tier, seen, others)
        for i, tier in enumerate(_list(notes, ("tiers",), found, "a list of tiers"))
    )
    if AFFINITY not in seen:
        notes.warn(
            ("tiers",),
            "no tier has the plugin 'affinity' (topology910, volcano-npu): "
            "it is in force all the same",
        )
    return tiers


def _tier(
    notes: _Notes, path: Path, found: object, seen: dict[str, Path], others: Others
) -> tuple[PluginConf, ...]:
    """The plugins of one tier; *seen* learns where each stands."""
    path = (*path, "plugins")
    tier = _mapping(notes, path[:-1], found, ("plugins",)) or {}
    entries = tier.get("plugins")
    plugins = []
    for i, entry in enumerate(_list(notes, path, entries, "a list of plugins")):
        plugin = _plugin(notes, (*path, i), entry, others)
        if plugin is None:
            continue
        if plugin.name in seen:
            notes.refuse(
                (*path, i, "name"),
                f"plugin {quoted(plugin.name)} is configured twice, want once",
                f"first at {_written(seen[plugin.name])}",
            )
        seen.setdefault(plugin.name, (*path, i))
        plugins.append(plugin)
    _refuse_two_shares(notes, path, plugins)
    return tuple(plugins)


def _refuse_two_shares(
    notes: _Notes, path: Path, plugins: Iterable[PluginConf]
) -> None:
    """Volcano's rule: both would share the cluster between queues."""
    names = {p.name for p in plugins if p.name != "drf" or HIERARCHY in p.enabled}
    if {"drf", "proportion"} <= names:
        notes.refuse(
            path,
            f"'drf' with {HIERARCHY} and 'proportion' are in one tier, want one",
            "both would share the cluster between queues",
        )


def _plugin(
    notes: _Notes, path: Path, found: object, others: Others
) -> PluginConf | None:
    keys = ("name", "arguments", *FLAGS)
    entry = _mapping(notes, path, found, keys)
    written = None if entry is None else _name(notes, path, entry)
    if entry is None or written is None:
        return None
    name = AFFINITY if AFFINITY_ALIAS.fullmatch(written) else written
    about = _about(notes, (*path, "name"), name, others)
    if about is None:
        return None
    who = f"plugin {quoted(written)}"
    given = _Entry((*path, "arguments"), entry.get("arguments"))
    arguments = _arguments(notes, given, about.arguments, who)
    _warn_of_unlisted(notes, given.path, arguments)
    flags = _flags(notes, path, entry, who)
    return PluginConf(name, written, flags, arguments, about, others.get(name))


def _about(notes: _Notes, path: Path, name: str, others: Others) -> Voter | None:
    """What is known of the plugin *name*; None for a plugin that is nobody's."""
    if name in others and name in PLUGINS:
        text = f"plugin {quoted(name)} is Ringleaf's and somebody else's too, want one"
        notes.refuse(path, text, "the other must be uninstalled or renamed")
    if name in PLUGINS:
        return PLUGINS[name]
    if name in others:
        plugin = others[name]
        return Voter(name, plugin.meaning, votes_of(plugin), plugin.arguments)
    if name in REFUSED_PLUGINS:
        text = f"plugin {quoted(name)} is Volcano's and not in Ringleaf"
        notes.refuse(path, text, REFUSED_PLUGINS[name])
        return None
    own = (*PLUGINS, *others)
    known = (*own, *REFUSED_PLUGINS, "topology910", "volcano-npu")
    hint = _closest(name, known) or f"plugins are {', '.join(own)}"
    notes.refuse(path, f"unknown plugin {quoted(name)}", hint)
    return None


def _name(notes: _Notes, path: Path, entry: Mapping[str, object]) -> str | None:
    name = entry.get("name")
    if isinstance(name, str) and name:
        return name
    found = f"is {_told(name)}" if "name" in entry else "is missing"
    notes.refuse(path, f"{_written((*path, 'name'))} {found}, want a name")
    return None


def _flags(
    notes: _Notes, path: Path, entry: Mapping[str, object], who: str
) -> frozenset[str]:
    enabled = set(DEFAULT_FLAGS)
    for key, found in entry.items():
        if key not in FLAGS:
            continue
        if not isinstance(found, bool):
            text = f"{who}: {key} is {_told(found)}, want {Kind.SWITCH}"
            notes.refuse((*path, key), text, _unquote(found, Kind.SWITCH))
        (enabled.add if found is True else enabled.discard)(key)
    return frozenset(enabled)


def _warn_of_unlisted(
    notes: _Notes, path: Path, arguments: Mapping[str, Value]
) -> None:
    """A resource is weighed by binpack only where it is also listed."""
    prefix = "binpack.resources."
    listed = arguments.get(prefix[:-1])
    for key in arguments:
        name = key.removeprefix(prefix)
        if name != key and isinstance(listed, tuple) and name not in listed:
            notes.warn(
                (*path, key),
                f"plugin 'binpack': argument {quoted(key)} has no effect: "
                f"{quoted(name)} is not listed in {prefix[:-1]}",
            )


def _entries(notes: _Notes, found: object) -> Mapping[str, _Entry]:
    entries: dict[str, _Entry] = {}
    top = ("configurations",)
    for i, each in enumerate(_list(notes, top, found, "a list of {name, arguments}")):
        path = (*top, i)
        entry = _mapping(notes, path, each, ("name", "arguments"))
        name = None if entry is None else _name(notes, path, entry)
        if entry is None or name is None:
            continue
        if name in entries:
            text = f"configurations name {quoted(name)} twice, want once"
            notes.refuse((*path, "name"), text)
        else:
            entries[name] = _Entry((*path, "arguments"), entry.get("arguments"))
    return entries


def _parameters(notes: _Notes, entries: Mapping[str, _Entry]) -> Mapping[str, Value]:
    entry = entries.get(INIT_PARAMS, _Entry((), None))
    if isinstance(entry.arguments, dict):
        plain = {key: _loose(key, found) for key, found in entry.arguments.items()}
        entry = _Entry(entry.path, plain)
    return _arguments(notes, entry, PARAMETERS, INIT_PARAMS)


def _loose(key: str, found: object) -> object:
    """A number in quotes as the number that it is: the vendor quotes everything."""
    if key in PARAMETERS and PARAMETERS[key].kind is Kind.WHOLE and _is_whole(found):
        return int(found)
    return found


def _is_whole(found: object) -> TypeGuard[str]:
    return isinstance(found, str) and bool(re.fullmatch(r"-?[0-9]{1,18}", found))


def _action_arguments(
    notes: _Notes, entries: Mapping[str, _Entry], actions: Iterable[str]
) -> Mapping[str, Mapping[str, Value]]:
    """Action → its arguments, for the actions that run."""
    for name, entry in entries.items():
        if name in ACTIONS and name not in actions:
            text = f"arguments of action {quoted(name)} have no effect: it does not run"
            notes.warn(entry.path[:-1], text)
    return {
        name: _arguments(
            notes,
            entries.get(name, _Entry((), None)),
            ACTIONS[name].arguments,
            f"action {quoted(name)}",
        )
        for name in ACTIONS
        if name in actions or name in entries
    }


def _others(notes: _Notes, entries: Mapping[str, _Entry]) -> Mapping[str, object]:
    others = {
        name: entry
        for name, entry in entries.items()
        if name != INIT_PARAMS and name not in ACTIONS
    }
    for name, entry in others.items():
        hint = _closest(name, (INIT_PARAMS, *ACTIONS))
        text = f"configurations for {quoted(name)} belong to others and have no effect"
        notes.warn((*entry.path[:-1], "name"), text, hint)
    return {name: entry.arguments for name, entry in others.items()}


def _settings(
    notes: _Notes, entries: Mapping[str, _Entry], parameters: Mapping[str, Value]
) -> Settings:
    settings = msgspec.convert(
        {
            "job_requests": parameters["job-requests"],
            "switch_mode": parameters["nslb-version"],
            "shared_leaves": parameters["shared-tor-num"],
            "nodes_per_leaf": parameters["nodes-per-leaf"],
            "leaf_choice": parameters["leaf-choice"],
            "share_common_leaves": parameters["share-common-leaves"],
            "superpod_size": parameters["super-pod-size"],
            "reserve_nodes": parameters["reserve-nodes"],
            "default_tor_affinity": parameters["default-tor-affinity"],
            "default_fault_scheduling": parameters["default-fault-scheduling"],
            "repairs": {
                "grace_s": parameters["grace-over-time"],
                "block_after_s": parameters["superpod-escalation-seconds"],
                "job_after_s": parameters["job-escalation-seconds"],
                "hold_s": parameters["repair-hold-seconds"],
                "brake_percent": parameters["fault-brake-percent"],
                "brake_s": parameters["fault-brake-seconds"],
                "run_within_s": parameters["run-within-seconds"],
                "aside_s": parameters["set-aside-seconds"],
            },
        },
        Settings,
    )
    size, reserve = settings.superpod_size, settings.reserve_nodes
    if reserve < size:
        return settings
    kept = 2 if size > 2 else 0  # noqa: PLR2004 - the vendor's fallback
    at = entries.get(INIT_PARAMS, _Entry((), None)).path
    notes.warn(
        (*at, "reserve-nodes"),
        f"{INIT_PARAMS}: argument 'reserve-nodes' is {reserve}, not below "
        f"super-pod-size {size}: {kept} is used",
    )
    return msgspec.structs.replace(settings, reserve_nodes=kept)


def _arguments(
    notes: _Notes, entry: _Entry, known: Mapping[str, Argument], who: str
) -> Mapping[str, Value]:
    """Every argument in *known* with its value, read or by default."""
    values = {
        key: argument.default
        for key, argument in known.items()
        if not key.endswith(ANY_RESOURCE)
    }
    if not isinstance(entry.arguments, dict | None):
        text = f"{who}: arguments is {_told(entry.arguments)}, want a mapping"
        notes.refuse(entry.path, text)
        return values
    for key, found in (entry.arguments or {}).items():
        argument = find_argument(known, key)
        if argument is None:
            text = f"{who}: unknown argument {_told(key)}"
            notes.refuse((*entry.path, key), text, _argument_hint(known, key, who))
            continue
        value = _READERS[argument.kind](argument, found)
        if value is None:
            is_, want = _told(found), argument.wanted
            text = f"{who}: argument {quoted(key)} is {is_}, want {want}"
            notes.refuse((*entry.path, key), text, _unquote(found, argument.kind))
            continue
        values[key] = value
        if argument.idle:
            text = f"{who}: argument {quoted(key)} has no effect: {argument.idle}"
            notes.warn((*entry.path, key), text)
    return values


def _argument_hint(known: Mapping[str, Argument], key: object, who: str) -> str:
    if known is PARAMETERS and key in ELSEWHERE:
        return ELSEWHERE[str(key)]
    takes = f"takes {', '.join(known)}" if known else "takes no arguments"
    return _closest(str(key), known) or f"{who} {takes}"


def _unquote(found: object, kind: Kind) -> str | None:
    """Whoever wrote a number or a switch in quotes meant it; Volcano skips it."""
    number = kind in (Kind.WHOLE, Kind.NUMBER)
    pattern = r"-?[0-9]{1,18}(\.[0-9]{1,18})?" if number else r"(?i:true|false)"
    if kind in (Kind.TEXT, Kind.NAMES) or not isinstance(found, str):
        return None
    if not re.fullmatch(pattern, found):
        return None
    return f"write {found} without quotes; Volcano would pass over it"


def _as_whole(argument: Argument, found: object) -> Value:
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found if argument.low <= found <= argument.high else None


def _as_number(argument: Argument, found: object) -> Value:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if argument.low <= found <= argument.high else None


def _as_switch(_argument: Argument, found: object) -> Value:
    if isinstance(found, str):
        return {"true": True, "false": False}.get(found.lower())
    return found if isinstance(found, bool) else None


def _as_choice(argument: Argument, found: object) -> Value:
    # nslb-version is often written as a number, 2.0 without quotes; YAML reads a bare
    # off as false.
    text = "off" if found is False else str(found)
    return text if text in argument.choices else None


def _as_text(_argument: Argument, found: object) -> Value:
    return found if isinstance(found, str) else None


def _as_names(_argument: Argument, found: object) -> Value:
    if not isinstance(found, str) or not found.isprintable():
        return None
    return tuple(name.strip() for name in found.split(",") if name.strip())


def _as_points(_argument: Argument, found: object) -> Value:
    if not isinstance(found, list):
        return None
    points = [_point(each) for each in found]
    return None if None in points else tuple(points)


def _point(found: object) -> tuple[int, int] | None:
    if not isinstance(found, dict) or set(found) != {"utilization", "score"}:
        return None
    utilization, score = found["utilization"], found["score"]
    if type(utilization) is not int or type(score) is not int:
        return None
    return (utilization, score)


_READERS: Final[Mapping[Kind, Callable[[Argument, Any], Value]]] = {
    Kind.WHOLE: _as_whole,
    Kind.NUMBER: _as_number,
    Kind.SWITCH: _as_switch,
    Kind.CHOICE: _as_choice,
    Kind.TEXT: _as_text,
    Kind.NAMES: _as_names,
    Kind.POINTS: _as_points,
}
"""Each gives the value, or None for what the argument does not want."""


def _mapping(
    notes: _Notes, path: Path, found: object, keys: Sequence[str]
) -> Mapping[str, Any] | None:
    """*found* with its known keys, or None; everything else is a problem."""
    place = _written(path) or "the configuration"
    if found is None:
        return {}
    if not isinstance(found, dict):
        first = ", ".join(keys[:2])
        notes.refuse(path, f"{place} is {_told(found)}, want a mapping with {first}")
        return None
    for key in found:
        if key not in keys:
            flag = "flag" if str(key).startswith("enable") else "key"
            hint = _closest(str(key), keys) or f"it may have {', '.join(keys)}"
            text = f"{place} has the unknown {flag} {_told(key)}"
            notes.refuse((*path, key), text, hint)
    return {key: found[key] for key in found if key in keys}


def _list(notes: _Notes, path: Path, found: object, wanted: str) -> list[Any]:
    if not isinstance(found, list | None):
        notes.refuse(path, f"{_written(path)} is {_told(found)}, want {wanted}")
        return []
    return found or []


def _closest(name: str, known: Iterable[str]) -> str | None:
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]!r}?" if close else None


def _written(path: Path) -> str:
    """*path* as people write it.

    >>> _written(("tiers", 0, "plugins", 1, "name"))
    'tiers[0].plugins[1].name'
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def _told(value: object) -> str:
    """What was found, as people recognise it.

    >>> _told(True), _told([1]), _told("5"), _told({})
    ('true', 'a list', "'5'", 'a mapping')
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return quoted(value)
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return str(value)[:60]


def _default() -> Conf:
    conf = read_conf(None)
    assert isinstance(conf, Conf)
    return msgspec.structs.replace(conf, warnings=())


DEFAULT: Final = _default()
"""The configuration that counts without a file (D34)."""
