"""What one job finds on one node, and what became of the job."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ringleaf.cli.netdraw import Focus, draw_network, superpods_by_node
from ringleaf.cli.output import print_json, shortened, so_many
from ringleaf.cli.parameter import close_to
from ringleaf.explain.netview import LeafRule, LeafView, SuperpodRule
from ringleaf.explain.survey import (
    Candidate,
    NetworkView,
    RefusedNode,
    look_at,
    network_view,
)
from ringleaf.framework.session import Session
from ringleaf.model.decision import Decision, Placed, Reason, Waiting
from ringleaf.model.job import Job
from ringleaf.policies.obstacles import rule_name

MAX_NAMES = 8


def known_like(name: str, known: Sequence[str]) -> str:
    """A hint: the known name that *name* was meant to be, or some of them."""
    guess = close_to(name, known)
    return (
        f"did you mean {guess!r}?" if guess else f"it has {shortened(known, MAX_NAMES)}"
    )


def indented(line: str, style: str = "") -> Padding:
    """*line* two columns in, also where it is broken."""
    return Padding(Text(line, style=style), (0, 0, 0, 2), expand=False)


POD: Final = "pod "
"""How the names of pods begin that are jobs of their own."""


def named(job: str) -> str:
    """A job in a sentence; a pod that is a job of its own is a pod.

    >>> named("default/train"), named("pod default/infer")
    ("job 'default/train'", "pod 'default/infer'")
    """
    pod = job.removeprefix(POD)
    return f"job {job!r}" if pod == job else f"pod {pod!r}"


def no_node(name: str, known: Iterable[str], of: str = "scenario") -> str:
    """One line on a node that is not there."""
    hint = known_like(name, [*known])
    return f"--node is {name!r}, want a node of the {of}; hint: {hint}"


class NodeAnswer(Struct, frozen=True):
    """What a job finds on one node, and what became of the job."""

    node: str
    found: Candidate | RefusedNode
    view: NetworkView
    fate: Decision | None

    @property
    def taken(self) -> bool:
        """Whether a pod of the job is on the node."""
        placements = self.fate.placements if isinstance(self.fate, Placed) else ()
        return any(placement.node == self.node for placement in placements)

    @property
    def fits(self) -> bool:
        """Whether the node fits a pod, and nothing else keeps the job from it."""
        return isinstance(self.found, Candidate) and not self.waits

    @property
    def waits(self) -> bool:
        """Whether the job waits."""
        return isinstance(self.fate, Waiting)

    @property
    def leaf(self) -> LeafView | None:
        """The leaf of the node, if a leaf rule places the job."""
        return next(
            (
                leaf
                for leaf in self.view.leaves
                if any(slot.node == self.node for slot in leaf.slots)
            ),
            None,
        )


def node_answer(
    session: Session, job: Job, node: str, fate: Decision | None
) -> NodeAnswer:
    """What the job finds on one node, beside what became of it."""
    found = look_at(session, job, node)
    return NodeAnswer(node, found, network_view(session, job), fate)


def print_node(
    console: Console,
    session: Session,
    job: Job,
    answer: NodeAnswer,
    top: int,
    *,
    as_json: bool,
) -> int:
    """Print what the job finds on one node; the exit status."""
    where = superpods_by_node(session.cluster)
    if as_json:
        print_json(_node_plain(job, answer, where.get(answer.node)))
        return 0 if answer.fits else 1
    found = answer.found
    if isinstance(found, RefusedNode):
        refuses = f"node {found.node!r} refuses {named(job.name)}: {found.reason}"
        _say(console, refuses, found.rule)
    else:
        _say_room(console, job, answer, found, where.get(answer.node))
    closed = isinstance(found, RefusedNode) and found.reason is Reason.LEAF_CLOSED
    if closed or (answer.waits and isinstance(found, Candidate)):
        draw_network(console, answer.view, Focus(node=answer.node, most=top), where)
    return 0 if answer.fits else 1


def _say_room(
    console: Console,
    job: Job,
    answer: NodeAnswer,
    found: Candidate,
    superpod: int | None,
) -> None:
    """Say how well the node fits, or what keeps the job from it."""
    node, fate = answer.node, answer.fate
    if isinstance(fate, Waiting):
        _say(
            console,
            f"node {node!r} has room for {_a_pod_of(job.name)}, but the job is pending",
            *_unit_words(answer, superpod),
            *fate.parts,
        )
        if fate.hint:
            console.print(indented(f"hint: {fate.hint}", style="bold"))
        return
    fits = f"node {node!r} fits {named(job.name)}: choice {found.place}"
    if answer.view.rule is not None:
        chosen = "is one of the nodes" if answer.taken else "is none of the nodes"
        fits = (
            f"node {node!r} fits {_a_pod_of(job.name)}, and {chosen} that "
            f"{_rule_words(answer.view)} chose"
        )
    _say(
        console,
        fits,
        f"rank: {'; '.join(found.rank)}",
        f"chips: {', '.join(map(str, found.chips))}",
    )


def _rule_words(view: NetworkView) -> str:
    rule = view.rule
    return rule_name(rule.mode) if isinstance(rule, LeafRule) else "the SuperPoD rule"


def _unit_words(answer: NodeAnswer, superpod: int | None) -> Iterator[str]:
    """Where in the network the node is, and what is free beside it."""
    if (leaf := answer.leaf) is not None:
        slot = next(each.slot for each in leaf.slots if each.node == answer.node)
        free = so_many(leaf.fitting, "free node")
        yield (
            f"it is at slot {slot} of leaf {leaf.leaf}, which has {free} of "
            f"{len(leaf.slots)}"
        )
    elif isinstance(answer.view.rule, SuperpodRule):
        own = next(each for each in answer.view.superpods if each.superpod == superpod)
        free, blocks = so_many(own.fitting, "free node"), so_many(own.blocks, "block")
        yield (
            f"it is in SuperPoD {superpod}, which has {free}, room for {blocks} of "
            f"{answer.view.rule.block_nodes}"
        )


def _node_plain(job: Job, answer: NodeAnswer, superpod: int | None) -> dict[str, Any]:
    """The answer as plain values."""
    one = isinstance(answer.found, Candidate)
    facts = {"job": job.name, "fits": answer.fits, "fits-one-pod": one}
    facts |= msgspec.to_builtins(answer.found)
    if isinstance(answer.fate, Waiting):
        facts["waits"] = {"message": answer.fate.message, "hint": answer.fate.hint}
    view = answer.view
    if view.rule is not None:
        facts["network-rule"] = msgspec.to_builtins(view.rule)
    if answer.leaf is not None:
        facts["leaf"] = msgspec.to_builtins(answer.leaf)
    for each in view.superpods:
        if each.superpod == superpod:
            facts["superpod"] = msgspec.to_builtins(each)
    return facts


def _say(console: Console, head: str, *lines: str) -> None:
    console.print(Text(head))
    for line in lines:
        console.print(indented(line))


def _a_pod_of(job: str) -> str:
    """One pod of a job, or the pod that it is."""
    return named(job) if job.startswith(POD) else f"a pod of {named(job)}"
