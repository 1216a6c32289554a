"""One group of pods of a live cluster, explained."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from ringleaf.cli.explain import may_start
from ringleaf.cli.explain_node import MAX_NAMES, indented, named
from ringleaf.cli.explain_run import (
    JobExplanation,
    explain_node,
    job_explanation,
    print_explanation,
)
from ringleaf.cli.fault_view import repair_of
from ringleaf.cli.fault_words import repair_lines
from ringleaf.cli.live import moment
from ringleaf.cli.naming import PeopleConsole
from ringleaf.cli.plan import PENDING
from ringleaf.cli.start_estimate import Start, start_of
from ringleaf.cli.uncreated import Uncreated
from ringleaf.explain.survey import Candidate, look_at
from ringleaf.framework.job_state import Phase
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.job_names import known_as
from ringleaf.kube.snapshot import ReadOnlyCache, Snapshot, podless_words
from ringleaf.kube.special_jobs import OUTSIDE
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job
from ringleaf.policies.validation import is_legal
from ringleaf.report.duration import format_duration
from ringleaf.simulator.run import ScenarioRun
from ringleaf.simulator.scenario import Scenario

Plain = dict[str, Any]


def console_of(look: Snapshot) -> PeopleConsole:
    """A console that names jobs as users know them."""
    return PeopleConsole(lambda name: known_as(look.cache, name))


def rules_of(look: Snapshot) -> Any:  # noqa: ANN401 - settings of the core
    """The settings by which the scheduler decides."""
    return look.engine.view.settings


def is_pending(group: GangState) -> bool:
    """Whether pods of a group wait without which it does not run."""
    if group.reported.job is None:
        return bool(group.status.not_ready)
    return (
        len(group.reported.placed) < group.reported.job.effective_min
        and not group.reported.ending
    )


class ExplainedGroup:
    """One group, explained."""

    def __init__(
        self, look: Snapshot, group: GangState, top: int, uncreated: Uncreated
    ) -> None:
        self._look, self._group, self._top = look, group, top
        self.held = group.status.not_ready if group.reported.job is None else ""
        """Why the scheduler does not even try, if it does not."""
        self._starts = False
        self._refusal: tuple[float, str] | None = None
        """When its last binding failed, and why; None if none did."""
        self._ranks: tuple[str, ...] = ()
        self._repair = repair_of(look.engine, group.name, look.now)
        self._start: Start | None = None
        self._uncreated = uncreated.words
        self.job: Job | None = None
        if group.reported.job is None:
            return
        if is_pending(group):
            look.decide()
            if uncreated.pods:
                look.cache.handlers["pods"].on_update(uncreated.pods)
                look.submit()
            self._starts = group.name in look.binds
            if isinstance(look.cache, ReadOnlyCache):
                self._refusal = look.cache.last_refusal(group)
        if group.reported.job is None or group.reported.job.podless:
            self.held = group.status.not_ready or podless_words(look, group.name)
            return
        job_state = look.engine.view.job_states.get(group.name)
        self.job = group.reported.job if job_state is None else job_state.job
        if job_state is not None and job_state.placements and not self._starts:
            self._ranks = tuple(self._places())
        if job_state is not None and not job_state.placements:
            self._start = start_of(look, job_state)

    def on_node(self, node: str, *, as_json: bool) -> int:
        """What the group finds on one node."""
        assert self.job is not None
        run, name = self._run(), self._group.name
        return explain_node(
            console_of(self._look), run, name, node, self._top, as_json=as_json
        )

    def _places(self) -> Iterator[str]:
        """The rank of every node it is on, were the job not there."""
        job, session = self.job, self._look.engine.context.framework.session
        assert job is not None
        if not is_legal(job, session.settings) or job.queue == OUTSIDE:
            return
        for placement in islice(self._group.reported.placed.values(), MAX_NAMES):
            if not placement.chips:
                continue
            found = look_at(session, job, placement.node)
            told = (
                f"choice {found.place} if the job were placed now"
                if isinstance(found, Candidate)
                else f"would refuse the job now: {found.rule}"
            )
            yield f"node {placement.node}: {told}"

    def _run(self) -> ScenarioRun:
        assert self.job is not None
        settings = rules_of(self._look)
        empty = Scenario(None, settings, (), (), {}, (), ())
        written = {
            (bind.job, placement.replica): given
            for bind in self._look.binds.values()
            for placement, given in zip(bind.placements, bind.annotations, strict=True)
        }
        jobs = {self._group.name: self.job}
        return ScenarioRun(empty, self._look.engine, (), jobs, written)

    def _outlook(self, run: ScenarioRun) -> JobExplanation:
        """How the group stands.

        Nothing that ends helps a job that would not start on an empty cluster.
        """
        found = job_explanation(run, self._group.name, self._top)
        never = self._start is not None and self._start.plain is None
        if never and may_start(found.fate):
            found = replace(found, fate=replace(found.fate, hint=""))
        return found

    def plain(self, others: str) -> Plain:
        """The result as plain values."""
        group = self._group
        told: Plain = {"others": others} if others else {}
        if self.job is None:
            word = "waiting" if self.held else "ended"
            decision = {"job": group.name, "verdict": word, "message": self.held}
            told |= {"repair": self._repair} if self._repair else {}
            told |= {"uncreated": self._uncreated} if self._uncreated else {}
            return told | {"decision": decision, "at": self._look.now}
        run = self._run()
        told |= self._outlook(run).plain(run)
        told["bound"] = not self._starts
        if self._starts:
            told["phase"] = str(Phase.INQUEUE)
        if self._refusal is not None:
            told["last-binding"] = {"at": self._refusal[0], "why": self._refusal[1]}
        told |= {"held": group.status.not_ready} if group.status.not_ready else {}
        told |= {"uncreated": self._uncreated} if self._uncreated else {}
        told |= {"repair": self._repair} if self._repair else {}
        if self._start is not None and self._start.plain is not None:
            told["could-start"] = self._start.plain
        return told | ({"places": list(self._ranks)} if self._ranks else {})

    def print(self, console: Console) -> None:
        """Print the result for people."""
        group = self._group
        if self.job is None:
            word = PENDING if self.held else "ended"
            console.print(Text(f"{named(group.name)}: {word}"))
            for line in filter(None, (self.held, self._uncreated)):
                console.print(indented(line))
            for line in self._repair_lines():
                console.print(indented(line))
            return
        run = self._run()
        outlook = self._outlook(run)
        print_explanation(
            console,
            run,
            outlook,
            self._top,
            clock=self._clock,
            more=self._more(outlook),
            first=self._refusal_lines(),
            unbound=self._look.binds,
        )

    def _clock(self, at: float) -> str:
        ago = self._look.now - at
        if ago == 0:
            return moment(at)
        direction = "ago" if ago > 0 else "from now"
        return f"{moment(at)} ({format_duration(abs(ago))} {direction})"

    def _refusal_lines(self) -> Iterator[str]:
        if self._refusal is not None:
            at, why = self._refusal
            ago = format_duration(max(0.0, self._look.now - at))
            yield f"its last binding failed {ago} ago: {why}"

    def _repair_lines(self) -> Iterator[str]:
        return repair_lines(self._repair, self._clock) if self._repair else iter(())

    def _more(self, outlook: JobExplanation) -> Iterator[str]:
        assert self.job is not None
        if self._starts and isinstance(outlook.fate, Placed):
            yield (
                "it is not bound yet: a scheduler would place it here now; "
                "hint: ringleaf status shows the leader"
            )
        if self._uncreated:
            yield self._uncreated
        yield from self._repair_lines()
        if self._group.status.not_ready:
            yield self._group.status.not_ready
        if self.job.queue == OUTSIDE:
            yield "another scheduler placed it, or its labels cannot be read any more"
        if self._start is not None and may_start(outlook.fate):
            found = outlook.found
            yield f"it {self._start.words(found.enough_to_end if found else ())}"
        yield from self._ranks
