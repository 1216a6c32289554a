"""The ConfigMap ``tor-share-cm``: the state of every leaf switch, for people.

With switch affinity 2.0 the scheduler writes on every pod how its leaf is; the state of
a leaf is what the pods under it say. No decision reads this ConfigMap.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from ringleaf.kube.rank_table import Member, encode
from ringleaf.model.placement import LeafState
from ringleaf.model.topology import Topology

NAME, NAMESPACE, KEY = "tor-share-cm", "volcano-system", "global-tor-info"
STATES: Final = frozenset(str(state.value) for state in LeafState)


def leaf_states(
    topology: Topology,
    nodes: Mapping[str, str],
    pods: Iterable[tuple[Member, str]],
) -> str:
    """The states of all leaves in JSON.

    *nodes* has the name of the node at each address, and *pods* are those on nodes,
    each with the name of its job. Of pods that differ, the first by job and name that
    calls its leaf shared or exclusive counts, and any that calls it unhealthy.
    """
    at: defaultdict[str, list[tuple[str, Member]]] = defaultdict(list)
    for pod, job in pods:
        if pod.shared in STATES:
            at[pod.node].append((job, pod))
    found: dict[str, object] = {}
    for switch in topology.switches:
        named = [(s.address, nodes.get(s.address, "")) for s in switch.servers]
        here = sorted(
            (job, pod.name, pod.shared, pod.healthy)
            for _address, node in named
            if node
            for job, pod in at[node]
        )
        said = (int(shared) for _job, _name, shared, _healthy in here if shared != "0")
        ill = any(healthy == "1" for *_rest, healthy in here)
        found[switch.address] = {
            "IsHealthy": int(ill or not switch.healthy),
            "IsSharedTor": next(said, int(switch.state)),
            "nodes": [
                {
                    "NodeIp": address,
                    "NodeName": node,
                    "JobName": sorted({job for job, _pod in at[node]} if node else ()),
                }
                for address, node in named
            ],
        }
    return encode(found).decode()
