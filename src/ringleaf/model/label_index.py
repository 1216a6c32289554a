"""Which selectors may mean a pod, and which pods a selector may mean, by a label.

A selector is kept under one of its requirements that a pod without that label fails,
the narrowest; a pod is looked up under each of its labels. So selectors that name
labels which a pod does not have cost it nothing, however many there are. What is found
may be meant; whether it is, is for the selector to say.
"""

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from ringleaf.model.demand import ANY_NAMESPACE, Demand, Operator, Requirement, Selector
from ringleaf.model.pod_terms import Labels, Pick, PodKind, Scattered, Wish

_T = TypeVar("_T")

Anchor = tuple[str, str | None]
"""A label with its value, or with any value."""

ANYTHING: Final[Anchor] = "", None
"""The anchor of selectors that mean pods without labels too."""

NEED_LABEL: Final = frozenset({Operator.EXISTS, Operator.GREATER, Operator.LESS})
"""Requirements that any value of a label may meet, and no pod without it."""


def anchors_of(selector: Selector) -> list[Anchor]:
    """The labels of which a pod has one at least that *selector* means.

    >>> app = Requirement("app", Operator.IN, ("a", "b"))
    >>> anchors_of((Requirement("tier", Operator.EXISTS), app))
    [('app', 'a'), ('app', 'b')]
    >>> anchors_of((Requirement("app", Operator.NOT_IN, ("a",)),)) == [ANYTHING]
    True
    >>> anchors_of(None)
    []
    """
    if selector is None:
        return []
    named = [each for each in selector if each.operator is Operator.IN]
    if named:
        narrowest = min(named, key=lambda each: len(each.values))
        return [(narrowest.key, value) for value in dict.fromkeys(narrowest.values)]
    wide = (each for each in selector if each.operator in NEED_LABEL)
    first: Requirement | None = next(wide, None)
    return [ANYTHING if first is None else (first.key, None)]


def anchors_with(labels: Labels) -> Iterator[Anchor]:
    """The anchors under which a selector is found that means pods with *labels*."""
    yield ANYTHING
    for key, value in labels:
        yield key, value
        yield key, None


class LabelIndex(Generic[_T]):
    """Things with a pick, by the pods that they may be about."""

    def __init__(self) -> None:
        self._known: dict[str, dict[Anchor, dict[_T, None]]] = {}
        """Namespace -> anchor -> things."""

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(self, pick: Pick, thing: _T) -> None:
        """*thing* is about the pods that *pick* means."""
        for namespace in pick.namespaces:
            there = self._known.setdefault(namespace, {})
            for anchor in anchors_of(pick.selector):
                there.setdefault(anchor, {})[thing] = None

    def drop(self, pick: Pick, thing: _T) -> None:
        """*thing* is there no more."""
        for namespace in {*pick.namespaces}:
            there = self._known[namespace]
            for anchor in anchors_of(pick.selector):
                del there[anchor][thing]
                if not there[anchor]:
                    del there[anchor]
            if not there:
                del self._known[namespace]

    def about(self, pod: Demand) -> list[_T]:
        """The things that may be about *pod*, each once."""
        found: dict[_T, None] = {}
        for namespace in (ANY_NAMESPACE, pod.namespace):
            there = self._known.get(namespace)
            if there:
                for anchor in anchors_with(pod.labels):
                    found |= there.get(anchor, {})
        return [*found]


class PodKinds:
    """The kinds of pods, by namespace and labels."""

    def __init__(self) -> None:
        self._known: dict[str, dict[Labels, PodKind]] = {}
        self._by_anchor: dict[str, dict[Anchor, dict[Labels, PodKind]]] = {}

    def __bool__(self) -> bool:
        return bool(self._known or self._by_anchor)

    def get(self, namespace: str, labels: Labels) -> PodKind | None:
        """The kind of pods with *labels*, if there is one."""
        return self._known.get(namespace, {}).get(labels)

    def add(self, kind: PodKind) -> None:
        """There are pods of a new kind."""
        namespace, labels = kind.pod.namespace, kind.pod.labels
        self._known.setdefault(namespace, {})[labels] = kind
        there = self._by_anchor.setdefault(namespace, {})
        for anchor in anchors_with(labels):
            there.setdefault(anchor, {})[labels] = kind

    def meant_by(self, pick: Pick) -> Iterator[PodKind]:
        """The kinds that *pick* may mean, each once."""
        anchors = anchors_of(pick.selector)
        everywhere = ANY_NAMESPACE in pick.namespaces
        for namespace in self._known if everywhere else dict.fromkeys(pick.namespaces):
            there = self._by_anchor.get(namespace, {})
            for anchor in anchors:
                yield from there.get(anchor, {}).values()

    def drop_empty(self) -> None:
        """Forget the kinds of which there are no pods."""
        for namespace, there in list(self._known.items()):
            anchors = self._by_anchor[namespace]
            for labels in [labels for labels, kind in there.items() if not kind.total]:
                del there[labels]
                for anchor in anchors_with(labels):
                    del anchors[anchor][labels]
                    if not anchors[anchor]:
                        del anchors[anchor]
            if not there:
                del self._known[namespace], self._by_anchor[namespace]


class Wishes:
    """What running pods require or prefer of others, by the pods that are meant."""

    def __init__(self) -> None:
        self.known: dict[Wish, Scattered] = {}
        """Every wish with the pods that have it; there may be none any more."""
        self._about = LabelIndex[Wish]()

    def tally(self, wish: Wish, n_nodes: int) -> Scattered:
        """How many pods have *wish*, on which nodes."""
        found = self.known.get(wish)
        if found is None:
            found = self.known[wish] = Scattered(n_nodes)
            self._about.add(wish.pick, wish)
        return found

    def about(self, pod: Demand) -> list[tuple[Wish, Scattered]]:
        """The wishes of some pod that mean *pod*, and their pods."""
        return [
            (wish, tally)
            for wish in self._about.about(pod)
            if (tally := self.known[wish]).total and wish.pick.means(pod)
        ]

    def drop_empty(self) -> None:
        """Forget the wishes that no pod has."""
        for wish in [wish for wish, tally in self.known.items() if not tally.total]:
            del self.known[wish]
            self._about.drop(wish.pick, wish)
