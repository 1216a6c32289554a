"""The configuration ``volcano-scheduler.conf``, read.

``read_conf`` turns plain values, as any YAML reader gives them, into a ``Conf``, or
into every problem they have. Nothing that an operator wrote is passed over without a
word: what Volcano logs and skips is a problem here (D22), what is accepted without
effect is a warning. What may be said stands in ``vocabulary``.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeGuard

import msgspec

from ringleaf.config.arguments import ArgumentKind, Value, Voter
from ringleaf.config.conf import NO_OTHERS, Conf, Others, Path, PluginConf, RefusedConf
from ringleaf.config.notes import (
    ConfEntry,
    Notes,
    checked_arguments,
    checked_list,
    checked_mapping,
    path_words,
    suggestion,
    unquoted,
    value_words,
)
from ringleaf.config.parameters import INIT_PARAMS, PARAMETERS
from ringleaf.config.vocabulary import (
    ACTIONS,
    AFFINITY,
    AFFINITY_ALIAS,
    DEFAULT_ACTIONS,
    DEFAULT_FLAGS,
    DEFAULT_TIERS,
    FLAGS,
    HIERARCHY,
    KNOWN_PLUGINS,
    REFUSED_ACTIONS,
    REFUSED_PLUGINS,
)
from ringleaf.model.settings import Settings
from ringleaf.model.topology import quoted


def read_conf(document: object, others: Others = NO_OTHERS) -> Conf | RefusedConf:
    """The configuration in *document*, plain values; or everything wrong with it.

    Tiers may name *others* besides Ringleaf's own plugins.
    """
    notes = Notes([], [])
    parts = checked_mapping(notes, (), document, _PARTS) or {}
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
        return RefusedConf(tuple(notes.problems), tuple(notes.warnings))
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


def _actions(notes: Notes, found: object) -> tuple[str, ...]:
    path = ("actions",)
    if found is None:
        default = ", ".join(DEFAULT_ACTIONS)
        notes.warn((), f"no actions are configured: the default applies, {default}")
        return DEFAULT_ACTIONS
    if found == []:
        notes.warn(path, "actions is empty: no job is scheduled")
        return ()
    if not isinstance(found, str) or not found.strip():
        notes.refuse(
            path, f"actions is {value_words(found)}, want {ArgumentKind.NAMES}"
        )
        return ()
    names = tuple(name.strip() for name in found.split(","))
    for name in names:
        if name in REFUSED_ACTIONS:
            text = f"action {quoted(name)} is Volcano's and not in Ringleaf"
            notes.refuse(path, text, REFUSED_ACTIONS[name])
        elif name not in ACTIONS:
            known = (*ACTIONS, *REFUSED_ACTIONS)
            hint = suggestion(name, known) or f"actions are {', '.join(ACTIONS)}"
            notes.refuse(path, f"unknown action {quoted(name)}", hint)
    if "allocate" not in names:
        notes.warn(path, "'allocate' is not among the actions: no job is placed")
    return names


def _tiers(
    notes: Notes, found: object, others: Others
) -> tuple[tuple[PluginConf, ...], ...]:
    if found is None or found == []:
        default = "; ".join(", ".join(tier) for tier in DEFAULT_TIERS)
        notes.warn((), f"no tiers are configured: the default applies, {default}")
        found = [
            {"plugins": [{"name": name} for name in tier]} for tier in DEFAULT_TIERS
        ]
    seen: dict[str, Path] = {}
    tiers = tuple(
        _tier(notes, ("tiers", i), tier, seen, others)
        for i, tier in enumerate(
            checked_list(notes, ("tiers",), found, "a list of tiers")
        )
    )
    if AFFINITY not in seen:
        notes.warn(
            ("tiers",),
            "no tier has the plugin 'affinity' (topology910, volcano-npu): "
            "it applies anyway",
        )
    return tiers


def _tier(
    notes: Notes, path: Path, found: object, seen: dict[str, Path], others: Others
) -> tuple[PluginConf, ...]:
    """The plugins of one tier; *seen* learns where each stands."""
    path = (*path, "plugins")
    tier = checked_mapping(notes, path[:-1], found, ("plugins",)) or {}
    entries = tier.get("plugins")
    plugins = []
    for i, entry in enumerate(checked_list(notes, path, entries, "a list of plugins")):
        plugin = _plugin(notes, (*path, i), entry, others)
        if plugin is None:
            continue
        if plugin.name in seen:
            notes.refuse(
                (*path, i, "name"),
                f"plugin {quoted(plugin.name)} is configured twice, want once",
                f"first at {path_words(seen[plugin.name])}",
            )
        seen.setdefault(plugin.name, (*path, i))
        plugins.append(plugin)
    _refuse_two_shares(notes, path, plugins)
    return tuple(plugins)


def _refuse_two_shares(notes: Notes, path: Path, plugins: Iterable[PluginConf]) -> None:
    """Volcano's rule: both would share the cluster between queues."""
    names = {p.name for p in plugins if p.name != "drf" or HIERARCHY in p.enabled}
    if {"drf", "proportion"} <= names:
        notes.refuse(
            path,
            f"'drf' with {HIERARCHY} and 'proportion' are in one tier, want one",
            "both would share the cluster between queues",
        )


def _plugin(
    notes: Notes, path: Path, found: object, others: Others
) -> PluginConf | None:
    keys = ("name", "arguments", *FLAGS)
    entry = checked_mapping(notes, path, found, keys)
    written = None if entry is None else _name(notes, path, entry)
    if entry is None or written is None:
        return None
    name = AFFINITY if AFFINITY_ALIAS.fullmatch(written) else written
    about = _about(notes, (*path, "name"), name, others)
    if about is None:
        return None
    owner = f"plugin {quoted(written)}"
    given = ConfEntry((*path, "arguments"), entry.get("arguments"))
    arguments = checked_arguments(notes, given, about.arguments, owner)
    _warn_of_unlisted(notes, given.path, arguments)
    flags = _flags(notes, path, entry, owner)
    return PluginConf(name, written, flags, arguments, about, others.get(name))


def _about(notes: Notes, path: Path, name: str, others: Others) -> Voter | None:
    """What is known of the plugin *name*; None for an unknown plugin."""
    if name in others and name in KNOWN_PLUGINS:
        text = f"plugin {quoted(name)} is built in and installed too, want one"
        notes.refuse(path, text, "uninstall or rename the other one")
    if name in KNOWN_PLUGINS:
        return KNOWN_PLUGINS[name]
    if name in others:
        plugin = others[name]
        return Voter(name, plugin.meaning, plugin.votes(), plugin.arguments)
    if name in REFUSED_PLUGINS:
        text = f"plugin {quoted(name)} is Volcano's and not in Ringleaf"
        notes.refuse(path, text, REFUSED_PLUGINS[name])
        return None
    own = (*KNOWN_PLUGINS, *others)
    known = (*own, *REFUSED_PLUGINS, "topology910", "volcano-npu")
    hint = suggestion(name, known) or f"plugins are {', '.join(own)}"
    notes.refuse(path, f"unknown plugin {quoted(name)}", hint)
    return None


def _name(notes: Notes, path: Path, entry: Mapping[str, object]) -> str | None:
    name = entry.get("name")
    if isinstance(name, str) and name:
        return name
    found = f"is {value_words(name)}" if "name" in entry else "is missing"
    notes.refuse(path, f"{path_words((*path, 'name'))} {found}, want a name")
    return None


def _flags(
    notes: Notes, path: Path, entry: Mapping[str, object], owner: str
) -> frozenset[str]:
    enabled = set(DEFAULT_FLAGS)
    for key, found in entry.items():
        if key not in FLAGS:
            continue
        if not isinstance(found, bool):
            text = f"{owner}: {key} is {value_words(found)}, want {ArgumentKind.SWITCH}"
            notes.refuse((*path, key), text, unquoted(found, ArgumentKind.SWITCH))
        (enabled.add if found is True else enabled.discard)(key)
    return frozenset(enabled)


def _warn_of_unlisted(notes: Notes, path: Path, arguments: Mapping[str, Value]) -> None:
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


def _entries(notes: Notes, found: object) -> Mapping[str, ConfEntry]:
    entries: dict[str, ConfEntry] = {}
    top = ("configurations",)
    for i, each in enumerate(
        checked_list(notes, top, found, "a list of {name, arguments}")
    ):
        path = (*top, i)
        entry = checked_mapping(notes, path, each, ("name", "arguments"))
        name = None if entry is None else _name(notes, path, entry)
        if entry is None or name is None:
            continue
        if name in entries:
            text = f"configurations name {quoted(name)} twice, want once"
            notes.refuse((*path, "name"), text)
        else:
            entries[name] = ConfEntry((*path, "arguments"), entry.get("arguments"))
    return entries


def _parameters(notes: Notes, entries: Mapping[str, ConfEntry]) -> Mapping[str, Value]:
    entry = entries.get(INIT_PARAMS, ConfEntry((), None))
    if isinstance(entry.arguments, dict):
        plain = {key: _loose(key, found) for key, found in entry.arguments.items()}
        entry = ConfEntry(entry.path, plain)
    return checked_arguments(notes, entry, PARAMETERS, INIT_PARAMS)


def _loose(key: str, found: object) -> object:
    """A number in quotes as the number that it is: the vendor quotes everything."""
    if (
        key in PARAMETERS
        and PARAMETERS[key].kind is ArgumentKind.WHOLE
        and _is_whole(found)
    ):
        return int(found)
    return found


def _is_whole(found: object) -> TypeGuard[str]:
    return isinstance(found, str) and bool(re.fullmatch(r"-?[0-9]{1,18}", found))


def _action_arguments(
    notes: Notes, entries: Mapping[str, ConfEntry], actions: Iterable[str]
) -> Mapping[str, Mapping[str, Value]]:
    """Action → its arguments, for the actions that run."""
    for name, entry in entries.items():
        if name in ACTIONS and name not in actions:
            text = f"arguments of action {quoted(name)} have no effect: it does not run"
            notes.warn(entry.path[:-1], text)
    return {
        name: checked_arguments(
            notes,
            entries.get(name, ConfEntry((), None)),
            ACTIONS[name].arguments,
            f"action {quoted(name)}",
        )
        for name in ACTIONS
        if name in actions or name in entries
    }


def _others(notes: Notes, entries: Mapping[str, ConfEntry]) -> Mapping[str, object]:
    others = {
        name: entry
        for name, entry in entries.items()
        if name != INIT_PARAMS and name not in ACTIONS
    }
    for name, entry in others.items():
        hint = suggestion(name, (INIT_PARAMS, *ACTIONS))
        text = f"configurations for {quoted(name)} have no effect: they are not read"
        notes.warn((*entry.path[:-1], "name"), text, hint)
    return {name: entry.arguments for name, entry in others.items()}


def _settings(
    notes: Notes, entries: Mapping[str, ConfEntry], parameters: Mapping[str, Value]
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
    at = entries.get(INIT_PARAMS, ConfEntry((), None)).path
    notes.warn(
        (*at, "reserve-nodes"),
        f"{INIT_PARAMS}: argument 'reserve-nodes' is {reserve}, not below "
        f"super-pod-size {size}: {kept} is used",
    )
    return msgspec.structs.replace(settings, reserve_nodes=kept)


def _default() -> Conf:
    conf = read_conf(None)
    assert isinstance(conf, Conf)
    return msgspec.structs.replace(conf, warnings=())


DEFAULT: Final = _default()
"""The configuration that counts without a file (D34)."""
