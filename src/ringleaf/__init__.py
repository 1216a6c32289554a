"""Ringleaf places AI jobs on Ascend chips that are wired together, and says why.

The names below are the public ones; they are loaded when they are first used, so that
``import ringleaf`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringleaf.framework.session import Session as Session
    from ringleaf.framework.statement import Statement as Statement
    from ringleaf.model.cluster import Cluster as Cluster
    from ringleaf.model.cluster import Node as Node
    from ringleaf.model.decision import Invalid as Invalid
    from ringleaf.model.decision import Placed as Placed
    from ringleaf.model.decision import Reason as Reason
    from ringleaf.model.decision import Waiting as Waiting
    from ringleaf.model.job import Job as Job
    from ringleaf.model.placement import Placement as Placement
    from ringleaf.model.product import Product as Product
    from ringleaf.model.settings import Settings as Settings
    from ringleaf.policies.products import PRODUCTS as PRODUCTS
    from ringleaf.policies.products import find_product as find_product
    from ringleaf.simulator.scenario import Scenario as Scenario
    from ringleaf.simulator.scenario import load as load
    from ringleaf.simulator.source import BadInput as BadInput

__version__ = "0.1.0"

_HOMES = {
    "BadInput": "ringleaf.simulator.source",
    "Cluster": "ringleaf.model.cluster",
    "Invalid": "ringleaf.model.decision",
    "Job": "ringleaf.model.job",
    "Node": "ringleaf.model.cluster",
    "PRODUCTS": "ringleaf.policies.products",
    "Placed": "ringleaf.model.decision",
    "Placement": "ringleaf.model.placement",
    "Product": "ringleaf.model.product",
    "Reason": "ringleaf.model.decision",
    "Scenario": "ringleaf.simulator.scenario",
    "Session": "ringleaf.framework.session",
    "Settings": "ringleaf.model.settings",
    "Statement": "ringleaf.framework.statement",
    "Waiting": "ringleaf.model.decision",
    "find_product": "ringleaf.policies.products",
    "load": "ringleaf.simulator.scenario",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - one list, above


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'ringleaf' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
