"""Labels, annotations, resources and objects by the names that others know them by.

They are an interface: the device plugin, the cluster daemon, Volcano's controllers and
the operators read and write the same ones.
"""

import re
from typing import Final

SCHEDULER: Final = "ringleaf"
"""The scheduler name of pods that are ours unless configured otherwise."""

GROUP_NAMES: Final = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
)
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
JOB_QUEUE: Final = "volcano.sh/queue-name"
"""The queue, as Volcano's job controller writes it on pods."""
TASK: Final = "volcano.sh/task-spec"
TASK_INDEX: Final = "volcano.sh/task-index"
PREEMPTABLE: Final = "volcano.sh/preemptable"
STATEFUL_POD: Final = "statefulset.kubernetes.io/pod-name"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
HIERARCHY: Final = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
ESTIMATE: Final = "ringleaf.io/estimate-seconds"
"""Seconds after which a job is sure to have ended, on its PodGroup or pod."""
MOVABLE: Final = "ringleaf.io/movable"
"""Whether a job may be moved while it runs, a label of its PodGroup or pods."""
RESTART_SECONDS: Final = "ringleaf.io/restart-seconds"
CHECKPOINT_SECONDS: Final = "ringleaf.io/checkpoint-seconds"
CHECKPOINTED_AT: Final = "ringleaf.io/checkpointed-at"
"""When a movable job last saved its work."""

REPAIR: Final = "ringleaf.io/repair"
"""The record of the repair of a job, on its PodGroup, as it was written before.

Records are ConfigMaps now (``recordstore``); this one is read once, and removed.
"""

LEADER: Final = "ringleaf.io/leader"
"""The identity of the leader that bound a pod, in its Binding."""

RANK: Final = "hccl/rankIndex"
REAL: Final = "huawei.com/AscendReal"
PREDICATE_TIME: Final = "predicate-time"
CONSUMED: Final = "18446744073709551615"
"""What the device plugin makes of ``predicate-time`` once it has mounted the chips."""
SHARED, HEALTHY, SUPERPOD_RANK = "isSharedTor", "isHealthy", "super-pod-rank"
OPERATOR: Final = "training.kubeflow.org/operator-name"
CONFIGURATION_910: Final = "ascend.kubectl.kubernetes.io/ascend-910-configuration"
CONFIGURATION_NPU: Final = "ascend.kubectl.kubernetes.io/ascend-npu-configuration"

TOR_AFFINITY: Final = "tor-affinity"
SUPERPOD_AFFINITY: Final = "super-pod-affinity"
STRATEGY: Final = "npu-310-strategy"
DISTRIBUTED: Final = "distributed"
DUO: Final = "duo"
FRAMEWORK: Final = "framework"
SP_BLOCK: Final = "sp-block"
POLICY: Final = "huawei.com/schedule_policy"
ACCELERATOR_TYPE: Final = "accelerator-type"

FAULT_SCHEDULING: Final = "fault-scheduling"
FAULT_RETRIES: Final = "fault-retry-times"
POD_RESCHEDULING: Final = "pod-rescheduling"
PROCESS_RECOVER: Final = "process-recover-enable"
SUB_HEALTHY: Final = "subHealthyStrategy"
ELASTIC: Final = "elastic-scheduling"
RECOVER_PATH: Final = "huawei.com/recover_policy_path"
RECOVER_STRATEGY: Final = "ProcessRecoverStrategy"
"""An annotation: another platform sees to faults."""
FAULT_TYPE: Final = "fault-type"
"""A label: the fault that another program found on a pod."""
OPERATION: Final = "needVolcanoOpe"
"""An annotation: what the scheduler is to do with a pod that is replaced."""
POD_STATUS: Final = "huawei.com/pod-status"
"""An annotation: of a pod that others delete, that it is faulty, and why."""
REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
INFERENCE: Final = "ome.io/inferenceservice"
APP: Final = "app"
SERVERS: Final = ("mindie-ms-controller", "mindie-ms-coordinator")
"""Values of the label ``app`` of pods that others of their job do without."""

VENDOR: Final = "huawei.com/"
NPU_RESOURCES: Final = frozenset(
    {
        "huawei.com/Ascend910",
        "huawei.com/Ascend310",
        "huawei.com/Ascend310P",
        "huawei.com/npu",
    }
)
"""Resources that count whole chips."""

KUBE_SYSTEM: Final = "kube-system"
CRITICAL_CLASSES: Final = ("system-cluster-critical", "system-node-critical")

REPORTS: Final = (
    ("mindx-dl", "mx-consumer-volcano=true"),
    ("mindx-dl", "mx-consumer-cim=true"),
    ("kube-system", "mx-consumer-cim=true"),
)
"""Namespaces of the reports on devices, nodes and switches, and the labels on them."""

UID: Final = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What Volcano adds to the name of a job, for the name of its PodGroup."""
NAMED: Final = re.compile(
    r"(?<![a-z0-9.-])[a-z0-9.-]{1,63}/[a-z0-9.-]{1,253}?"
    rf"{UID.pattern}(?![a-z0-9-])"
)
"""A PodGroup in a text, by its namespace and a name that ends with a uid.

Names are as long as Kubernetes allows, so that a long text takes no longer than many
short ones.
"""
OF_PODS: Final = "/podgroup"
"""How Volcano calls a PodGroup that no job owns, before its uid."""


def bare_name(name: str) -> str:
    """The name of a job without the uid that Volcano adds.

    >>> bare_name("ml/bert-0f8fad5b-d9cb-469f-a165-70867728950e")
    'ml/bert'

    That of a PodGroup that no job owns stays: nothing else tells it from others.
    """
    bare = UID.sub("", name)
    return name if bare.endswith(OF_PODS) else bare
