"""Values of options that are known: presets, policies, queue orders."""

from collections.abc import Sequence


def known_clusters() -> Sequence[str]:
    """The presets of clusters."""
    from ringleaf.simulator.sites import SITES

    return [*SITES]


def known_workloads() -> Sequence[str]:
    """The presets of workloads."""
    from ringleaf.simulator.workloads import WORKLOADS

    return [*WORKLOADS]


def known_policies() -> Sequence[str]:
    """The policies that can be simulated."""
    from ringleaf.baselines.registry import BASELINES

    return [*BASELINES]


def known_orders() -> Sequence[str]:
    """The queue orders of policies."""
    from ringleaf.baselines.order import ORDERS

    return [*ORDERS]
