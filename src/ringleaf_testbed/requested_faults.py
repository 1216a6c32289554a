"""Breaks parts of nodes as an annotation on them requests, and repairs them after.

So users of the testbed need nothing but kubectl.
"""

from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from typing import Final

from msgspec import Struct

from ringleaf_testbed.actor import Actor
from ringleaf_testbed.source import TestbedError

BROKEN: Final = "ringleaf.io/broken"
"""What is broken of a node: chips and words, with commas between them."""

WANTED: Final = (
    "numbers of its chips, network-N, node, switch, not-ready or refuses-pods, "
    "with commas between them"
)
_WORDS: Final = frozenset({"node", "switch", "not-ready", "refuses-pods"})
_NETWORK: Final = "network-"


class RequestedFaults(Struct, frozen=True):
    """What is to be broken of a node."""

    chips: frozenset[int] = frozenset()
    cut_off: frozenset[int] = frozenset()
    words: frozenset[str] = frozenset()


def requested_faults(text: str, chips: int) -> RequestedFaults | None:
    """What *text* wants broken of a node with so many chips; none if it is bad.

    >>> requested_faults("3, network-4, node", 8) == RequestedFaults(
    ...     frozenset({3}), frozenset({4}), frozenset({"node"})
    ... )
    True
    >>> requested_faults("8", 8), requested_faults("disk", 8)
    (None, None)
    >>> requested_faults("", 8) == RequestedFaults()
    True
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    words = frozenset(parts) & _WORDS
    chosen: dict[bool, set[int]] = {False: set(), True: set()}
    for part in parts:
        number = part.removeprefix(_NETWORK)
        if part in _WORDS:
            continue
        if not number.isdecimal() or int(number) >= chips:
            return None
        chosen[part != number].add(int(number))
    return RequestedFaults(frozenset(chosen[False]), frozenset(chosen[True]), words)


class Breaker:
    """Breaks and repairs parts of nodes until they match the annotations."""

    def __init__(self, actor: Actor, say: Callable[[str], None]) -> None:
        """Break machines of *actor*, and *say* in a line what is done."""
        self._actor, self._say = actor, say
        self._said: dict[str, str] = {}
        self._done: dict[str, RequestedFaults] = {}

    def look(self) -> None:
        """Do what the annotations of nodes say, where they changed.

        What cannot be done because the API server is away is done the next time.
        """
        with suppress(OSError, HTTPException, TestbedError):
            nodes, _version = self._actor.client.list_all("/api/v1/nodes")
            for node in nodes:
                meta = node["metadata"]
                name, text = meta["name"], meta.get("annotations", {}).get(BROKEN, "")
                if text != self._said.get(name, ""):
                    self._say(self._change(name, text))
                    self._said[name] = text

    def _change(self, name: str, text: str) -> str:
        """Break and repair the parts of a node that *text* names, and report it."""
        chips = self._actor.chips_of(name)
        if not chips:
            return f"node {name!r} has no chips; nothing of it is broken"
        damage = requested_faults(text, chips)
        if damage is None:
            return f"annotation {BROKEN} of node {name!r} is {text!r}, want {WANTED}"
        self._apply(name, damage, self._done.get(name, RequestedFaults()))
        self._done[name] = damage
        return f"broken of {name}: {text}" if text else f"{name} is whole again"

    def _apply(
        self, name: str, damage: RequestedFaults, before: RequestedFaults
    ) -> None:
        """Mend what is not to be broken any more, and break what is."""
        actor = self._actor
        mended = (before.chips | before.cut_off) - (damage.chips | damage.cut_off)
        actor.recover_chips(name, mended)
        actor.cut_off_chips(name, damage.cut_off - before.cut_off)
        actor.fail_chips(name, damage.chips - before.chips)
        for word in sorted(damage.words ^ before.words):
            broken = word in damage.words
            if word == "node":
                actor.fail_node(name, "UnHealthy" if broken else "Healthy")
            elif word == "switch":
                actor.fail_switch(name, "UnHealthy" if broken else "Healthy")
            elif word == "not-ready":
                actor.set_ready(name, ready=not broken)
            else:
                actor.refuse_pods(name, refuses=broken)
