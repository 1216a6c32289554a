"""A configuration that was read: actions, plugins in tiers, settings."""

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Final, Protocol

from msgspec import Struct, convert
from msgspec.structs import replace

from ringleaf.config.arguments import Argument, Value, Voter
from ringleaf.config.vocabulary import (
    DEFAULT_FLAGS,
    FLAG_OF,
    FLAGS,
    HIERARCHY,
    HIERARCHY_VOTES,
)
from ringleaf.model.settings import Settings

OFF: Final = "off"
STRICT: Final = "strict"
Path = tuple[str | int, ...]
"""Where something stands in the configuration."""


class PluginClass(Protocol):
    """What the reader asks of the class of a plugin that another package brings."""

    meaning: str
    arguments: Mapping[str, Argument]

    def votes(self) -> tuple[str, ...]:
        """Where it votes."""


class PluginConf(Struct, frozen=True):
    """One plugin as configured.

    Args:
        name: Ringleaf's name.
        written: The name in the file, which may be an alias.
        enabled: The flags in force, set or by default.
        arguments: Every argument with its value, set or by default.
        about: What it does, where it could vote, which arguments it takes.
        plugin: Its class, where it is of another package.

    """

    name: str
    written: str
    enabled: frozenset[str]
    arguments: Mapping[str, Value]
    about: Voter
    plugin: PluginClass | None = None

    @property
    def votes(self) -> tuple[str, ...]:
        """Where it votes.

        >>> from ringleaf.config.reader import DEFAULT
        >>> DEFAULT.tiers[0][2].votes
        ('Preemptable', 'Reclaimable')
        """
        return tuple(
            vote
            for vote in self._all_votes()
            if vote not in FLAG_OF or FLAG_OF[vote] in self.enabled
        )

    @property
    def changed(self) -> Mapping[str, bool]:
        """The flags that differ from the default."""
        differ = self.enabled ^ DEFAULT_FLAGS
        return {key: key in self.enabled for key in FLAGS if key in differ}

    def heeds(self, flag: str) -> bool:
        """Whether *flag* changes anything here: it has a vote that the flag governs."""
        if flag == HIERARCHY:
            return self.name == "drf"
        return any(FLAG_OF.get(vote) == flag for vote in self._all_votes())

    def _all_votes(self) -> tuple[str, ...]:
        extra = HIERARCHY_VOTES if HIERARCHY in self.enabled else ()
        return self.about.votes + (extra if self.name == "drf" else ())


class ReservationSettings(
    Struct,
    frozen=True,
    rename={
        "mode": "reservation",
        "after_s": "reservation-after-seconds",
        "idle_budget": "reservation-idle-budget",
        "learns": "learn-run-times",
    },
):
    """When jobs get reservations: arguments of the action ``allocate``.

    Args:
        mode: One for each queue (``fair``), one in all (``strict``), or ``off``.
        after_s: How long a job waits before it gets one.
        idle_budget: The share of the chip-time of a day that they may keep idle.
        learns: Whether running times that jobs do not state are predicted.

    """

    mode: str = OFF
    after_s: int = 0
    idle_budget: float = 0.05
    learns: bool = False

    @property
    def is_strict(self) -> bool:
        """Whether there is one in all, which only jobs that end in time may use."""
        return self.mode == STRICT


class EvictionSettings(
    Struct, frozen=True, rename={"min_run_s": "min-run-seconds", "dry_run": "preview"}
):
    """What may be evicted: arguments of the actions ``preempt`` and ``reclaim``.

    Args:
        min_run_s: How long a job runs before it may be evicted.
        dry_run: Evictions are reported, and not carried out.

    """

    min_run_s: int
    dry_run: bool


class RearrangementSettings(
    Struct,
    frozen=True,
    rename={
        "moves_per_hour": "moves-per-hour",
        "least_ratio": "least-benefit",
        "after_s": "wait-seconds",
        "every_s": "look-every-seconds",
        "dry_run": "preview",
    },
):
    """When jobs are moved: arguments of the action ``rearrange``.

    Args:
        moves_per_hour: Jobs that are moved in an hour at most.
        least_ratio: How many times its cost a plan must gain.
        after_s: How long a job waits before others are moved for it.
        every_s: How long after a search for moves the next begins.
        dry_run: Moves are reported, and not carried out.

    """

    moves_per_hour: int = 10
    least_ratio: float = 10
    after_s: int = 300
    every_s: int = 60
    dry_run: bool = False


class Remark(Struct, frozen=True):
    """A problem or a warning: what was found and wanted, and where it stands."""

    path: Path
    text: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.text}; hint: {self.hint}" if self.hint else self.text


class Conf(Struct, frozen=True, dict=True):
    """A configuration that holds together.

    Args:
        actions: Names, in the order in which they run.
        tiers: Plugins, tier by tier.
        settings: What the init-params come to.
        parameters: Every init-param with its value, set or by default.
        action_arguments: Action → every argument with its value.
        others: Entries of ``configurations`` that belong to others, as they were.
        warnings: What has no effect, or not the one it seems to have.

    """

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginConf, ...], ...]
    settings: Settings
    parameters: Mapping[str, Value]
    action_arguments: Mapping[str, Mapping[str, Value]]
    others: Mapping[str, object]
    warnings: tuple[Remark, ...] = ()

    @cached_property
    def reservation(self) -> ReservationSettings:
        """When jobs get reservations; never without the action ``allocate``."""
        given = self.action_arguments.get("allocate", {})
        return convert(given, ReservationSettings)

    def eviction(self, action: str) -> EvictionSettings:
        """The settings of ``preempt`` or ``reclaim``."""
        return convert(self.action_arguments[action], EvictionSettings)

    @cached_property
    def rearrangement(self) -> RearrangementSettings:
        """When jobs are moved."""
        given = self.action_arguments.get("rearrange", {})
        return convert(given, RearrangementSettings)

    @property
    def quiet(self) -> "Conf":
        """The same for an engine that keeps the state and decides nothing."""
        return replace(self, actions=())


class RefusedConf(Struct, frozen=True):
    """A configuration with problems: all of them, in the order of the file's parts."""

    problems: tuple[Remark, ...]
    warnings: tuple[Remark, ...] = ()


Others = Mapping[str, PluginClass]
"""Plugins that others wrote, by name."""

NO_OTHERS: Final[Others] = MappingProxyType({})
