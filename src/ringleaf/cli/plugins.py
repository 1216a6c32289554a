"""Plugins that others wrote, found among the installed packages.

A package offers one by the entry point group ``ringleaf.plugins``: the name by which
configurations call it, and its class. Only the edges look there; the core is handed
the classes.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Final

from ringleaf.cli.failure import BadUse
from ringleaf.framework.plugin import Plugin

GROUP: Final = "ringleaf.plugins"


def installed_plugins() -> dict[str, type[Plugin]]:
    """Name → class of every plugin that an installed package offers, by name."""
    found: dict[str, type[Plugin]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (e.name, e.value)):
        if entry.name in found:
            raise BadUse(f"plugin {entry.name!r} is offered twice, want once")
        found[entry.name] = _class_of(entry)
    return found


def _class_of(entry: EntryPoint) -> type[Plugin]:
    named = f"plugin {entry.name!r} ({entry.value})"
    try:
        plugin = entry.load()
    except Exception as error:
        raise BadUse(f"{named} cannot be loaded: {error}") from error
    if not isinstance(plugin, type) or not issubclass(plugin, Plugin):
        want = f"want a class derived from {Plugin.__name__}"
        raise BadUse(f"{named} is no plugin, {want}")
    return plugin
