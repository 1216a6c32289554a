"""The observer that holds all measures. Start reading at ``RunMetrics.passes``.

Levels are steps over time, so their areas are exact: before time goes by they are
brought up to date, and then multiplied with the time. Only what changed is counted
again; nothing here walks over the nodes of the cluster.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from ringleaf.framework.instruction import (
    Delete,
    Evict,
    Instruction,
    Repaired,
    Report,
    Verdict,
)
from ringleaf.model.job import Job
from ringleaf.model.mask import full_mask, mask_of
from ringleaf.model.placement import Placement
from ringleaf.simulator.gang_model import LeafCapacity
from ringleaf.simulator.metrics.chip_usage import ChipUsage
from ringleaf.simulator.metrics.faults import HOUR_S, FaultMeasures
from ringleaf.simulator.metrics.job_record import JobRecord
from ringleaf.simulator.metrics.leaves import GANGS, Room, Spine, cap_of
from ringleaf.simulator.metrics.series import Series
from ringleaf.simulator.metrics.superpods import SuperPods
from ringleaf.simulator.metrics.tally import Areas, Floats, share
from ringleaf.simulator.metrics.wait_causes import WAIT_CAUSES, WaitCauses, shares
from ringleaf.simulator.metrics.waits import Waits
from ringleaf.simulator.metrics.wiring import Mix, most_in_pods, typical_mixes
from ringleaf.simulator.optimum import best_placement
from ringleaf.simulator.trial import JobSpec, SchedulingEngine, Trial
from ringleaf.simulator.uplinks import COMMUNICATION, WORST_COMMUNICATION, Uplinks

WARM_UP: Final = 0.2
"""The part of all arrivals that come before anything is counted."""
DAY_S: Final = 86400.0
HASHED_EVERY: Final = 4
"""Of the sampled times, every so many flows are hashed onto uplinks too."""

LEVELS: Final = (
    "used",
    "healthy",
    "idle",
    "queue",
    "waiting_chips",
    "fragments",
    "free_nodes",
    "some_free",
    "gang",
    "gang_share",
    "whole_leaf_gang",
    "whole_leaf_gang_share",
    "conflicts",
    "conflicts_beyond_cap",
    "link_conflicts",
    "crossing_jobs",
    "slowed",
    "slowed_worst",
    "short_superpods",
    "frag_wait",
    *(f"{blame}_jobs" for blame in WAIT_CAUSES),
    *(f"{blame}_chips" for blame in WAIT_CAUSES),
    *(f"x_free_{k}" for k in GANGS),
    *(f"x_one_leaf_{k}" for k in GANGS),
    "incomplete",
)
"""What is integrated over time, in this order."""
_AT: Final = {name: i for i, name in enumerate(LEVELS)}
_ROOM: Final = slice(_AT["free_nodes"], _AT["whole_leaf_gang_share"] + 1)
_SPINE: Final = slice(_AT["conflicts"], _AT["slowed_worst"] + 1)
_SHORT: Final = _AT["short_superpods"]
_WHY: Final = slice(_AT["frag_wait"], _AT["x_free_1"])
_X_FREE: Final = slice(_AT["x_free_1"], _AT["x_one_leaf_1"])
_X_ONE_LEAF: Final = slice(_AT["x_one_leaf_1"], _AT["incomplete"])
_INCOMPLETE: Final = _AT["incomplete"]

SERIES: Final = (
    "time_s",
    "utilisation",
    "queue_length",
    "waiting_chips",
    "fragmentation",
    "conflicts",
    "largest_gang_nodes",
)
"""The columns of the rows over time."""


class RunMetrics:
    """Every measure of a run but what deciding costs.

    Args:
        communication: Share of their time that jobs communicate, for the slowdown; of
            a trial that slows jobs down, what the trial says.

    """

    def __init__(self, communication: float = COMMUNICATION) -> None:
        self._communication = communication

    def begin(self, trial: Trial, scheduler: SchedulingEngine) -> None:
        """A run begins."""
        workload, settings = trial.workload, trial.conf.settings
        self._scheduler = scheduler
        self._communication = trial.contention or self._communication
        mixes: dict[Any, Mix] = dict(typical_mixes(workload.job_specs()))
        usage = self._usage = ChipUsage(trial.site.nodes, mixes)
        self._room = Room(usage, settings)
        uplinks = Uplinks(trial.site.nodes)
        self._spine = Spine(usage, self._room, uplinks, cap_of(settings))
        self._superpods = SuperPods(usage, self._room.leaf, settings)
        self._waits = Waits(usage.chips)
        self._why = WaitCauses(usage)
        self._faults = FaultMeasures()
        self._areas = Areas(LEVELS)
        self._series = Series(workload.span_s)
        self._series.begin(self._areas.area)
        self._records: dict[str, JobRecord] = {}
        self._warm = int(WARM_UP * workload.n_jobs)
        self._last = workload.n_jobs - 1
        self._from: tuple[float, Floats] | None = None
        self._to: tuple[float, Floats] | None = None
        self._end: tuple[float, Floats] | None = None
        self._invalid = 0
        self._pods = self._torn = self._spread_pods = 0
        self._hops = 0.0
        self._changed = True
        self._room_seen = -1
        self._crossing = 0
        self._incomplete = 0
        """Chips that jobs hold which lack pods to begin."""
        self._waiting = False
        self._samples = 0
        self._x_by_rule: Floats = self._areas.level[_X_FREE] * 0
        self._sampled = 0
        self._hashed = 0.0

    # Time.

    def passes(self, since: float, now: float) -> None:
        """From *since* to *now* everything was as it still is."""
        if self._usage.look(self._scheduler.view.cluster) or self._changed:
            self._bring_up_to_date()
        areas = self._areas
        if now >= self._series.edge:
            self._series.cross(since, now, areas.area, areas.level, self._sample)
        areas.area += (now - since) * areas.level

    def _bring_up_to_date(self) -> None:
        """Write down every level that may be another one."""
        self._changed = False
        level, usage, spine = self._areas.level, self._usage, self._spine
        idle, fragments = 0, 0.0
        for stock in usage.stocks.values():
            idle += stock.idle
            fragments += stock.waste / stock.table.pods
        why = self._why
        level[:6] = (usage.used, usage.healthy, idle, why.jobs, why.chips, fragments)
        if self._room_seen != self._room.version:
            self._room_seen = self._room.version
            self._measure_room()
        links = spine.uplinks
        if links.n_crossing or self._crossing:
            self._crossing = links.n_crossing
            level[_SPINE] = (
                spine.over_one,
                spine.over_cap,
                links.conflicts,
                links.n_crossing,
                spine.slowed(self._communication),
                spine.slowed(WORST_COMMUNICATION),
            )
        level[_INCOMPLETE] = self._incomplete
        if self._superpods.known:
            level[_SHORT] = self._superpods.short
        if why.jobs:
            blamed, could = why.blamed()
            jobs, chips = zip(*blamed.values(), strict=True)
            level[_WHY] = (could, *jobs, *chips)
            self._waiting = True
        elif self._waiting:
            self._waiting = False
            level[_WHY] = 0

    def _measure_room(self) -> None:
        room, level = self._room, self._areas.level
        free = room.nodes
        gang, whole = room.largest_gang, room.largest_on_whole_leaves
        some = free > 0
        level[_ROOM] = (
            free,
            some,
            gang,
            gang / free if some else 0.0,
            whole,
            whole / free if some else 0.0,
        )
        level[_X_FREE], level[_X_ONE_LEAF] = room.fragmented()

    @property
    def is_counting(self) -> bool:
        """Whether the window has begun, and not ended."""
        return self._from is not None and self._to is None

    @property
    def conflicts(self) -> int:
        """Over all leaves, jobs that cross it beyond the first, now."""
        return self._spine.over_one

    @property
    def shared_leaves(self) -> frozenset[str]:
        """The leaves that several jobs cross now."""
        room = self._room
        crossed = zip(room.names, room.crossing, strict=True)
        return frozenset(name for name, jobs in crossed if jobs > 1)

    def _sample(self) -> None:
        """What is too dear for every moment, where time counts."""
        if not self.is_counting:
            return
        if self._room.nodes:
            self._samples += 1
            self._x_by_rule += self._room.fragmented_by_rule()
        if self._sampled % HASHED_EVERY == 0:
            self._hashed += self._spine.uplinks.hashed_load()
        self._sampled += 1

    # Jobs.

    def arrives(self, spec: JobSpec, now: float) -> None:
        """A job is submitted."""
        number = self._waits.arrived
        if number == self._warm:
            self._from = now, self._areas.area.copy()
        if number == self._last:
            self._to = now, self._areas.area.copy()
        record = JobRecord.of(spec, number, now, counted=number >= self._warm)
        self._records[record.name] = record
        self._waits.arrives(record)
        self._why.waits(record)
        self._changed = True

    def starts(
        self, spec: JobSpec, placements: Sequence[Placement], now: float
    ) -> None:
        """Pods of a job are placed."""
        record = self._records[spec.job.name]
        held = record.held
        self._take(record, placements)
        self._changed = True
        places, came = record.places, {each.replica for each in placements}
        if record.started is None:
            if len(places.keys() | came) < record.job.effective_min:
                self._incomplete += record.held - held
                return
            self._incomplete -= held
        if record.away:
            record.away -= came
        if record.lost:
            self._faults.starts(record, placements)
        if not record.away:
            self._why.stops_waiting(record)
            if record.ended_by or record.out_since is not None:
                self._faults.whole(record, now)
        if len(places) > 1 or record.leaves:
            self._spine.moved(record, self._records)
        if record.started is None and places:
            self._begins(record, placements, now)

    def _take(self, record: JobRecord, placements: Sequence[Placement]) -> None:
        """Pods of a job hold chips."""
        places, usage = record.places, self._usage
        for each in placements:
            node = usage.index.get(each.node)
            if node is None:
                continue
            mask = mask_of(each.chips)
            if each.replica in places:
                usage.give(*places[each.replica])
                record.held -= places[each.replica][1].bit_count()
            places[each.replica] = node, mask
            record.held += len(each.chips)
            usage.take(node, mask)
            self._look_at_chips(node, each.chips)

    def _begins(
        self, record: JobRecord, placements: Sequence[Placement], now: float
    ) -> None:
        """A job starts for the first time."""
        record.started = now
        self._waits.starts(record, now)
        if record.counted:
            self._spine.began(record)
        if len(record.places) > 1:
            self._superpods.began(record, placements)

    def _look_at_chips(self, node: int, chips: tuple[int, ...]) -> None:
        """Metric 5, of one pod."""
        self._pods += 1
        if len(chips) > 1:
            found = self._usage.stock[node].holds[chips]
            self._torn += found.torn
            self._spread_pods += 1
            self._hops += found.hops / found.pairs

    def stops(self, spec: JobSpec, pods: Sequence[int], why: str, now: float) -> None:
        """Pods of a job are gone before its end."""
        del why  # what the scheduler said is more exact
        record = self._records[spec.job.name]
        self._faults.stops(record, pods, now)
        held = record.held
        for pod in pods:
            place = record.places.pop(pod, None)
            if place is not None:
                self._usage.give(*place)
                record.held -= place[1].bit_count()
                record.away.add(pod)
        if record.started is None:
            self._incomplete -= held - record.held
        if record.leaves:
            self._spine.moved(record, self._records)
        self._why.waits(record)
        self._changed = True

    def loses(self, spec: JobSpec, seconds: float, now: float) -> None:
        """A job that ran no longer does; so many seconds of its work are lost."""
        del now
        self._faults.loses(self._records[spec.job.name], seconds)

    def ends(self, spec: JobSpec, now: float) -> None:
        """A job is over, and all its pods are gone."""
        record = self._records[spec.job.name]
        usage = self._usage
        for node, mask in record.places.values():
            usage.give(node, mask)
        record.places = {}
        record.held = 0
        if record.leaves:
            self._spine.moved(record, self._records)
        self._why.stops_waiting(record)
        self._waits.ends(record, now)
        self._faults.ends(record)
        del self._records[record.name]
        self._changed = True

    # What the scheduler says.

    def says(self, said: Instruction, now: float) -> None:
        """The scheduler has said something, before it is carried out."""
        match said:
            case Report():
                self._reports(said)
            case Evict():
                self._faults.evicts(said, self._records[said.job])
            case Delete():
                self._faults.deletes(said, self._records[said.job], now)
            case Repaired():
                self._faults.repairs(said)
            case _:
                pass

    def _reports(self, said: Report) -> None:
        record = self._records.get(said.job)
        if record is None:
            return
        if said.verdict is Verdict.INVALID:
            self._invalid += 1
            self._why.stops_waiting(record)
            del self._records[said.job]
        else:
            self._why.said(said, record, len(self._scheduler.view.cluster))
        self._changed = True

    def finish(self, now: float) -> None:
        """Nothing more happens."""
        self._end = now, self._areas.area.copy()
        self._series.finish(now, self._areas.area)
        self._waits.finish(self._records.values(), now, self._why.causes)
        for record in self._records.values():
            self._faults.ends(record)

    # What could be.

    def could_hold(self, most: int, cap: int | None = None) -> tuple[int, int]:
        """Chips that jobs hold now, and the most that they and pending jobs could.

        Of the pending jobs, the first *most* count that ask for whole nodes, or for one
        pod below a node. Gangs may cross leaves as under 1.0, *cap* of them a leaf.
        Needs the extra ``optimum``.
        """
        usage, room = self._usage, self._room
        waiting = sorted(self._why.waiting, key=lambda record: record.number)
        own = [record.job for record in waiting if record.job.product == room.product]
        size = room.product.chips if room.product is not None else 0
        able = [job for job in own if job.chips == size or _is_small(job)][:most]
        gangs = [job.replicas for job in able if job.chips == size]
        small = Counter(job.chips for job in able if job.chips < size)
        taken = 0
        if min(gangs, default=room.nodes + 1) <= room.nodes:
            free, crossed = room.under or [room.nodes], room.crossing or [0]
            ground = LeafCapacity(tuple(free), tuple(crossed), cap or self._spine.cap)
            taken = best_placement(ground, gangs).nodes
        more = size * taken
        if room.product is not None and small:
            masks = [*room.partial, *[full_mask(size)] * (room.nodes - taken)]
            more += most_in_pods(room.product, masks, small)
        return usage.used, usage.used + more

    # What it comes to.

    def rows(self) -> list[tuple[float, ...]]:
        """The run over time, as ``SERIES`` names it: means of equal spans."""
        levels = ("used", "queue", "waiting_chips", "fragments", "conflicts", "gang")
        chips = self._usage.chips or 1
        found = self._series.means([_AT[name] for name in levels])
        return [
            (end, used / chips, queue, waiting, fragments / chips, conflicts, gang)
            for end, used, queue, waiting, fragments, conflicts, gang in found
        ]

    @property
    def window(self) -> tuple[float, float, dict[str, float]]:
        """From when to when is counted, and the areas of all levels in between.

        Where that is no time at all, the whole run is.
        """
        assert self._end is not None
        start = self._from or (0.0, self._end[1] * 0)
        stop = self._to or self._end
        if stop[0] <= start[0]:
            start, stop = (0.0, self._end[1] * 0), self._end
        return start[0], stop[0], self._areas.named(stop[1] - start[1])

    def plain(self) -> dict[str, Any]:
        """All measures as plain values; docs/measures.md describes them."""
        start, stop, area = self.window
        span = stop - start
        mean = {name: share(value, span) for name, value in area.items()}
        return {
            "window": {"from_s": start, "to_s": stop},
            "jobs": {**self._waits.jobs(), "invalid": self._invalid},
            "use": self._use(area, span),
            "chips": self._chips(area, span),
            "nodes": self._nodes(area, mean),
            "leaves": {**self._spine.plain(), **self._conflicts(mean)},
            "superpods": {
                **self._superpods.plain(),
                "mean_below_reserve": mean["short_superpods"],
            },
            **self._waits.plain(),
            "why": self._blames(area, span),
            "work": self._work(),
            "faults": self._faults.plain(),
        }

    def _use(self, area: dict[str, float], span: float) -> dict[str, Any]:
        """Metrics 1 and 8."""
        all_chips = self._usage.chips * span
        working = area["used"] - area["incomplete"]
        effective = working - area["slowed"]
        worst = working - area["slowed_worst"]
        return {
            "chips": self._usage.chips,
            "utilisation": share(area["used"], all_chips),
            "healthy_utilisation": share(area["used"], area["healthy"]),
            "held_by_incomplete": share(area["incomplete"], all_chips),
            "communication": self._communication,
            "effective_utilisation": share(effective, all_chips),
            "effective_utilisation_worst": share(worst, all_chips),
            "mean_queue_length": share(area["queue"], span),
            "mean_waiting_chips": share(area["waiting_chips"], span),
        }

    def _chips(self, area: dict[str, float], span: float) -> dict[str, Any]:
        """Metrics 3 and 5."""
        return {
            "fragmentation": share(area["fragments"], self._usage.chips * span),
            "fragmentation_of_idle": share(area["fragments"], area["idle"]),
            "mix": {
                product.key: dict(sorted(stock.table.mix.items()))
                for product, stock in self._usage.stocks.items()
            },
            "pods": self._pods,
            "ring_violations": self._torn,
            "ring_violations_per_1000_pods": share(1000 * self._torn, self._pods),
            "hop_cost": share(self._hops, self._spread_pods),
        }

    def _nodes(
        self, area: dict[str, float], mean: dict[str, float | None]
    ) -> dict[str, Any]:
        """Metric 4."""
        free = area["some_free"]
        sampled = self._x_by_rule.tolist()
        return {
            "mean_free": mean["free_nodes"],
            "largest_gang": {
                "1.0": mean["gang"],
                "whole-leaves": mean["whole_leaf_gang"],
            },
            "largest_gang_of_free": {
                "1.0": share(area["gang_share"], free),
                "whole-leaves": share(area["whole_leaf_gang_share"], free),
            },
            "external_fragmentation": {
                "free": {str(k): share(area[f"x_free_{k}"], free) for k in GANGS},
                "whole-leaves": {
                    str(k): share(area[f"x_one_leaf_{k}"], free) for k in GANGS
                },
                "1.0": {
                    str(k): share(total, self._samples)
                    for k, total in zip(GANGS, sampled, strict=True)
                },
            },
            "samples": self._samples,
        }

    def _conflicts(self, mean: dict[str, float | None]) -> dict[str, Any]:
        """Metric 7 but (b)."""
        hashed = -(-self._sampled // HASHED_EVERY)
        return {
            "mean_crossing": mean["crossing_jobs"],
            "conflicts": mean["conflicts"],
            "cap": self._spine.cap,
            "conflicts_beyond_cap": mean["conflicts_beyond_cap"],
            "link_conflicts": mean["link_conflicts"],
            "hashed_load": share(self._hashed, hashed),
            "hashed_samples": hashed,
        }

    def _blames(self, area: dict[str, float], span: float) -> dict[str, Any]:
        """Metric 11."""
        jobs = {blame.value: area[f"{blame}_jobs"] for blame in WAIT_CAUSES}
        chips = {blame.value: area[f"{blame}_chips"] for blame in WAIT_CAUSES}
        return {
            "jobs": shares(jobs),
            "chips": shares(chips),
            "frag_wait_s": area["frag_wait"],
            "frag_wait_share": share(area["frag_wait"], span),
        }

    def _work(self) -> dict[str, Any]:
        """Metric 12 but faults; of the whole run."""
        waits = self._waits
        assert self._end is not None
        first, last = waits.first_arrival, waits.last_end
        makespan = None if first is None or last is None else last - first
        done = waits.work_done / HOUR_S
        return {
            "makespan_s": makespan,
            "chip_hours_done": done,
            "chip_hours_held": float(self._end[1][_AT["used"]]) / HOUR_S,
            "chip_hours_per_day": share(done, makespan / DAY_S) if makespan else None,
        }


def _is_small(job: Job) -> bool:
    """Whether *job* is one pod of 1, 2, 4 … chips."""
    return job.replicas == 1 and not job.roles and job.chips.bit_count() == 1
