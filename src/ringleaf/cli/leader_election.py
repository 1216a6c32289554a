"""Leader election of a command: of several processes one does the work."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

from msgspec import Struct

from ringleaf.cli.access import credentials_of
from ringleaf.kube.api import Api
from ringleaf.kube.leader import (
    LEASE_NAMESPACE,
    Elector,
    Runner,
    Say,
    Terms,
    aside,
    at_once,
)

OWN_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Candidacy(Struct, frozen=True):
    """Under which Lease it wants to lead."""

    name: str
    namespace: str | None
    duration_s: int


class LeadOptions(Protocol):
    """What a command was asked that may lead."""

    @property
    def kubeconfig(self) -> str | None:
        """Where the API server is."""

    @property
    def context(self) -> str | None:
        """Of the kubeconfig."""

    @property
    def lead(self) -> Candidacy | None:
        """The Lease to lead by; None without leader election."""


def new_identity() -> str:
    """A unique identity, also among processes of this machine."""
    return f"{socket.gethostname()}_{uuid4().hex[:8]}"


@asynccontextmanager
async def standing_for_lead(
    asked: LeadOptions,
    identity: str,
    agent: str,
    say: Say,
    answered: Callable[[str, str, int, float], None] = lambda *_what: None,
) -> AsyncIterator[tuple[Elector | None, Runner]]:
    """Yield the elector and what runs its work; no elector without leader election.

    The elector has its own thread and connection, so that it renews the Lease while
    this process is busy. *agent* and *answered* are as those of the ``Api``.
    """
    if asked.lead is None:
        yield None, at_once
        return
    own = await credentials_of(asked.kubeconfig, asked.context)
    trouble = lambda line: say("trouble", message=line)  # noqa: E731
    lane = Api(own, 1, trouble, agent, answered)
    async with aside(lane) as run_aside:
        yield Elector(lane, _terms(asked.lead, identity), say), run_aside


def own_namespace(given: str | None) -> str:
    """The namespace of the Lease and of what we keep: as *given*, or of our pod."""
    if given is not None:
        return given
    with suppress(OSError):
        return OWN_NAMESPACE.read_text().strip() or LEASE_NAMESPACE
    return LEASE_NAMESPACE


def _terms(lead: Candidacy, identity: str) -> Terms:
    namespace = own_namespace(lead.namespace)
    return Terms(lead.name, namespace, identity, lead.duration_s)
