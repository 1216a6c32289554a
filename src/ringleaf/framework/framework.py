"""What a configuration gives the scheduler: plugins, a session, settings of actions.

A new configuration replaces all of it; the state of jobs and queues stays.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ringleaf.config.conf import Conf
from ringleaf.framework.node_ranking import Score
from ringleaf.framework.plugin import Nodes, Plugin, Scores
from ringleaf.framework.session import Session
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.votes import Votes
from ringleaf.model.job import Job, Role

Sessions = Callable[[SchedulerState, Conf, Votes], Session]
"""Makes a session over the present cluster."""


class Framework:
    """Plugins and session of the present configuration.

    Args:
        state: What plugins look at, and the cluster.
        conf: The configuration.
        plugins: Name → class of every plugin that does not bring its own.
        sessions: Makes the session; another scheduler's rule brings its own.

    """

    def __init__(
        self,
        state: SchedulerState,
        conf: Conf,
        plugins: Mapping[str, type[Plugin]],
        sessions: Sessions,
    ) -> None:
        self.state, self._plugins, self._sessions = state, plugins, sessions
        self._follow(conf)
        self.session = sessions(state, conf, self.votes)

    def configure(self, conf: Conf) -> None:
        """Use *conf* from now on."""
        self.votes.retire()
        self.state.settings = conf.settings
        self._follow(conf)
        self.cluster_replaced()

    def _follow(self, conf: Conf) -> None:
        """What *conf* says of actions and plugins."""
        self.conf = conf
        self.votes = Votes(conf.tiers, self.state, self._plugins)
        self.has_actions = bool(conf.actions)
        """Whether anything is decided; without actions only the books are kept."""
        self.has_enqueue = "enqueue" in conf.actions
        """Whether jobs have to be admitted before they are placed."""
        self.preempts = "preempt" in conf.actions
        """Whether jobs may be evicted for others of their queue."""
        self.reclaims = "reclaim" in conf.actions
        """Whether jobs may be evicted for those of other queues."""
        self.evicts = self.preempts or self.reclaims
        """Whether jobs may be evicted for others."""

    def cluster_replaced(self) -> None:
        """Place jobs on the cluster that the state has now."""
        self.session = self._sessions(self.state, self.conf, self.votes)


def session_over(state: SchedulerState, conf: Conf, votes: Votes) -> Session:
    """A session that heeds what plugins say of nodes."""
    return Session(
        state.cluster,
        conf.settings,
        scorer=partial(_scorer, state, votes),
        node_filter=votes.predicate,
        filter_once_per_role=votes.filters_once_per_role,
        sum_scores=votes.sums_scores,
    )


def _scorer(state: SchedulerState, votes: Votes, job: Job, role: Role) -> Score | None:
    """How plugins score nodes for a pod of *role*; None where none does."""

    def scores(nodes: Nodes) -> Scores:
        found = votes.node_scores(job, role, nodes)
        return np.zeros(len(nodes)) if found is None else found

    probe = np.zeros(min(1, len(state.cluster)), np.int64)
    return None if votes.node_scores(job, role, probe) is None else scores
