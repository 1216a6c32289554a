"""Several schedulers, of which the leader is killed, stopped or asked to end.

The soak as it is, with replicas: the leader is hit, and another must take over. The API
server's audit log is the judge of leaders: no scheduler binds or evicts a pod, not even
by a request that was on its way, once the Lease is another's.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.process import Child
from ringleaf_testbed.source import TestbedError
from tests.deploy.helm import NAMESPACE
from tests.soak import logs
from tests.soak.audit import judged
from tests.soak.run import TOKENS, Soak
from tests.soak.spectator import AWAY

LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/ringleaf"
PATIENCE_S: Final = 60.0
WAYS: Final = ("kill", "stop", "term")
"""How a leader is hit: killed, stopped until another leads, asked to end."""


class Replicas(Soak):
    """One run with as many schedulers as the plan says."""

    def _begin(self) -> None:
        self._replicas: list[Child] = []

    def _new_bed(self, testbed: type[Testbed], folder: Path | None) -> Testbed:
        self._begin()
        return testbed(fsync=True, audit=True, folder=folder, tokens=TOKENS)

    def _start(self) -> None:
        """As many as there should be; one that was deposed stands by."""
        for child in [each for each in self._replicas if not each.is_running]:
            self._bury(child)
        while len(self._replicas) < self.plan.replicas:
            self._replicas.append(self._run_scheduler())

    def _alive(self) -> list[Child]:
        return list(self._replicas)

    def _bury(self, child: Child) -> None:
        self._fault(f"scheduler ended by itself: {child.last_words()}")
        self._replicas.remove(child)
        self._forget(child)

    def _forget(self, child: Child) -> None:
        self._bed.children.remove(child)
        self._look_at_log(child)

    def _wait_synced(self) -> None:
        self._leader()

    def _leader(self, *but: Child) -> Child:
        """Who leads, once somebody does who is none of *but*."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self._start()
            holder = ""
            with suppress(*AWAY):
                _status, lease = self._bed.request("GET", LEASE)
                holder = lease.get("spec", {}).get("holderIdentity") or ""
            for child in self._replicas:
                if child not in but and holder and _leads(child, holder):
                    return child
            time.sleep(0.02)
        raise TestbedError(f"nobody leads after {PATIENCE_S:.0f} s")

    def _kill(self) -> None:
        """Hit whoever leads, in one of the ways in turn."""
        way = WAYS[self.report.kills % len(WAYS)]
        if self._is_away:
            self._start()  # one that has ended by itself is seen
            way = "kill"
            leader = self._replicas[0]
        else:
            leader = self._leader()
        began = time.monotonic()
        if way != "stop":
            self._replicas.remove(leader)
        match way:
            case "kill":
                leader.kill()
                self._forget(leader)
            case "stop":
                os.kill(leader.pid, signal.SIGSTOP)
            case _:
                os.kill(leader.pid, signal.SIGTERM)
        self.report.kills += 1
        time.sleep(0.1)  # what was in flight
        if n_halves := self._spectator.note_halves():
            self._say(f"{way} {self.report.kills}: {n_halves} gangs bound in part")
        if self._is_away:
            return
        self._leader(leader)
        took = time.monotonic() - began
        longest = self.report.handovers
        longest[way] = max(longest.get(way, 0.0), took)
        if way == "stop":
            os.kill(leader.pid, signal.SIGCONT)
            self._see_it_stand_by(leader)
        elif way == "term":
            self._see_it_end(leader)

    def _see_it_stand_by(self, child: Child) -> None:
        """Until one that was stopped knows that another leads; it goes on."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_deposed(logs.read(child.log)):
            if time.monotonic() > deadline:
                self._fault(f"does not stand by: {child.last_words()}")
                return
            time.sleep(0.02)

    def _see_it_end(self, child: Child) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while child.is_running and time.monotonic() < deadline:
            time.sleep(0.02)
        if child.status != 0:
            self._fault(f"ended with {child.status}, not 0: {child.last_words()}")
            child.kill()
        self._forget(child)

    def _count(self) -> None:
        super()._count()
        found = judged(self._bed.audit_log)
        self.report.leaders = len(found.leaders)
        for line in found.usurpers:
            self._fault(line)
        # An API server that is killed has not written down all it did.
        if not self.report.restarts and found.n_bindings < self.report.binds:
            seen = self.report.binds
            self._fault(f"{found.n_bindings} bindings in the audit log, {seen} seen")


def is_deposed(log: str) -> bool:
    """Whether a scheduler has led and does no more, by its log.

    It may have lost the Lease just before it was stopped.
    """
    return log.rfind('"event":"deposed"') > log.rfind('"event":"leads"')


def _leads(child: Child, holder: str) -> bool:
    """Whether *holder* is that scheduler, and it has begun to decide."""
    text = child.log.read_text(encoding="utf-8", errors="replace")
    return child.is_running and f'"identity":"{holder}","event":"leads"' in text
