"""What is known of jobs and nodes that fail."""

from collections.abc import Mapping

from ringleaf.framework.quarantine import Quarantine
from ringleaf.framework.repairs import Repairs
from ringleaf.framework.startup import StartupWatch
from ringleaf.model.cluster import Node


class Failures:
    """Faults and repairs, jobs that do not come to run, nodes that refuse pods."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.repairs = Repairs(nodes)
        """Faults, and jobs that are repaired."""
        self.starts = StartupWatch()
        """Jobs that were bound, and whether they came to run."""
        self.quarantine = Quarantine()
        """Nodes that take no pods because they refused some."""
