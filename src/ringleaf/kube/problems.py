"""What is wrong with objects, as users should hear it: each message once."""

from collections import Counter
from typing import NamedTuple

from ringleaf.kube.objects import PodGroup
from ringleaf.model.topology import quoted


class Problem(NamedTuple):
    """A problem that a user should fix: the object, and a message."""

    kind: str
    namespace: str
    name: str
    uid: str
    message: str

    @property
    def key(self) -> tuple[str, str]:
        """Which object it is about."""
        return self.kind, f"{self.namespace}/{self.name}"


class Problems:
    """The problems of all objects, and those that were not reported yet."""

    def __init__(self) -> None:
        self.unreported: list[Problem] = []
        """Problems to report; the reporter empties the list."""
        self._known: dict[tuple[str, str], dict[str, str]] = {}
        """Kind and key of an object -> what about it -> the message."""

    def __bool__(self) -> bool:
        return bool(self._known)

    def note(
        self,
        kind: str,
        namespace: str,
        name: str,
        uid: str,
        message: str,
        *,
        about: str = "",
    ) -> None:
        """Something is wrong with an object, or no longer; reported once.

        *about* parts what can be wrong with one object at the same time.
        """
        if not (message or self._known):
            return
        problem = Problem(kind, namespace, name, uid, message)
        known = self._known.get(problem.key, {})
        if known.get(about, "") == message:
            return
        if message:
            self._known[problem.key] = known | {about: message}
            self.unreported.append(problem)
        elif len(known) == 1:
            del self._known[problem.key]
        else:
            del known[about]

    def note_podgroup(self, podgroup: PodGroup, message: str, about: str) -> None:
        """Something is wrong with a PodGroup, or no longer."""
        meta = podgroup.metadata
        message = f"PodGroup {quoted(meta.key)}: {message}" if message else ""
        own = meta.namespace, meta.name, meta.uid
        self.note("PodGroup", *own, message, about=about)

    def forget(self, kind: str, key: str) -> None:
        """An object is gone."""
        self._known.pop((kind, key), None)

    def drop_solved(self) -> None:
        """Of what is to be reported, leave what is still so."""
        left = {
            (key, p.message): p
            for p in self.unreported
            if p.message in self._known.get(key := p.key, {}).values()
        }
        self.unreported[:] = left.values()

    def by_kind(self) -> Counter[str]:
        """Kind -> objects of it with something wrong."""
        return Counter(kind for kind, _key in self._known)

    @property
    def known(self) -> list[tuple[str, str, str]]:
        """Kind, key and what is wrong, of every object with which something is now."""
        return [
            (*key, message)
            for key, messages in sorted(self._known.items())
            for message in messages.values()
        ]
