"""``ringleaf status``: how a live cluster stands, on one screen."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
import numpy as np

from ringleaf.cli.fault_view import recall
from ringleaf.cli.fault_words import summary_of
from ringleaf.cli.live import ClusterAccess, ask
from ringleaf.cli.output import TrimmedConsole, print_json
from ringleaf.cli.status_screen import HELD, Plain, StatusScreen
from ringleaf.engine.engine import Engine
from ringleaf.framework.job_state import JobState
from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.fault_history import FaultHistory, read_lives
from ringleaf.kube.fault_store import FAULTS
from ringleaf.kube.job_names import known_as, spoken
from ringleaf.kube.leader import LEASE_NAMESPACE, Lease, leases_path
from ringleaf.kube.pod_state import seconds_of
from ringleaf.kube.snapshot import (
    ReadOnlyCache,
    Snapshot,
    clock,
    lease_namespace,
    read_cache,
)
from ringleaf.kube.special_jobs import OUTSIDE
from ringleaf.model.cluster import Cluster as Chips
from ringleaf.model.decision import Invalid
from ringleaf.model.mask import full_mask
from ringleaf.model.uplinks import NOWHERE
from ringleaf.report.duration import format_duration
from ringleaf.simulator.outcome import queue_plain
from ringleaf.simulator.plain import amounts, whole
from ringleaf.simulator.records import plain_of

NOT_FOUND, NOT_ALLOWED = 404, 403
MAX_ENDED: Final = 5
"""Of the reservations that ended, the last ones are shown."""
STALE: Final = 3
"""A Lease counts as not held after so many durations without renewal."""
NO_HISTORY: Final = FaultHistory()


class Lead:
    """The leader, as its Lease says.

    Args:
        name: Of the Lease.
        namespace: Where it is; else it is looked for.

    """

    def __init__(self, name: str, namespace: str | None = None) -> None:
        self.name, self.namespace = name, namespace or LEASE_NAMESPACE
        self._is_sought = namespace is None
        self.lease: Lease | None = None
        self.trouble = ""
        self.silent_since: float | None = None
        """Since when the API server has not answered, if it does not."""

    @property
    def path(self) -> str:
        """Where Leases are listed."""
        return leases_path(self.namespace)

    async def find(self, api: Api) -> None:
        """Look in which namespace it is, where that was not said and may be seen."""
        if not self._is_sought:
            return
        self.namespace = await lease_namespace(api, self.name) or self.namespace

    async def read(self, api: Api) -> None:
        """Read the Lease once; keep a failure in ``trouble``."""
        await self.find(api)
        try:
            said = await api.call("GET", f"{self.path}/{self.name}", lane="read")
        except Unreachable as error:
            self.trouble = str(error)
            return
        self._heed(said)

    def _heed(self, said: Answer) -> None:
        if said.ok:
            self.lease = msgspec.json.decode(said.body, type=Lease)
        elif said.status == NOT_ALLOWED:
            self.trouble = f"not allowed to get leases in namespace {self.namespace}"
        elif said.status != NOT_FOUND:
            self.trouble = f"status {said.status}"

    def plain(self, now: float) -> Plain:
        """The result as plain values."""
        found: Plain = {"lease": f"{self.namespace}/{self.name}"}
        if self.trouble:
            return found | {"state": "unknown", "why": self.trouble}
        if self.silent_since is not None:
            ago = format_duration(max(0.0, now - self.silent_since))
            why = f"the API server has not answered for {ago}"
            return found | {"state": "unknown", "why": why}
        if self.lease is None:
            return found | {"state": "no lease"}
        spec = self.lease.spec
        renewed = seconds_of(spec.renew_time or "")
        lasts = spec.lease_duration_seconds or 0
        fresh = now - renewed <= STALE * max(lasts, 1)
        state = "leads" if self.lease.holder and fresh else HELD
        return found | {"state": state, "holder": self.lease.holder, "renewed": renewed}


def show_status(cluster: ClusterAccess, lead: Lead, *, as_json: bool) -> int:
    """Print how the cluster stands; the exit status."""

    async def question(api: Api, seen: Callable[[int], None]) -> Plain:
        cache = await read_cache(api, cluster.schedulers, cluster.conf(), seen)
        await lead.read(api)
        lives, now = await read_lives(api), clock()
        found = status_of(Snapshot(cache, now), cache, lives)
        return found | {"leader": lead.plain(now)}

    found = ask(cluster, question)
    if as_json:
        print_json(found)
    else:
        TrimmedConsole().print(StatusScreen(found))
    return 0


def status_of(
    look: Snapshot, cache: ReadOnlyCache, lives: FaultHistory = NO_HISTORY
) -> Plain:
    """How a cluster stands, as plain values; *lives* is what is known of its faults."""
    engine = look.engine
    recall(engine, lives, look.now)
    chips, job_states = engine.view.cluster, engine.view.job_states
    ours = {name: s for name, s in job_states.items() if s.job.queue != OUTSIDE}
    waiting = list(_waiting(look, cache))
    queues = [
        _queue(look, name, ours.values(), waiting)
        for name in sorted(engine.view.queues)
    ]
    found: Plain = {
        "at": whole(look.now),
        "nodes": len(chips),
        "pods": len(cache.pods),
        "products": list(_products(chips)),
        "queues": queues,
        "leaves": list(_leaves(chips)),
        "superpods": list(_superpods(chips)),
        "waiting": waiting,
        "reservations": _reservations(engine, look.now),
        "short": list(_short(cache)),
        "faults": summary_of(look.engine),
        "problems": [*_problems(look), *_unread_history(lives)],
    }
    return found | {"names": _names(cache, found)}


def _names(cache: ReadOnlyCache, found: Plain) -> Plain:
    """What people call the jobs that are named, where that is something else."""
    facts = {each["job"] for key in ("waiting", "short") for each in found[key]}
    facts |= {each["job"] for each in found["reservations"]["ended"]}
    for key in ("leaves", "superpods"):
        facts |= {job for each in found[key] for job in each["crossed-by"]}
    known = {job: known_as(cache, job) for job in sorted(facts)}
    return {job: name for job, name in known.items() if name != job}


def _queue(
    look: Snapshot, name: str, ours: Iterable[JobState], waiting: Iterable[Plain]
) -> Plain:
    facts = queue_plain(look.engine, name)
    queue = look.engine.view.queues[name]
    facts["capability"] = amounts(queue.capability)
    facts["running"] = sum(s.job.queue == name and bool(s.placements) for s in ours)
    facts["waiting"] = sum(each["queue"] == name for each in waiting)
    return facts


def _products(chips: Chips) -> Iterator[Plain]:
    free, whole = _free(chips), _whole(chips)
    shut = chips.free & chips.healthy & ~free
    for i, product in enumerate(chips.products):
        own = chips.product == i
        size = int(chips.size[own].sum())
        if not size:
            continue
        faulty = np.bitwise_count(_everything(chips)[own] & ~chips.healthy[own]).sum()
        yield {
            "product": product.key,
            "nodes": int(own.sum()),
            "not-ready": int((own & ~chips.ready).sum()),
            "cordoned": int((own & chips.ready & chips.cordoned).sum()),
            "quarantined": int((own & _takes(chips) & chips.quarantined).sum()),
            "chips": size,
            "used": int(np.bitwise_count(chips.taken[own]).sum()),
            "free": int(np.bitwise_count(free[own]).sum()),
            "shut": int(np.bitwise_count(shut[own]).sum()),
            "faulty": int(faulty),
            "free-nodes": int((own & whole).sum()),
        }


def _everything(chips: Chips) -> Any:  # noqa: ANN401 - masks
    return np.array([full_mask(n) for n in chips.size.tolist()], np.uint64)


def _free(chips: Chips) -> Any:  # noqa: ANN401 - masks
    """The chips that a pod could get: of nodes that take pods."""
    open_now = _takes(chips) & ~chips.quarantined
    return np.where(open_now, chips.free & chips.healthy, np.uint64(0))


def _takes(chips: Chips) -> Any:  # noqa: ANN401 - flags
    """The nodes that are ready and not cordoned."""
    return chips.ready & ~chips.cordoned


def _whole(chips: Chips) -> Any:  # noqa: ANN401 - flags
    return (_free(chips) == _everything(chips)) & (chips.size > 0)


def _reservations(engine: Engine, now: float) -> Plain:
    """What reservations kept idle in the last 24 hours, and which ended last."""
    idle = engine.context.reservations.idle
    account, until = idle.account(now), idle.suspended_until
    found: Plain = {
        "chip-seconds": whole(sum(amount for _end, amount in account.buckets)),
        "budget-used": round(idle.share, 4),
        "ended": [plain_of(each) for each in account.ended[-MAX_ENDED:]],
    }
    if until is None or until <= now:
        return found
    return found | {"suspended-until": whole(until)}


def _leaves(chips: Chips) -> Iterator[Plain]:
    whole, crossings = _whole(chips), chips.uplinks.crossings()
    for i, leaf in enumerate(chips.leaves):
        own = chips.leaf == i
        yield {
            "leaf": leaf.name,
            "nodes": int(own.sum()),
            "free-nodes": int((own & whole).sum()),
            "crossed-by": list(crossings.get(i, ())),
        }


def _superpods(chips: Chips) -> Iterator[Plain]:
    whole, where = _whole(chips), defaultdict(set)
    for job, holdings in chips.holdings.items():
        for holding in holdings:
            if holding.chips:
                where[str(job)].add(chips.superpod.item(holding.node))
    crossed: defaultdict[int, list[str]] = defaultdict(list)
    for job, own in sorted(where.items()):
        if len(own - {NOWHERE}) > 1:
            for superpod in own:
                crossed[superpod].append(job)
    for number in sorted({*chips.superpod.tolist()} - {NOWHERE}):
        inside = chips.superpod == number
        yield {
            "superpod": number,
            "nodes": int(inside.sum()),
            "free-nodes": int((inside & whole).sum()),
            "crossed-by": crossed[number],
        }


def _waiting(look: Snapshot, cache: ReadOnlyCache) -> Iterator[Plain]:
    """Jobs that wait, the oldest first."""
    job_states, found = look.engine.view.job_states, []
    for group in cache.gangs.values():
        job_state = job_states.get(group.name)
        if group.reported.placed or (
            group.reported.job is None and not group.status.not_ready
        ):
            continue
        if job_state is None and group.reported.job is not None:
            facts = look.engine.explain(group.name)
            why = _invalid_words(facts) if isinstance(facts, Invalid) else ""
        else:
            why = cache.why_of(group)
        job = group.reported.job
        created = [pod.created for pod in group.pods.values()]
        since = job.created if job is not None else min(created, default=look.now)
        queue = "" if group.podgroup is None else group.podgroup.spec.queue
        found.append(
            {
                "job": group.name,
                "queue": job.queue if job is not None else queue or "default",
                "wanted": "" if job is None else job.wanted,
                "priority": 0 if job is None else job.priority,
                "since": whole(since),
                "why": spoken(cache, why),
            }
        )
    yield from sorted(found, key=lambda each: (each["since"], each["job"]))


def _invalid_words(facts: Invalid) -> str:
    return f"invalid: {facts.problem}" + (f"; hint: {facts.hint}" if facts.hint else "")


def _short(cache: ReadOnlyCache) -> Iterator[Plain]:
    """Gangs that run with fewer pods than they need."""
    for group in cache.gangs.values():
        if group.podgroup is None or not group.reported.placed:
            continue
        pods = group.pods.values()
        done = sum(pod.succeeded for pod in pods)
        alive = len(group.reported.placed) - len(group.reported.ending)
        if alive + done < group.need:
            yield {
                "job": group.name,
                "running": alive,
                "needs": group.need,
                "ending": len(group.reported.ending),
            }


def _problems(look: Snapshot) -> Iterator[Plain]:
    for kind, key, message in look.cache.problems.known:
        yield {"kind": kind, "object": key.lstrip("/"), "message": message}
    for each in look.reports:
        yield {"kind": "Job", "object": each.job, "message": each.message}


def _unread_history(lives: FaultHistory) -> Iterator[Plain]:
    """A problem: the recorded fault history cannot be read."""
    if lives.trouble:
        facts = f"the history of faults is not known: {lives.trouble}"
        yield {"kind": "ConfigMap", "object": "/".join(FAULTS), "message": facts}
