"""What a plugin is."""

from collections.abc import Sequence
from typing import ClassVar

import pytest
from tests.plugins.stage import CHIPS, Stage, pods

from ringleaf.config.vocabulary import FLAG_OF, HIERARCHY_VOTES, VOTES
from ringleaf.config.vocabulary import KNOWN_PLUGINS as DESCRIBED
from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import (
    EVENTS,
    HOOKS,
    Plugin,
    PluginSettings,
    Victim,
    Vote,
    defines,
    judges,
    occupied,
    use_of,
)
from ringleaf.model.demand import NOTHING
from ringleaf.plugins import PLUGINS


@pytest.mark.parametrize("method", [*HOOKS.values(), *EVENTS])
def test_a_hook_that_a_plugin_does_not_define_has_no_answer(method: str) -> None:
    hook = getattr(Plugin(Stage().view, {}), method)
    about = [None] * (hook.__code__.co_argcount - 1)

    with pytest.raises(NotImplementedError):
        hook(*about)


def test_a_plugin_that_does_not_say_so_has_no_say_in_demands() -> None:
    assert Plugin(Stage().view, {}).effective_demand(NOTHING) is None


def test_every_hook_is_a_vote_that_configurations_know() -> None:
    assert set(HOOKS) <= set(VOTES)
    assert set(HOOKS) - set(FLAG_OF) == {"JobValid"}


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_votes_where_it_is_said_to(name: str) -> None:
    said = set(DESCRIBED[name].votes)
    said |= set(HIERARCHY_VOTES) if name == "drf" else set()
    if name == "affinity":  # sessions place by its rules
        said -= {"Predicate", "NodeOrder"}

    assert set(PLUGINS[name].votes()) == said


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
    job_state = stage.runs("a", "0 1 2", replicas=6)
    job_state.terminating = frozenset({2})
    job_state.finish({3, 4})
    assert occupied(job_state) == 4

    job_state.pipelined = frozenset({2, 4, 5})
    assert occupied(job_state) == 6


class Fair(Plugin):
    """Judges each job by itself in the same queue, and not in others."""

    per_job: ClassVar[frozenset[str]] = frozenset({"Preemptable"})
    by_rank: ClassVar[frozenset[str]] = per_job
    per_role: ClassVar[frozenset[str]] = per_job

    def preemptable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """No victims."""
        del evictor
        return [*victims][:0]

    def reclaimable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """No victims."""
        return self.preemptable(evictor, victims)


class Alike(Fair):
    """Leaves it to the class above."""


class Unlike(Fair):
    """Decides otherwise."""

    def preemptable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """Half of them."""
        del evictor
        return [*victims][::2]


@pytest.mark.parametrize(
    ("plugin", "vote", "want"),
    [
        pytest.param(Fair, "Preemptable", True, id="what it says of itself"),
        pytest.param(Fair, "Reclaimable", False, id="of each vote alone"),
        pytest.param(Alike, "Preemptable", True, id="what is inherited"),
        pytest.param(Unlike, "Preemptable", False, id="not of what is overridden"),
    ],
)
def test_which_plugins_judge_each_job_by_itself(
    plugin: type[Plugin], vote: str, *, want: bool
) -> None:
    for attribute in ("per_job", "by_rank", "per_role"):
        assert judges(plugin, attribute, vote) is want


def test_a_plugin_is_asked_for_victims_again_unless_it_says_otherwise() -> None:
    assert not Plugin(Stage().view, {}).still_reclaimable([], [])


def test_a_plugin_without_settings_finds_its_arguments_by_their_keys() -> None:
    plugin = Plugin(Stage().view, {"zone": "dark"})

    assert plugin.values == {"zone": "dark"}
    assert plugin.settings == PluginSettings()


def test_what_one_pod_uses() -> None:
    stage = Stage()
    stage.runs("a", "0 1", chips=4)
    uses = [use_of(stage.view.cluster, pod) for pod in pods("a1 a2 b0")]

    assert uses == [{CHIPS: 4000}, {}, {}]
