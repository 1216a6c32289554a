"""The network that a fabric controller would configure is the one that jobs have.

Jobs come, are placed, lose pods, move and go, in any order, on a real API server. A
writer of summaries and a fabric controller run beside; the slices are small, so that
tables are cut. Whatever is ever configured for a job must be a network that it had,
and in the end it must be the one that it has.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import count
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringleaf_testbed.cluster import Testbed
from tests.effort import assert_reached, examples
from tests.summary.cast import Beside, Cast, address_of, leaf_of
from tests.summary.fabric import Fabric, Network, Watcher, real_network

NODES: Final = 12
MOST_PODS: Final = 3
NAMESPACE: Final = "fabric"
LEAVES: Final = {address_of(node): leaf_of(node) for node in range(NODES)}

Step = tuple[str, int, int, int, str]
STEPS: Final = st.tuples(
    st.sampled_from(
        ["come", "seat", "seat", "seat", "seat", "lose", "lose", "go", "cut"]
    ),
    st.integers(0, 1),
    st.integers(0, MOST_PODS - 1),
    st.integers(0, NODES - 1),
    st.sampled_from(["0", "1", "2"]),
)


class Play:
    """What happens, and what each job had at every moment of it."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.had: defaultdict[str, set[Network]] = defaultdict(set)
        self.least: dict[str, int] = {}
        self.seats: dict[str, set[int]] = {}
        self.configured: list[tuple[str, Network]] = []
        self.seen: Counter[str] = Counter()
        self._numbers = count()

    def names(self) -> tuple[str, str]:
        """Two jobs that were not there before."""
        number = next(self._numbers)
        return f"one{number}", f"two{number}"

    def step(self, job: str, step: Step) -> None:
        """One thing that happens to a job; nothing where it cannot."""
        what, _job, rank, node, shared = step
        there = job in self.least
        pod = f"{job}-worker-{rank}"
        if what == "come" and not there:
            self.least[job] = rank + 1
            self.seats[job] = set()
            labels = {"framework": "pytorch"}
            self.cast.group(job, rank + 1, labels=labels)
            for i in range(rank + 1):
                self.cast.pod(job, i)
        elif what == "seat" and there and rank < self.least[job]:
            if rank in self.seats[job]:
                return
            self.cast.seat(pod, node, shared=shared)
            self.seats[job].add(rank)
        elif what == "lose" and there and rank in self.seats[job]:
            self.cast.remove(pod)
            self.seats[job].discard(rank)
            self._note(job)
            self.cast.pod(job, rank)
        elif what == "cut" and there:
            self.cast.remove_group(job)
            labels = {"framework": "pytorch"}
            self.cast.group(job, self.least[job], labels=labels)
        elif what == "go" and there:
            self.cast.remove_group(job)
            for i in range(self.least.pop(job)):
                self.cast.remove(f"{job}-worker-{i}")
            del self.seats[job]
        self._note(job)

    def _note(self, job: str) -> None:
        found = self.now(job)
        if found is not None:
            self.had[job].add(found)

    def is_right(self, job: str, fabric: Fabric) -> bool:
        """Whether what is configured for a job is what it has, where that is whole."""
        configured = fabric.networks.get(f"{NAMESPACE}/{job}")
        if job not in self.least:
            return configured is None
        has = self.now(job)
        return has is None or configured == has

    def now(self, job: str) -> Network | None:
        """The network of a job that is whole."""
        if job not in self.least or len(self.seats[job]) < self.least[job]:
            return None
        return real_network(self.cast.pods(job), LEAVES)


@pytest.fixture(scope="module")
def play(testbed: Testbed) -> Iterator[Play]:
    meta = {"metadata": {"name": NAMESPACE}}
    testbed.client.ask("POST", "/api/v1/namespaces", meta)
    cast = Cast(testbed, NAMESPACE)
    found = Play(cast)

    def configured(job: str, network: Network) -> None:
        found.configured.append((job.partition("/")[2], network))

    watcher = Watcher(testbed.client, Fabric(LEAVES, configured))
    with Beside(testbed.kubeconfig, most=600, keep_s=0.5) as beside, watcher:
        found.cast.fabric = watcher.fabric  # type: ignore[attr-defined]
        found.cast.beside = beside  # type: ignore[attr-defined]
        yield found
    paths = (
        cast.groups_path,
        cast.pods_path,
        f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    )
    for path in paths:
        testbed.client.ask("DELETE", path, {"gracePeriodSeconds": 0})


MOVES: Final = [
    (what, job, 0, node + job, "1")
    for job in (0, 1)
    for what, node in (("lose", 0), ("seat", 8))
]
ENDS: Final = [("go", job, 0, 0, "") for job in (0, 1)]


def test_what_is_configured_is_what_jobs_have(play: Play) -> None:
    """In histories with whole jobs, moves, ends, paths, and tables in slices."""

    @settings(max_examples=examples(40))
    @example(steps=MOVES)
    @example(steps=ENDS)
    @given(steps=st.lists(STEPS, min_size=4, max_size=20))
    def check(steps: list[Step]) -> None:
        check_history(play, steps)

    check()
    play.cast.wait(lambda: not play.cast.maps(), "all summaries to be removed")
    wanted = ("whole", "gone", "moved", "paths", "shared", "cut")
    assert_reached(play.seen, *wanted, times=2)


def check_history(play: Play, steps: list[Step]) -> None:
    """Two jobs come, take *steps*, and end."""
    names = play.names()
    fabric: Fabric = play.cast.fabric  # type: ignore[attr-defined]
    for i, name in enumerate(names):
        play.step(name, ("come", i, 1, 0, ""))
        for rank in range(2):
            play.step(name, ("seat", i, rank, 5 * rank + i, "1"))
    for step in steps:
        play.step(names[step[1]], step)

    def is_right() -> bool:
        return all(play.is_right(job, fabric) for job in names)

    play.cast.wait(is_right, f"the networks of {names}")
    for job, network in play.configured:
        assert network in play.had[job], job
    play.seen["cut"] += sum(f"job-summary-{job}-1" in play.cast.maps() for job in names)
    play.seen["whole"] += sum(play.now(job) is not None for job in names)
    play.seen["gone"] += sum(job not in play.least for job in names)
    play.seen["moved"] += sum(len(play.had[job]) > 1 for job in names)
    play.seen["paths"] += sum(bool(n.paths) for _job, n in play.configured)
    play.seen["shared"] += sum(bool(n.shared) for _job, n in play.configured)
    for job in names:
        play.step(job, ("go", 0, 0, 0, ""))
