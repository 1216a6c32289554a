"""What writes to the API server."""

from msgspec import Struct

from ringleaf.kube.binder import Binder
from ringleaf.kube.faultbook import Faultbook
from ringleaf.kube.leader_state import LeaderState
from ringleaf.kube.mending import Mender
from ringleaf.kube.teller import Teller


class Writers(Struct):
    """What writes to the API server.

    Args:
        binder: Binds, evicts and deletes pods.
        teller: Writes what users are told.
        mender: Carries out what is instructed because of faults.
        faults: Keeps the fault history.
        state: What is kept for the next leader.
        is_alone: Whether no other scheduler writes about queues and faulty objects.

    """

    binder: Binder
    teller: Teller
    mender: Mender
    faults: Faultbook
    state: LeaderState
    is_alone: bool
