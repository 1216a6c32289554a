"""``ringleaf faults``: every fault, its history, and the pods it affects."""

from collections.abc import Callable, Iterable
from typing import Any

from rich.console import ConsoleRenderable

from ringleaf.cli.failure import BadUse
from ringleaf.cli.fault_screen import MAX_NAMES, MAX_ROWS, FaultScreen, Plain
from ringleaf.cli.fault_view import FaultView, recall
from ringleaf.cli.live import ClusterAccess, ask
from ringleaf.cli.output import TrimmedConsole, print_json, shortened
from ringleaf.cli.plan import print_about
from ringleaf.cli.scenario import read_scenarios
from ringleaf.cli.timeline import run_scenario
from ringleaf.kube.api import Api
from ringleaf.kube.fault_history import FaultHistory, follow_lives, read_lives
from ringleaf.kube.job_names import known_as, spoken
from ringleaf.kube.names import UID
from ringleaf.kube.snapshot import ReadOnlyCache, Snapshot, clock, read_cache
from ringleaf.kube.watch import Reflector
from ringleaf.simulator.run import ScenarioRun


class FaultQuery:
    """The faults to show.

    Args:
        node: Only what is wrong with this node.
        job: Only what concerns this job.
        namespace: Where a job is whose name has none.
        recovered: Also faults that have recovered.

    """

    def __init__(
        self,
        node: str | None = None,
        job: str | None = None,
        namespace: str = "",
        *,
        recovered: bool = False,
    ) -> None:
        self.node, self.job, self.namespace = node, job, namespace
        self.recovered = recovered
        self._is_checked = False

    def of(self, found: Plain) -> Plain:
        """What of *found* is wanted."""
        faults = [
            each
            for each in found["faults"]
            if (self.recovered or each["recovered"] is None) and self._has(each)
        ]
        repairs = [each for each in found["repairs"] if self._is_repaired(each)]
        aside = [
            each
            for each in found["quarantined"]
            if self.job is None and self.node in (None, each["node"])
        ]
        return found | {"faults": faults, "repairs": repairs, "quarantined": aside}

    def _has(self, fault: Plain) -> bool:
        jobs = {*fault["jobs"], *fault["pods"], fault["where"]}
        return (self.node is None or fault["where"] == self.node) and (
            self.job is None or self.job in jobs
        )

    def _is_repaired(self, repair: Plain) -> bool:
        nodes = {each.get("node") for each in repair["ailments"]}
        return (self.node is None or self.node in nodes) and (
            self.job is None or repair["job"] == self.job
        )

    def check(self, found: Plain, nodes: Iterable[str], jobs: Iterable[str]) -> None:
        """Refuse unknown names of nodes and jobs; expand the job to its full name.

        Names are checked once: a node or job may go while its faults are shown.
        """
        if self._is_checked:
            return
        places = {each["where"] for each in found["faults"]}
        if self.node is not None and self.node not in {*nodes, *places}:
            raise BadUse(
                f"--node is {self.node!r}, want the name of a node; "
                "hint: ringleaf faults names those with faults"
            )
        if self.job is not None:
            past = {job for each in found["faults"] for job in each["jobs"]}
            repaired = {each["job"] for each in found["repairs"]}
            self.job = self._full({*jobs, *past, *repaired})
        self._is_checked = True

    def _full(self, jobs: set[str]) -> str:
        assert self.job is not None
        name = self.job.removeprefix("job/")
        full = f"{self.namespace}/{name}"
        for called in (name, f"pod {name}", full, f"pod {full}"):
            like = sorted(job for job in jobs if called in (job, UID.sub("", job)))
            if like:
                return like[0]
        has = shortened(sorted(UID.sub("", job) for job in jobs), MAX_NAMES)
        raise BadUse(
            f"--job is {self.job!r}, want the name of a job; hint: there is {has}"
        )


# Of a live cluster.


def show_faults(cluster: ClusterAccess, wanted: FaultQuery, *, as_json: bool) -> int:
    """Print the faults of a live cluster; the exit status."""

    async def question(api: Api, seen: Callable[[int], None]) -> Plain:
        cache = await read_cache(api, cluster.schedulers, cluster.conf(), seen)
        lives = await read_lives(api)
        wanted.namespace = wanted.namespace or api.credentials.namespace
        return faults_in(Snapshot(cache, clock()), cache, lives, wanted)

    found = ask(cluster, question)
    if as_json:
        print_json(found)
    else:
        TrimmedConsole().print(FaultScreen(found))
    return 0


def faults_in(
    look: Snapshot, cache: ReadOnlyCache, lives: FaultHistory, wanted: FaultQuery
) -> Plain:
    """The faults of a cluster as it was looked at, as plain values."""
    view = look.engine.view
    recall(look.engine, lives, look.now)
    found = FaultView(look.engine, look.now, has_history=lives.is_there).plain()
    wanted.check(found, view.cluster.index, view.job_states)
    found = wanted.of(found)
    jobs = {job for each in found["faults"] for job in (*each["jobs"], *each["pods"])}
    jobs |= {each["job"] for each in found["repairs"]}
    names = {job: known_as(cache, job) for job in sorted(jobs)}
    for fault in found["faults"]:
        fault["means"] = [spoken(cache, line) for line in fault["means"]]
    found["names"] = {job: name for job, name in names.items() if name != job}
    return found | ({"unread": lives.trouble} if lives.trouble else {})


class Followed:
    """The faults of a live cluster as they come and go."""

    def __init__(self, wanted: FaultQuery) -> None:
        self._wanted, self._lives = wanted, FaultHistory()

    def facts(self, look: Snapshot, cache: ReadOnlyCache) -> Plain:
        """The faults as plain values."""
        return faults_in(look, cache, self._lives, self._wanted)

    def screen(self, facts: Plain, now: float, rows: int) -> ConsoleRenderable:
        """The screen, with at most *rows* rows in its tables."""
        return FaultScreen(facts, rows=min(rows, MAX_ROWS), now=now)

    def more(self, api: Api, wake: Callable[[], None]) -> Iterable[Reflector[Any]]:
        """Their lives are written down elsewhere."""
        self._wanted.namespace = self._wanted.namespace or api.credentials.namespace

        def heard(lives: FaultHistory) -> None:
            self._lives = lives
            wake()

        yield follow_lives(api, heard)


# Of a scenario.


def show_run(file: str, wanted: FaultQuery, *, as_json: bool) -> int:
    """Print the faults of scenarios after their last event; the exit status."""
    scenarios = read_scenarios(file)
    console = TrimmedConsole()
    for number, scenario in enumerate(scenarios):
        found = faults_of_run(run_scenario(scenario), wanted)
        if as_json:
            print_json(found)
            continue
        if number:
            console.print()
        print_about(console, scenario.about)
        console.print(FaultScreen(found, when=_in_run))
    return 0


def faults_of_run(run: ScenarioRun, wanted: FaultQuery) -> Plain:
    """The faults of a run, as plain values."""
    view = run.engine.view
    now = run.steps[-1].at if run.steps else 0.0
    found = FaultView(run.engine, now).plain()
    wanted.check(found, view.cluster.index, run.jobs)
    return wanted.of(found) | {"names": {}}


def _in_run(at: float, _now: float) -> str:
    return f"at {at:g} s"
