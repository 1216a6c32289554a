"""What is written in the scenario format is read back as it was."""

import json
from collections import Counter
from typing import get_args

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import ConfChanged, Event, NodesChanged
from ringleaf.model.cluster import Node
from ringleaf.model.fault import FaultMode
from ringleaf.model.job import Job
from ringleaf.model.queue import Queue
from ringleaf.model.settings import DefaultAffinity, Settings
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.defaults import with_defaults
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator import encode, encode_rules
from ringleaf.simulator.event_context import EventContext
from ringleaf.simulator.events import EventReader
from ringleaf.simulator.fault import read
from ringleaf.simulator.format import EventEntry, SettingsEntry
from ringleaf.simulator.log import Beginning, read_beginning, read_head, written_head
from ringleaf.simulator.plain import amount
from ringleaf.simulator.wanted import wanted_at
from tests.effort import assert_reached, examples
from tests.simulator import nouns

# A failure is read as it comes: making it smaller takes minutes, events are large.
bounded = settings(
    max_examples=examples(200),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def again(event: Event) -> Event:
    """*event*, written as JSON and read."""
    plain = json.loads(msgspec.json.encode(encode.event(event)))
    entry = read(plain, EventEntry, "an event", wanted_at)
    stage = EventContext({}, {}, SettingsEntry(), strict=False)
    return EventReader(stage, "event", entry, 0.0, []).read()


def unwarned(event: Event) -> Event:
    """*event* without what was remarked when its configuration was read."""
    if isinstance(event, ConfChanged):
        return ConfChanged(replace(event.conf, warnings=()))
    return event


def test_an_event_is_read_back_as_it_was() -> None:
    """Every kind of event is drawn."""
    seen: Counter[str] = Counter()

    def check(event: Event) -> None:
        assert unwarned(again(event)) == event
        seen[type(event).__name__] += 1

    for kind in nouns.kinds_of_events:
        settings(bounded, max_examples=examples(40))(given(kind)(check))()
    assert_reached(seen, *(kind.__name__ for kind in get_args(Event)))


@bounded
@given(nouns.several_nodes, nouns.leaves, nouns.queues, nouns.configurations())
def test_a_beginning_is_read_back_as_it_was(
    nodes: tuple[Node, ...], leaves: tuple[Leaf, ...], queue: Queue, conf: Conf
) -> None:
    start = Beginning(nodes, leaves, (queue,), conf)

    plain = json.loads(msgspec.json.encode(written_head(start)))
    found = read_beginning(read_head(plain))

    assert replace(found, conf=replace(found.conf, warnings=())) == start


def test_the_default_configuration_is_read_back_as_it_was() -> None:
    event = ConfChanged(replace(DEFAULT, warnings=()))

    assert unwarned(again(event)) == event


def test_nodes_that_differ_are_told_apart() -> None:
    """The other tests mean something: equality sees every field."""
    node = Node("a", next(iter(PRODUCTS.values())), 8, 255)

    for change in ({"free": 1}, {"slot": 3}, {"labels": {"a": "b"}}, {"ready": False}):
        assert again(NodesChanged((replace(node, leaf="L", **change),))) != (
            NodesChanged((replace(node, leaf="L"),))
        )


@pytest.mark.parametrize("limit", [None, 4])
def test_settings_are_written_whole(limit: int | None) -> None:
    written = encode_rules.settings(Settings(nodes_per_leaf=limit))

    assert set(written) == set(SettingsEntry.__struct_encode_fields__)
    assert written["nodes-per-leaf"] == limit


@pytest.mark.parametrize(
    ("thousandths", "written"),
    [
        (0, 0),
        (1, "1m"),
        (1000, 1),
        (1500, "1500m"),
        ((1 << 61) - 1, "2305843009213693.951"),
        (1 << 61, "2305843009213693.952"),
    ],
)
def test_amounts_are_exact(thousandths: int, written: int | str) -> None:
    assert amount(thousandths) == written


def test_d38_d39_a_job_says_what_it_declines_and_not_what_was_filled_in() -> None:
    both = Settings(
        default_tor_affinity=DefaultAffinity.NORMAL,
        default_fault_scheduling=FaultMode.GRACE,
    )
    plain = Job("j", PRODUCTS["atlas-800t-a2"], 8, 2, framework="pytorch")
    labels = ("tor-affinity", "fault-scheduling")

    declined = encode.job(replace(plain, declined=labels))

    assert declined["tor-affinity"] == "null"
    assert declined["fault-scheduling"] == "off"
    assert declined["framework"] == "pytorch"
    filled_in = with_defaults(plain, both)
    assert filled_in.assumed == labels
    assert encode.job(filled_in) == encode.job(plain)
    assert {*labels}.isdisjoint(encode.job(plain))
    assert encode_rules.settings(both)["default-tor-affinity"] == "normal-schema"
    assert encode_rules.settings(both)["default-fault-scheduling"] == "grace"
