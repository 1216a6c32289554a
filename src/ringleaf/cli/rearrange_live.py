"""``ringleaf rearrange`` without a file: moves on the live cluster."""

from collections.abc import Callable

from ringleaf.actions.moves import MovePlan
from ringleaf.actions.rearrange import ACTION
from ringleaf.cli.explain_live import Target, job_names, target_of
from ringleaf.cli.failure import BadUse
from ringleaf.cli.live import ClusterAccess, ask, look_with_lives
from ringleaf.cli.naming import PeopleConsole
from ringleaf.cli.output import print_json
from ringleaf.cli.rearrange import plain, print_plan, proposed
from ringleaf.kube.api import Api
from ringleaf.kube.job_names import known_as
from ringleaf.kube.snapshot import Snapshot


def rearrange_live(
    cluster: ClusterAccess,
    gains: str | None,
    namespace: str,
    most: int,
    *,
    whole_units: bool,
    as_json: bool,
) -> int:
    """Propose moves of running jobs; the exit status. Nothing is moved."""
    target = None if gains is None else _target(gains, namespace)

    async def question(api: Api, seen: Callable[[int], None]) -> tuple[Snapshot, str]:
        return await look_with_lives(api, cluster, seen), api.credentials.namespace

    look, own = ask(cluster, question)
    if target is not None:
        target = target._replace(namespace=target.namespace or own)
    return rearrange_in(look, target, most, whole_units=whole_units, as_json=as_json)


def rearrange_in(
    look: Snapshot,
    target: Target | None,
    most: int,
    *,
    whole_units: bool,
    as_json: bool,
) -> int:
    """Propose moves in a cluster that was looked at."""
    name = None if target is None else _pending(look, job_names(look, target))
    look.leave_out(ACTION)
    look.decide()
    plan = proposed(look.engine, name, most, whole_units=whole_units)
    if as_json:
        print_json(plain(look.engine, plan, name))
    else:
        console = PeopleConsole(lambda job: known_as(look.cache, job))
        print_plan(console, look.engine, plan, name)
    return 0 if isinstance(plan, MovePlan) else 1


def _target(gains: str, namespace: str) -> Target:
    """The job that is to start."""
    found = target_of(gains, namespace)
    if found is None:
        raise BadUse(
            f"--for is {gains!r}, want job/NAME, podgroup/NAME or pod/NAME; hint: "
            f"--for job/{gains}"
        )
    return found


def _pending(look: Snapshot, names: list[str]) -> str:
    """The first job of *names* that has pods without a node, or else the first."""
    states = look.engine.view.job_states
    waits = (n for n in names if n in states and not states[n].placements)
    return next(waits, names[0])
