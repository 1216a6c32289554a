"""Keeps some nodes for jobs of one queue: those with a label ``zone``."""

from collections.abc import Mapping
from typing import ClassVar

from ringleaf.config.arguments import Argument, ArgumentKind
from ringleaf.framework.plugin import Plugin, PluginSettings
from ringleaf.model.arrays import Flags
from ringleaf.model.demand import Demand, Operator, Requirement
from ringleaf.model.job import Job, Role


class NightSettings(PluginSettings, frozen=True):
    """The arguments by their types."""

    zone: str
    queue: str


class Night(Plugin):
    """Jobs of the queue stay in its zone, and all others stay out of it."""

    meaning = "Keeps the nodes of one zone for jobs of one queue."
    arguments: ClassVar[Mapping[str, Argument]] = {
        "zone": Argument(
            "zone", ArgumentKind.TEXT, "night", "Label zone of the nodes."
        ),
        "queue": Argument("queue", ArgumentKind.TEXT, "night", "Queue of the jobs."),
    }
    Settings: ClassVar[type[PluginSettings]] = NightSettings
    settings: NightSettings

    def predicate(self, job: Job, role: Role) -> Flags | None:
        """The nodes of the zone for jobs of the queue, the others for the others."""
        del role  # pods of all roles alike
        zone = Requirement("zone", Operator.IN, (self.settings.zone,))
        labels = self.view.cluster.node_table.labels
        inside = labels.selected(Demand(required=(zone,)))
        return inside if job.queue == self.settings.queue else ~inside
