"""What a pod requests: its chips, the resource that counts them, and the rest."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from msgspec.msgpack import Encoder
from msgspec.structs import replace

from ringleaf.kube import names
from ringleaf.kube.demand import BadPod, check_size, demand_of, digest_of, requests_of
from ringleaf.kube.objects import Container, Pod, PodSpec, Quantities, Resources
from ringleaf.kube.quantity import whole_number
from ringleaf.model.cache import Cache
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.mask import MAX_CHIPS
from ringleaf.model.topology import quoted

MAX_CHIPS_REQUESTED: Final = 1_000_000
MAX_READ: Final = 1 << 14
"""Kinds of pods that are remembered."""
MAX_READ_BYTES: Final = 12 << 20
"""Bytes of what is remembered of them."""
_encoded: Final = Encoder().encode
_read: Final[Cache[bytes, tuple[int, str, Demand]]] = Cache(MAX_READ, MAX_READ_BYTES)
_chips_read: Final[Cache[str, tuple[tuple[int, ...] | None]]] = Cache(1 << 14, 4 << 20)

USUAL: Final = ("cpu", "memory", "ephemeral-storage", *sorted(names.NPU_RESOURCES))
"""Resources that count of pods which ask for more than is read."""


def read_request(pod: Pod) -> tuple[int, str, Demand]:
    """Chips of a pod, the resource that counts them, and the rest. Raises ``BadPod``.

    Pods that request the same are read once.
    """
    spec = pod.spec
    parts = (
        pod.metadata.namespace,
        spec.containers,
        spec.init_containers,
        spec.overhead,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
    )
    text = _encoded(parts)
    key = digest_of(text)
    known = _read.get(key)
    if known is None:
        known = _requested(pod, len(text))
        _read.put(key, known, known[2].weight)
    return known


def _requested(pod: Pod, n_bytes: int) -> tuple[int, str, Demand]:
    """Chips, the resource that counts them, and the rest."""
    try:
        check_size(pod.spec, n_bytes)
    except BadPod as error:
        raise BadPod(f"Pod {quoted(pod.metadata.key)}: {error}") from None
    chips, resource = _chips(pod.metadata.key, requests_of(pod.spec))
    labels = frozenset(pod.metadata.labels or ())
    return chips, resource, demand_of(pod, names.NPU_RESOURCES, labels)


def held_by(pod: Pod) -> tuple[int, str, Demand]:
    """The same of a pod that cannot be placed as it is, and may be bound already."""
    spec = pod.spec
    kept = PodSpec(
        containers=spec.containers,
        init_containers=spec.init_containers,
        overhead=spec.overhead,
    )
    chips, resource, demand = 0, "", NOTHING
    labels = frozenset(pod.metadata.labels or ())
    for each in (kept, _plain(kept)):
        with suppress(BadPod):
            demand = demand_of(replace(pod, spec=each), names.NPU_RESOURCES, labels)
            chips, resource = _held_chips(requests_of(each))
            break
    return chips, resource, demand


def _held_chips(asks: Mapping[str, int]) -> tuple[int, str]:
    """Chips of a pod that may hold some, of several kinds or parts of them."""
    counts = {
        name: -(-n // 1000)
        for name, n in asks.items()
        if n > 0 and (name in names.NPU_RESOURCES or _is_part(name))
    }
    whole = sorted(names.NPU_RESOURCES & counts.keys())
    return min(sum(counts.values()), MAX_CHIPS_REQUESTED), whole[0] if whole else ""


def _plain(spec: PodSpec) -> PodSpec:
    """Containers without ports, and of what they ask the usual resources only."""
    return PodSpec(
        containers=[_plainly(each) for each in spec.containers or ()],
        init_containers=[_plainly(each) for each in spec.init_containers or ()],
    )


def _plainly(container: Container) -> Container:
    has = container.resources or Resources()
    asks = Resources(requests=_usual(has.requests), limits=_usual(has.limits))
    return Container(resources=asks, restart_policy=container.restart_policy)


def _usual(given: Quantities | None) -> Quantities:
    return {name: (given or {})[name] for name in USUAL if name in (given or {})}


def _chips(key: str, asks: Mapping[str, int]) -> tuple[int, str]:
    """Chips, and the resource that counts them."""
    vendor = [name for name, n in asks.items() if n and name.startswith(names.VENDOR)]
    counted = [name for name in vendor if name in names.NPU_RESOURCES]
    if len(counted) > 1:
        told = " and ".join(sorted(counted))
        raise BadPod(f"Pod {quoted(key)} asks for {told}, want chips of one kind")
    parts = sorted(name for name in vendor if _is_part(name))
    if parts:
        raise BadPod(
            f"Pod {quoted(key)} asks for {parts[0]}, a part of a chip, which is not "
            "placed",
            "ask for whole chips",
        )
    if not counted:
        return 0, ""
    (resource,) = counted
    chips, rest = divmod(asks[resource], 1000)
    if rest or chips > MAX_CHIPS_REQUESTED:
        found = f"{asks[resource] / 1000:g}"
        raise BadPod(
            f"Pod {quoted(key)} asks for {found} {resource}, "
            f"want a whole number up to {MAX_CHIPS_REQUESTED}",
            "a node has at most 64 chips",
        )
    return chips, resource


def _is_part(name: str) -> bool:
    """Whether a resource is a part of a chip: ``npu-core``, ``Ascend910-2c``."""
    return name == "huawei.com/npu-core" or any(
        name.startswith(f"{whole}-") for whole in names.NPU_RESOURCES
    )


def chips_named(text: str) -> tuple[int, ...] | None:
    """The ids in a list of chips; None where it is no such list.

    >>> chips_named("Ascend910-0,Ascend910-5"), chips_named("Ascend910-x")
    ((0, 5), None)
    >>> chips_named("Ascend910-0000100"), chips_named("Ascend910-00009999999999")
    (None, None)
    >>> chips_named("")
    ()
    """
    if not text:
        return ()
    known = _chips_read.get(text)
    if known is None:
        known = (_chips_in(text),)
        _chips_read.put(text, known, len(text))
    return known[0]


def _chips_in(text: str) -> tuple[int, ...] | None:
    found = []
    for name in text.split(","):
        prefix, dash, number = name.strip().rpartition("-")
        chip = whole_number(number) if dash and prefix else None
        if chip is None or chip >= MAX_CHIPS:
            return None
        found.append(chip)
    return tuple(dict.fromkeys(found))
