"""What is known while events of a scenario or a log are read, one after the other."""

from msgspec import Struct, field

from ringleaf.config.conf import NO_OTHERS, Others
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.product import Product
from ringleaf.simulator.format import SettingsEntry


class EventContext(Struct):
    """What is there while one entry after the other is read.

    Args:
        nodes: The nodes by name, in the order in which they came.
        jobs: All jobs so far, each as often as it was told, by name.
        settings: What stands instead of the init-params of any configuration.
        strict: Whether nodes, jobs and their pods must be known; in a log they need
            not.
        others: Plugins of others that a configuration may name.

    """

    nodes: dict[str, Node]
    jobs: dict[str, list[Job]]
    settings: SettingsEntry
    strict: bool = True
    others: Others = NO_OTHERS
    seen: set[Product] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)

    def enter(self, job: Job) -> None:
        """A job is there, or another than it was; pods it had may still be named."""
        if self.strict:
            self.jobs.setdefault(job.name, []).append(job)

    def products(self) -> set[Product]:
        """The products of the nodes that are there, or that were there last."""
        present = {node.product for node in self.nodes.values()}
        self.seen = present or self.seen
        return self.seen
