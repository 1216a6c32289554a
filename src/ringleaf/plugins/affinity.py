"""Chips that are wired together, nodes under one leaf, blocks in one SuperPoD.

The rules are ``ringleaf.policies``; this plugin is their face among the others, with
the hooks that the Ascend 910 guide gives its plugin:

- validJobFn is ``job_valid``: jobs whose request contradicts the hardware;
- AddPredicateFn is ``predicate``: nodes whose free chips are not wired together;
- AddBatchNodeOrderFn is ``node_order``: nodes whose chips suit best;
- AddEventHandler is not needed: ``Statement.allocate`` holds the chips at the moment
  they are chosen (D18), so no two pods are ever given the same.

A session places by these rules whether the plugin is configured or not, and asks them
directly: it keeps an order of nodes that need not be made anew for every pod. So the
hooks about nodes are for those who want a single answer.
"""

import numpy as np

from ringleaf.framework.plugin import Nodes, Plugin, Scores
from ringleaf.framework.preference import points_of
from ringleaf.framework.standing import Standing
from ringleaf.model.fleet import Flags
from ringleaf.model.job import Job, Role
from ringleaf.policies.admission import admit
from ringleaf.policies.chips import NEVER
from ringleaf.policies.fit import node_ranks, request_of


class Affinity(Plugin):
    """Votes by the rules of the products and of the network."""

    def job_valid(self, standing: Standing) -> str | None:
        """Why the request contradicts the hardware."""
        job = standing.job
        invalid = admit(job, self.view.settings) if job.chips else None
        return None if invalid is None else f"{invalid.problem}; hint: {invalid.hint}"

    def predicate(self, job: Job, role: Role) -> Flags | None:
        """The nodes that can hold a pod of *role* now; None for pods without chips."""
        if not role.chips:
            return None
        ranks = node_ranks(self.view.cluster, request_of(job, role))
        return np.not_equal(ranks, NEVER)

    def node_order(self, job: Job, role: Role, nodes: Nodes) -> Scores | None:
        """With ``sum-scores``, what the ranks of *nodes* come to on Volcano's scale.

        Nodes that cannot hold the pod get the worst score there is.
        """
        if not role.chips or not self.values["sum-scores"]:
            return None
        request = request_of(job, role)
        ranks = node_ranks(self.view.cluster, request)[nodes]
        points = points_of(request, ranks).astype(np.float64)
        return np.where(ranks == NEVER, -np.inf, points)
