"""Which labels of pods count for others: those that some pod selects by.

Pods differ in many labels that no pod asks about; with all of them no two pods would
be alike to the engine. So a pod is told of with the labels that selectors name, and
only with the values that they name: every other value is ``OTHER``. A selector counts
in its namespaces alone, so the selectors of one tenant change nothing for pods in other
namespaces.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ringleaf.model.demand import ANY_NAMESPACE, Demand, Selector

OTHER: Final = "(other)"
"""Any value of a label that no selector names; no label has it."""


class _Key:
    """A label that selectors ask about: how many, and which values they name."""

    __slots__ = ("n_selectors", "values")

    def __init__(self) -> None:
        self.n_selectors = 0
        self.values: dict[str, int] = {}


class Selected:
    """The labels by which pods that are there select others, by namespace."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[str, _Key]] = {}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __len__(self) -> int:
        """How many labels count, in all namespaces together."""
        return sum(map(len, self._keys.values()))

    def add(self, pod: Demand) -> set[str]:
        """*pod* is there; the namespaces where more labels count now."""
        news = set[str]()
        if not selects_pods(pod):
            return news
        for namespace, key, values in _asked(pod):
            known = self._keys.setdefault(namespace, {}).get(key)
            if known is None:
                known = self._keys[namespace][key] = _Key()
                news.add(namespace)
            known.n_selectors += 1
            for value in values:
                if value not in known.values:
                    news.add(namespace)
                known.values[value] = known.values.get(value, 0) + 1
        return news

    def drop(self, pod: Demand) -> None:
        """Remove *pod*; labels that no other pod selects by no longer count."""
        for namespace, key, values in _asked(pod):
            keys = self._keys[namespace]
            known = keys[key]
            known.n_selectors -= 1
            for value in values:
                known.values[value] -= 1
                if not known.values[value]:
                    del known.values[value]
            if not known.n_selectors:
                del keys[key]
            if not keys:
                del self._keys[namespace]

    def of(
        self, namespace: str, labels: Mapping[str, str]
    ) -> tuple[tuple[str, str], ...]:
        """Of the *labels* of a pod those that count, by their keys."""
        found: dict[str, str] = {}
        for where in (namespace, ANY_NAMESPACE):
            keys = self._keys.get(where, {})
            for key in labels.keys() & keys.keys():
                value = labels[key]
                if value in keys[key].values:
                    found[key] = value
                else:
                    found.setdefault(key, OTHER)
        return tuple(sorted(found.items()))


def selects_pods(pod: Demand) -> bool:
    """Whether *pod* has requirements on other pods."""
    terms = pod.near or pod.apart or pod.spread or pod.prefers_near
    return bool(terms or pod.prefers_apart)


def _asked(pod: Demand) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Namespace, key and values of every requirement that *pod* has on other pods."""
    if not selects_pods(pod):
        return
    for namespaces, selector in _selectors(pod):
        for each in selector or ():
            for namespace in namespaces:
                yield namespace, each.key, each.values


def _selectors(pod: Demand) -> Iterator[tuple[Iterable[str], Selector]]:
    own = (pod.namespace,)
    for term in pod.pod_terms:
        yield term.namespaces or own, term.selector
    for spread in pod.spread:
        yield own, spread.selector
