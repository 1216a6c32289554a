"""Small clusters with jobs that run and jobs that wait, for plugins to vote on."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.plugin import Victim
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.statement import Statement
from ringleaf.framework.votes import Votes
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job
from ringleaf.model.mask import chips_of, mask_of
from ringleaf.model.placement import Placement
from ringleaf.model.queue import Queue
from ringleaf.model.settings import Settings
from ringleaf.plugins import PLUGINS
from ringleaf.policies.products import PRODUCTS

A2: Final = PRODUCTS["atlas-800t-a2"]
CHIPS: Final = A2.resource


def asks(**resources: int) -> Demand:
    """A demand for thousandths of resources."""
    return Demand(resources=tuple(sorted(resources.items())))


class Stage:
    """Nodes ``n0``, ``n1`` … of eight chips, and what runs and waits there."""

    def __init__(
        self,
        nodes: int = 4,
        queues: Iterable[Queue] = (),
        resources: Mapping[str, int] | None = None,
        *,
        lists_all: bool = False,
    ) -> None:
        self.cluster = Cluster(
            Node(f"n{i}", A2, 8, 0xFF, resources=resources or {}, lists_all=lists_all)
            for i in range(nodes)
        )
        self.view = SchedulerState(self.cluster, Settings(), queues)

    def waits(
        self,
        name: str,
        chips: int = 8,
        replicas: int = 1,
        **job: Any,  # noqa: ANN401 - fields of Job
    ) -> JobState:
        """A job that holds nothing."""
        made = Job(name, A2, chips, replicas, **job)
        job_state = JobState(made, number=len(self.view.job_states))
        self.view.enter(job_state)
        return job_state

    def runs(self, name: str, nodes: str, chips: int = 8, **job: Any) -> JobState:  # noqa: ANN401
        """A job with pods on *nodes*, one after the other: ``"0 0 1"``."""
        where = [int(node) for node in nodes.split()]
        job = {"replicas": len(where)} | job
        job_state = self.waits(name, chips, **job)
        role_of = {n: role for role, own in job_state.facts.role_ranks for n in own}
        with Statement(self.cluster) as statement:
            for replica, node in enumerate(where):
                role = role_of[replica]
                taken = self._free_chips(node, role.chips)
                statement.allocate(name, node, taken, replica, demand=role.demand)
                placement = Placement(replica, f"n{node}", chips_of(taken))
                job_state.placements[replica] = placement
            statement.commit()
        self.view.set_phase(job_state, Phase.RUNNING)
        return job_state

    def _free_chips(self, node: int, chips: int) -> int:
        free = chips_of(self.cluster.free.item(node))
        assert len(free) >= chips
        return mask_of(free[:chips])

    def votes(self, tiers: str, others: Mapping[str, Any] | None = None) -> Votes:
        """Plugins by name, tiers apart by a bar: ``"priority gang | drf"``."""
        plugins = [
            {"plugins": [{"name": name} for name in tier.split()]}
            for tier in tiers.split("|")
        ]
        return self.voting({"actions": "allocate", "tiers": plugins}, others)

    def voting(
        self, document: object, others: Mapping[str, Any] | None = None
    ) -> Votes:
        """The plugins of a configuration."""
        conf = read_conf(document, others or {})
        assert isinstance(conf, Conf), conf
        return Votes(conf.tiers, self.view, {**PLUGINS, **(others or {})})


def pods(text: str) -> list[Victim]:
    """``"a0 a1 b0"``: pods of jobs with names of one letter."""
    return [Victim(each[0], int(each[1:])) for each in text.split()]


def as_text(victims: Iterable[Victim]) -> str:
    """The inverse of ``pods``."""
    return " ".join(f"{victim.job}{victim.replica}" for victim in victims)
