"""A canary: of the pods that are ours by name, only those of some jobs are placed.

A pod's scheduler name never changes, and no name has two schedulers. So jobs are
promoted by making their pods with our name, queue by queue or namespace by namespace;
pods with our name outside of it wait, and say why.
"""

from collections.abc import Iterable

from msgspec import Struct

from ringleaf.model.topology import quoted


class Canary(Struct, frozen=True):
    """The queues and namespaces whose jobs are placed."""

    queues: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()

    def admits(self, namespace: str, queue: str) -> bool:
        """Whether a job is one of them.

        >>> Canary(queues=frozenset({"a"})).admits("team", "b")
        False
        """
        return namespace in self.namespaces or queue in self.queues

    def refusal(self, namespace: str, queue: str) -> str:
        """Why a job waits that is none of them.

        >>> Canary(frozenset({"a"})).refusal("team", "b")
        "not in the canary: queue 'b' of namespace 'team', only queue 'a' counts"
        """
        wanted = [
            *_named("queue", self.queues),
            *_named("namespace", self.namespaces),
        ]
        return (
            f"not in the canary: queue {quoted(queue)} of namespace "
            f"{quoted(namespace)}, only {' and '.join(wanted)} counts"
        )


def _named(what: str, names: Iterable[str]) -> list[str]:
    return [f"{what} {quoted(name)}" for name in sorted(names)]
