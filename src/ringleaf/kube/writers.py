"""What writes to the API server."""

from msgspec import Struct

from ringleaf.kube.binder import Binder
from ringleaf.kube.fault_store import FaultStore
from ringleaf.kube.leader_state import LeaderState
from ringleaf.kube.repair_executor import RepairExecutor
from ringleaf.kube.status_writer import StatusWriter


class Writers(Struct):
    """What writes to the API server.

    Args:
        binder: Binds, evicts and deletes pods.
        status_writer: Writes what users are told.
        repair_executor: Carries out what is instructed because of faults.
        faults: Keeps the fault history.
        state: What is kept for the next leader.
        is_alone: Whether no other scheduler writes about queues and faulty objects.

    """

    binder: Binder
    status_writer: StatusWriter
    repair_executor: RepairExecutor
    faults: FaultStore
    state: LeaderState
    is_alone: bool
