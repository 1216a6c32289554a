"""One scheduling cycle: it begins, runs the actions, and says when the next is due.

The engine runs a cycle for every batch of events. The actions run in the order of
the configuration: ``enqueue`` admits jobs, ``allocate`` starts those with a reservation
and then others, and makes reservations, ``backfill`` starts pods that request nothing,
``preempt`` and ``reclaim`` evict pods, ``rearrange`` moves running jobs. Start reading
at ``run_actions``.
"""

from collections.abc import Mapping
from math import inf
from typing import Final

from ringleaf.actions.handle_faults import reconcile_if_changed
from ringleaf.actions.unstarted import next_startup_deadline
from ringleaf.framework.changes import Change
from ringleaf.framework.context import ActionFunction, Context
from ringleaf.framework.instruction import WakeAt

MAX_ROUNDS: Final = 100
"""How often the actions run after one event, while what they do makes room for more."""
SOON_S: Final = 1.0
"""When to go on where that was not enough."""


def begin_cycle(
    ctx: Context, now: float, max_binds: float, *, has_events: bool
) -> None:
    """Begin a cycle that starts *max_binds* jobs at most.

    Without events, a search for victims that was interrupted continues where it was:
    what is decided does not depend on how often it was interrupted.
    """
    search, ctx.state.now = ctx.victim_search, now
    is_due = search.again_at <= now
    goes_on = not (has_events or is_due or ctx.budget.is_exhausted)
    resumed = search.resume.action if goes_on and search.resume else None
    ctx.reservations.begin(now)
    ctx.reports.instructions, ctx.reports.admitted, ctx.pending.rejected = [], [], []
    search.begin(resumes=ctx.budget.is_exhausted or search.resume is not None)
    ctx.budget.begin(max_binds, resumed)
    if is_due:
        search.again_at = inf
        ctx.wakeups.victims_changed()


def run_actions(ctx: Context, functions: Mapping[str, ActionFunction]) -> None:
    """Run the actions, then reconcile repairs, until they make no more room."""
    search = ctx.victim_search
    for _round in range(MAX_ROUNDS):
        if ctx.budget.resumed_action is None:
            search.passed_over.clear()
            if ctx.wakeups.admission_changed:
                ctx.wakeups.retry_queues()
        if not _run_round(ctx, functions):
            return
        if ctx.repairs.open:
            reconcile_if_changed(ctx)
        if search.resume is not None:
            return
        more = ctx.wakeups.admission_changed or search.failed_for_next_search
        search.failed, search.failed_for_next_search = search.failed_for_next_search, {}
        if ctx.budget.tries_exhausted:
            return
        if not more:
            break
    else:
        ctx.wake_at(ctx.state.now + SOON_S)
    if ctx.reports.unreported:
        ctx.pending.report_unreported()


def _run_round(ctx: Context, functions: Mapping[str, ActionFunction]) -> bool:
    """Run the actions that are left, in order; False if as many jobs started as may."""
    actions, first = ctx.framework.conf.actions, ctx.budget.resumed_action
    for action in actions[0 if first is None else actions.index(first) :]:
        functions[action](ctx)
        if ctx.budget.binds_exhausted:
            if ctx.pending.rejected:  # they are looked at again
                ctx.wakeups.note(Change.USAGE_CHANGED)
            return False
    ctx.budget.resumed_action = None
    if ctx.pending.rejected:
        ctx.pending.report_rejected()
    return True


def has_more(ctx: Context) -> bool:
    """Whether more is to be decided than may be in one cycle."""
    return ctx.budget.is_exhausted or ctx.victim_search.resume is not None


def end_cycle(ctx: Context) -> None:
    """Emit when the engine is to be called again, unless that was said before.

    Where more is to be decided, that is at once.
    """
    if has_more(ctx):
        return
    deadline = next_startup_deadline(ctx)
    wake = min(ctx.budget.wake, ctx.victim_search.again_at, deadline)
    if wake != inf and ctx.budget.announces(wake, ctx.state.now):
        ctx.reports.emit(WakeAt(wake))
