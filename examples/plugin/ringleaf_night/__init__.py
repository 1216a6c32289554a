"""Keeps some nodes for jobs of one queue: those with a label ``zone``."""

from collections.abc import Mapping
from typing import ClassVar

from ringleaf.framework.plugin import Plugin
from ringleaf.framework.vocabulary import Argument, Kind
from ringleaf.model.demand import Demand, Operator, Requirement
from ringleaf.model.fleet import Flags
from ringleaf.model.job import Job, Role


class Night(Plugin):
    """Jobs of the queue stay in its zone, and all others stay out of it."""

    meaning = "Keeps the nodes of one zone for jobs of one queue."
    arguments: ClassVar[Mapping[str, Argument]] = {
        "zone": Argument("zone", Kind.TEXT, "night", "Label zone of the nodes."),
        "queue": Argument("queue", Kind.TEXT, "night", "Queue of the jobs."),
    }

    def predicate(self, job: Job, role: Role) -> Flags | None:
        """The nodes of the zone for jobs of the queue, the others for the others."""
        del role  # pods of all roles alike
        zone = Requirement("zone", Operator.IN, (str(self.values["zone"]),))
        inside = self.view.cluster.fleet.selected(Demand(required=(zone,)))
        return inside if job.queue == self.values["queue"] else ~inside
