"""PriorityClasses: the priorities of jobs by name."""

from collections.abc import Iterable

from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.objects import PriorityClass
from ringleaf.kube.watch import Gone


class PriorityStore:
    """Stores PriorityClasses as reflectors tell of them."""

    def __init__(self, state: CacheState) -> None:
        self._state, self._classes = state, state.priority_classes

    def on_update(self, classes: Iterable[PriorityClass]) -> None:
        """Store PriorityClasses that are new or changed."""
        for each in classes:
            self._classes[each.metadata.name] = each
        self._changed()

    def on_delete(self, gone: Iterable[Gone]) -> None:
        """Forget PriorityClasses that are gone."""
        for each in gone:
            self._classes.pop(each.name, None)
        self._changed()

    def _changed(self) -> None:
        values = {name: each.value for name, each in self._classes.items()}
        default = max(
            (each.value for each in self._classes.values() if each.global_default),
            default=0,
        )
        context, gangs = self._state.context, self._state.gangs
        if (values, default) != (context.priorities, context.default_priority):
            context.priorities, context.default_priority = values, default
            named = (name for name, gang in gangs.items() if gang.podgroup)
            self._state.deltas.gangs |= dict.fromkeys(named)
