"""What a plugin is."""

import pytest
from tests.plugins.stage import CHIPS, Stage, pods

from ringleaf.framework.plugin import (
    EVENTS,
    HOOKS,
    Plugin,
    Vote,
    defines,
    occupied,
    votes_of,
)
from ringleaf.framework.vocabulary import FLAG_OF, HIERARCHY_VOTES, VOTES
from ringleaf.framework.vocabulary import PLUGINS as DESCRIBED
from ringleaf.plugins import PLUGINS


@pytest.mark.parametrize("method", [*HOOKS.values(), *EVENTS])
def test_a_hook_that_nobody_defined_has_no_answer(method: str) -> None:
    hook = getattr(Plugin(Stage().view, {}), method)
    about = [None] * (hook.__code__.co_argcount - 1)

    with pytest.raises(NotImplementedError):
        hook(*about)


def test_every_hook_is_a_vote_that_configurations_know() -> None:
    assert set(HOOKS) <= set(VOTES)
    assert set(HOOKS) - set(FLAG_OF) == {"JobValid"}


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_votes_where_it_is_said_to(name: str) -> None:
    said = set(DESCRIBED[name].votes)
    said |= set(HIERARCHY_VOTES) if name == "drf" else set()

    assert set(votes_of(PLUGINS[name])) == said


def test_every_plugin_that_configurations_know_is_there() -> None:
    assert list(PLUGINS) == list(DESCRIBED)


def test_only_methods_of_its_own_are_hooks() -> None:
    assert defines(PLUGINS["gang"], "job_ready")
    assert not defines(PLUGINS["gang"], "overused")


def test_votes_are_as_in_volcano() -> None:
    assert [int(vote) for vote in (Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT)] == [
        1,
        0,
        -1,
    ]


def test_what_victims_use_is_what_they_hold() -> None:
    stage = Stage()
    stage.runs("a", "0 1")
    stage.runs("b", "2", chips=4)
    plugin = Plugin(stage.view, {})

    assert plugin.uses(pods("b0 a1 a7 c0")) == [{CHIPS: 4000}, {CHIPS: 8000}, {}, {}]


def test_pods_that_have_a_place_await_one_or_ended_well_are_counted_once() -> None:
    stage = Stage()
    standing = stage.runs("a", "0 1 2", replicas=6)
    standing.terminating = frozenset({2})
    standing.finished = frozenset({3, 4})
    assert occupied(standing) == 4

    standing.promised = frozenset({2, 4, 5})
    assert occupied(standing) == 6
