"""``ringleaf dump``: the state of a live cluster as a scenario."""

import sys
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ringleaf.cli.failure import report, warn
from ringleaf.cli.file import STDIN, one_line
from ringleaf.cli.live import ClusterAccess, look_at, moment
from ringleaf.cli.output import progress, so_many
from ringleaf.kube.snapshot import Snapshot
from ringleaf.simulator.anonymous import anonymous
from ringleaf.simulator.dump import EngineState, scenario_of, state_of, written
from ringleaf.simulator.source import MAPPING, MAX_BYTES, MAX_VALUES

STDOUT: Final = STDIN


def dump_cluster(cluster: ClusterAccess, out: str, *, hide_names: bool) -> int:
    """Write the state of the cluster to *out*; the exit status."""
    look, _namespace = look_at(cluster)
    with progress(what="writing"):
        data = dumped(look, hide_names=hide_names)
    values = data.count(b",") + data.count(b"[") + MAPPING * data.count(b"{")
    if len(data) > MAX_BYTES or values > MAX_VALUES:
        warn(f"{len(data)} bytes with {values} values are more than plan reads")
    if out == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return 0
    with one_line(out):
        Path(out).write_bytes(data)
    report(f"{out}: {about(look, state_of(look.events))}")
    return 0


def dumped(look: Snapshot, *, hide_names: bool) -> bytes:
    """The cluster as a scenario; it is a function of its objects and of the time."""
    state = _predicted(look, state_of(look.events))
    told = about(look, state)
    if hide_names:
        state, _names = anonymous(state)
    return written(scenario_of(state, look.now, told))


def _predicted(look: Snapshot, state: EngineState) -> EngineState:
    """*state* with the running times that are predicted; what they come from is not."""
    known = look.engine.view.job_states
    jobs = (
        replace(each, job=replace(each.job, run_time=known[each.job.name].job.run_time))
        if each.job.name in known
        else each
        for each in state.jobs
    )
    return replace(state, jobs=tuple(jobs))


def about(look: Snapshot, state: EngineState) -> str:
    """What is in it, in one line."""
    running = sum(bool(each.placements) for each in state.jobs)
    waiting = len(state.jobs) - running
    others = sum(
        bool(group.status.not_ready) and group.reported.job is None
        for group in look.cache.gangs.values()
    )
    told = (
        f"{so_many(len(state.nodes), 'node')}, {so_many(running, 'job')} that hold "
        f"something and {waiting} that wait, at {moment(look.now)}"
    )
    if others:
        told += f"; {so_many(others, 'job')} not in it: not all of their pods are there"
    return told
