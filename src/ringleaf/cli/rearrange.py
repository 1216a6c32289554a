"""``ringleaf rearrange``: which running jobs to move so that a pending job starts."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from ringleaf.actions.moves import MovePlan, NoMoves
from ringleaf.actions.propose import propose, propose_whole, waiting_jobs
from ringleaf.cli.failure import BadUse
from ringleaf.cli.naming import PeopleConsole
from ringleaf.cli.output import print_json, shortened, so_many
from ringleaf.cli.parameter import close_to
from ringleaf.cli.plan import new_table, print_about
from ringleaf.cli.scenario import read_scenarios
from ringleaf.cli.timeline import run_scenario
from ringleaf.engine.engine import Engine
from ringleaf.model.placement import Placement
from ringleaf.report.duration import format_duration
from ringleaf.simulator.answer import placement_plain
from ringleaf.simulator.plain import whole

Plain = dict[str, Any]

MAX_NODES: Final = 4
"""Nodes that are named of one job."""
MAX_TRIED: Final = 8
"""Pending jobs for which moves are looked for, where none is named."""


def rearrange_file(
    file: str, name: str | None, most: int, *, whole_units: bool, as_json: bool
) -> int:
    """Propose moves at the end of a scenario; the exit status."""
    console, found = PeopleConsole(), False
    for scenario in read_scenarios(file):
        engine = run_scenario(scenario).engine
        if name is not None and name not in scenario.known_jobs:
            continue
        plan = proposed(engine, name, most, whole_units=whole_units)
        if as_json:
            print_json(plain(engine, plan, name))
        else:
            print_about(console, scenario.about)
            print_plan(console, engine, plan, name)
        if name is not None or isinstance(plan, MovePlan):
            return 0 if isinstance(plan, MovePlan) else 1
        found = True
    if not found:
        raise BadUse(_no_job(file, name or ""))
    return 1


def _no_job(file: str, name: str) -> str:
    """One line on a job that no scenario of *file* has."""
    known = [job for each in read_scenarios(file) for job in each.known_jobs]
    guess = close_to(name, known)
    hint = f"did you mean {guess!r}?" if guess else f"it has {shortened(known, 8)}"
    return f"--for is {name!r}, want a job of {file}; hint: {hint}"


def proposed(
    engine: Engine, name: str | None, most: int, *, whole_units: bool
) -> MovePlan | NoMoves | None:
    """Moves for a job, or for the first pending one that they help; or for nodes.

    None where no job is pending.
    """
    ctx = engine.context
    if whole_units:
        return propose_whole(ctx, most)
    if name is not None:
        return propose(ctx, engine.view.job_states.get(name), most)
    first = None
    for job_state in waiting_jobs(ctx)[:MAX_TRIED]:
        found = propose(ctx, job_state, most)
        if isinstance(found, MovePlan):
            return found
        first = first or found
    return first


def plain(engine: Engine, found: MovePlan | NoMoves | None, name: str | None) -> Plain:
    """A plan, or why there is none, as plain values."""
    if found is None:
        return {"why": "no job is pending"}
    if isinstance(found, NoMoves):
        facts: Plain = {"for": found.job or name} if found.job or name else {}
        facts |= {"why": str(found.why), "message": found.message}
        return facts | ({"plan": _plan_plain(engine, found.plan)} if found.plan else {})
    return _plan_plain(engine, found)


def _plan_plain(engine: Engine, plan: MovePlan) -> Plain:
    cluster = engine.view.cluster

    def places(given: Iterable[Placement]) -> list[Plain]:
        return [placement_plain(cluster, each) for each in given]

    facts: Plain = {"for": plan.job} if plan.job else {"whole": list(plan.units)}
    facts["moves"] = [
        {
            "job": move.job,
            "chips": move.mover.chips,
            "from": places(move.mover.placements),
            "to": places(move.after),
            "lost-seconds": whole(move.mover.lost_s),
            "restart-seconds": whole(move.mover.restart_s),
            "cost": whole(move.mover.cost),
        }
        for move in plan.moves
    ]
    if plan.job:
        facts["starts-on"] = places(plan.places)
    facts |= {"cost": whole(plan.cost), "benefit": whole(plan.benefit)}
    return facts | {"chips": plan.chips, "sooner-seconds": whole(plan.sooner_s)}


def print_plan(
    console: Console,
    engine: Engine,
    found: MovePlan | NoMoves | None,
    name: str | None,
) -> None:
    """A plan as a table, with what it costs and gains; or why there is none."""
    if found is None:
        console.print(Text("no job is pending: nothing to rearrange"))
        return
    if isinstance(found, NoMoves):
        job = found.job or name
        facts = f"job {job!r}: {found.message}" if job else found.message
        console.print(Text(facts))
        if found.hint:
            console.print(Text(f"hint: {found.hint}", style="bold"))
        if found.plan is None:
            return
        console.print()
    plan = found if isinstance(found, MovePlan) else found.plan
    assert plan is not None
    for line in _headline(engine, plan, refused=plan is not found):
        console.print(Text(line, style="bold"))
    console.print()
    _print_moves(console, engine, plan)
    console.print()
    for line in _sums(engine, plan):
        console.print(Text(line))


def _headline(engine: Engine, plan: MovePlan, *, refused: bool) -> Iterator[str]:
    moves = so_many(len(plan.moves), "move")
    would = "would " if refused else ""
    if not plan.job:
        be = "be" if refused else ("is" if len(plan.units) == 1 else "are")
        yield f"{shortened(plan.units, 8)} {would}{be} whole after {moves}"
        return
    wanted = engine.view.job_states[plan.job].job.wanted
    start = "start" if refused else "starts"
    yield f"job {plan.job!r} ({wanted}) {would}{start} after {moves}"


def _print_moves(console: Console, engine: Engine, plan: MovePlan) -> None:
    table = new_table("job", "chips", "from", "to", "lost work", "restart", "cost")
    for column in (1, 4, 5, 6):
        table.columns[column].justify = "right"
    for move in plan.moves:
        table.add_row(
            Text(move.job),
            str(move.mover.chips),
            Text(where_words(engine, move.mover.placements)),
            Text(where_words(engine, move.after)),
            format_duration(move.mover.lost_s),
            format_duration(move.mover.restart_s),
            f"{move.mover.cost:,.0f}",
        )
    console.print(table)


def where_words(engine: Engine, placements: Iterable[Placement]) -> str:
    """Nodes, and what part of the network they are in, in few words."""
    cluster = engine.view.cluster
    nodes = list(dict.fromkeys(p.node for p in placements))
    facts = shortened(nodes, MAX_NODES)
    units = []
    for node in nodes:
        at = cluster.index[node]
        leaf = cluster.leaf_of(at)
        if cluster.superpod.item(at) >= 0:
            units.append(f"SuperPoD {cluster.superpod.item(at)}")
        elif leaf is not None:
            units.append(f"leaf {leaf.name}")
    return f"{facts} ({shortened(list(dict.fromkeys(units)), 2)})" if units else facts


def _sums(engine: Engine, plan: MovePlan) -> Iterator[str]:
    """What the plan costs and gains, and where the job starts."""
    lost = sum(move.mover.chips * move.mover.lost_s for move in plan.moves)
    restart = sum(move.mover.chips * move.mover.restart_s for move in plan.moves)
    yield (
        f"cost     {plan.cost:,.0f} chip-seconds: {lost:,.0f} of work since the last "
        f"checkpoints, {restart:,.0f} of restarts"
    )
    chips, sooner = so_many(plan.chips, "chip"), format_duration(plan.sooner_s)
    if plan.job:
        gained = f"{chips} wait {sooner} less, by the expected ends of running jobs"
    else:
        gained = f"{chips} are together {sooner} sooner, by the expected ends of jobs"
    times = f", {plan.benefit / plan.cost:,.0f} times the cost" if plan.cost else ""
    yield f"benefit  {plan.benefit:,.0f} chip-seconds{times}: {gained}"
    if plan.job:
        yield f"starts   on {where_words(engine, plan.places)}"
