"""Chips that are wired together, nodes under one leaf, blocks in one SuperPoD.

The rules are ``ringleaf.policies``. The hooks of the plugin in the Ascend 910 guide:

- validJobFn: ``job_valid``, for jobs whose request contradicts the hardware;
- AddPredicateFn: ``policies.fit.node_ranks`` has no rank for nodes whose free chips are
  not wired together;
- AddBatchNodeOrderFn: ``framework.node_ranking`` keeps the nodes in the order of
  ranks, and ``points_of`` turns ranks into scores where scores are summed
  (``sum-scores``);
- AddEventHandler: ``Statement.allocate`` holds the chips at the moment they are chosen
  (D18), so no two pods are ever given the same.

A session places by these rules whether the plugin is configured or not.
"""

from collections.abc import Mapping
from typing import ClassVar

from ringleaf.config.arguments import Value
from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import Plugin, PluginSettings
from ringleaf.framework.state import SchedulerState
from ringleaf.policies.validation import validate


class AffinitySettings(PluginSettings, frozen=True, rename="kebab"):
    """How ranks and the scores of other plugins combine."""

    sum_scores: bool = False


class Affinity(Plugin):
    """Votes by the rules of the products and of the network."""

    Settings: ClassVar[type[PluginSettings]] = AffinitySettings
    settings: AffinitySettings

    def __init__(self, view: SchedulerState, arguments: Mapping[str, Value]) -> None:
        super().__init__(view, arguments)
        self.sums_scores = self.settings.sum_scores

    def job_valid(self, job_state: JobState) -> str | None:
        """Why the request contradicts the hardware."""
        job, settings = job_state.job, self.view.settings
        if job_state.validated_for is settings or not job.chips:
            return None
        invalid = validate(job, settings)
        return None if invalid is None else f"{invalid.problem}; hint: {invalid.hint}"
