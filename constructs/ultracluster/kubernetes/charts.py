"""Which Helm charts a Kubernetes cluster gets for its devices and jobs, and with which values.

Charts come from their makers' public repositories, pinned by version (`catalog/charts.json`), or from a copy
of them. Nothing of them is in this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ultracluster.catalog import InstanceType
from ultracluster.catalog.eks import NEURON, charts, kube_scheduler_tag
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.kubernetes.claims import EFA_DRIVER, NVIDIA_DRIVER, nvidia_driver_values
from ultracluster.kubernetes.gpu_sharing import WHOLE, mig_configurations, plugin_configurations
from ultracluster.kubernetes.isolation import KUBERAY
from ultracluster.kubernetes.labels import GPU_LABEL
from ultracluster.kubernetes.metrics.objects import dcgm_values
from ultracluster.kubernetes.tolerations import Tolerations, system_tolerations, with_tolerations
from ultracluster.model import Cluster
from ultracluster.model.devices import claims_efa, compute_domain_types
from ultracluster.model.observability import collects

DCGM = "dcgm-exporter"
_OPERATOR = {"cpu": "500m", "memory": "1Gi"}
"""Its maker counts 500 MB for 500 pods (values.yaml); there may be twice as many here."""
TOLERATIONS: list[dict[str, str]] = [{"operator": "Exists"}]
"""Of what must run on every node with the device, whatever taints its group has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One release of a Helm chart."""

    name: str
    """The chart's own name, also that of the release."""
    version: str
    repository: str
    """`oci://...` up to the chart itself, or the `https://...` index in which it is."""
    namespace: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


def chart(
    name: str,
    values: Mapping[str, Any] | None = None,
    *,
    mirror: str | None = None,
    extra: Mapping[str, Any] | None = None,
    tolerations: Tolerations | None = None,
) -> Chart:
    """A chart of the catalogue, pinned.

    Args:
        name: the chart's own name.
        values: ours.
        mirror: `oci://registry/prefix` that holds a copy under the chart's own name.
        extra: values on top of ours, merged key by key.
        tolerations: of its pods on system nodes.

    Raises:
        KeyError: the catalogue has no such chart.
    """
    row = charts()[name]
    return Chart(
        name=name,
        version=row["version"],
        repository=f"{mirror.rstrip('/')}/{name}" if mirror else row["repository"],
        namespace=row["namespace"],
        values=_merged(
            with_tolerations(values or {}, row.get("tolerations", ()), tolerations or []), extra or {}
        ),
    )


def device_charts(cluster: Cluster) -> tuple[Chart, ...]:
    """What makes EFA interfaces, GPUs and Neuron devices resources that a pod can request."""
    settings = _settings(cluster)
    groups = cluster.with_role("compute").values()
    types = [instance_type for group in groups for instance_type in group.known_types]
    makers = {instance_type.accelerator.manufacturer for instance_type in types if instance_type.accelerator}
    turns = plugin_configurations(group.settings for group in groups)
    charts: dict[str, Mapping[str, Any]] = {}
    if efa := efa_types(types):
        # the chart's own list lags behind: a type that it lacks has no EFA, and NCCL falls back to TCP
        # (aws-samples/aws-do-eks#56)
        names = [_label(cluster, instance_type) for instance_type in efa]
        # one of them, never both: they would give an interface to two pods
        charts[EFA_DRIVER if claims_efa(cluster) else "aws-efa-k8s-device-plugin"] = {
            "supportedInstanceLabels": {"keys": ["node.kubernetes.io/instance-type"], "values": names},
            "tolerations": TOLERATIONS,
        }
    domains = compute_domain_types(cluster)
    if "NVIDIA" in makers and settings.gpu_plugin == "device-plugin":
        by_turns = {"config": {"map": turns, "default": WHOLE}} if turns else {}
        charts["nvidia-device-plugin"] = {
            "tolerations": TOLERATIONS,
            # on by default, the mounts of Mellanox's devices take those of EFA from pods (0.19.0 and newer)
            "mofedEnabled": False,
            # off by default: pods then do not see gdrdrv, which nodes have
            "gdrcopyEnabled": True,
            **by_turns,
            **(_feature_discovery(cluster) if domains else {}),
        }
        charts[DCGM] = _dcgm(cluster, types)
    if "NVIDIA" in makers and settings.gpu_plugin == "gpu-operator":
        if collects(cluster):
            charts[DCGM] = _dcgm(cluster, types)
        charts["gpu-operator"] = _gpu_operator(cluster, turns)
        if domains:
            charts["gpu-operator"] = {**charts["gpu-operator"], **_operator_with_domains(types)}
    if domains:
        charts[NVIDIA_DRIVER] = nvidia_driver_values(
            [_label(cluster, instance_type) for instance_type in domains]
        )
    if "AWS" in makers:
        # its own list has no `ml.` and lags behind, too; its problem detector would replace nodes as EKS does
        neuron = [
            instance_type
            for instance_type in types
            if instance_type.accelerator and instance_type.accelerator.manufacturer == "AWS"
        ]
        names = dict.fromkeys(_label(cluster, instance_type) for instance_type in neuron)
        charts[NEURON] = {
            "neuronInstances": list(names),
            "npd": {"enabled": False},
            **({"scheduler": _neuron_scheduler(cluster)} if settings.neuron_scheduler else {}),
        }
    return tuple(_with_settings(cluster, charts))


def _gpu_operator(cluster: Cluster, turns: Mapping[str, str]) -> Mapping[str, Any]:
    """Values of NVIDIA's operator; `turns` are configurations of its device plugin by name."""
    plugin = {"create": True, "name": "device-plugin-configs", "default": WHOLE, "data": turns}
    layouts = mig_configurations(cluster.with_role("compute"))
    mig = {"create": True, "name": "mig-configs", "data": {"config.yaml": layouts}}
    return {
        # the image has both
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        # next to EKS's node monitoring agent, a host engine of the operator makes healthy nodes look
        # faulty, and auto repair replaces them (aws/containers-roadmap#2555)
        "dcgm": {"enabled": False},
        "daemonsets": {"tolerations": TOLERATIONS},
        # resources by profile (nvidia.com/mig-1g.10gb); cutting GPUs asks for a reboot on EC2
        "mig": {"strategy": "mixed"},
        "migManager": {
            "env": [{"name": "WITH_REBOOT", "value": "true"}],
            **({"config": mig} if layouts else {}),
        },
        **({"devicePlugin": {"config": plugin}} if turns else {}),
        # the operator's own exporter can name no host engine by the node's address, and starts another
        **({"dcgmExporter": {"enabled": False}} if collects(cluster) else {}),
    }


def _neuron_scheduler(cluster: Cluster) -> dict[str, Any]:
    """The extension, and the second scheduler that asks it where a pod's devices are."""
    tolerations = system_tolerations(cluster)
    own = {"tolerations": tolerations} if tolerations else {}
    tag = kube_scheduler_tag(_settings(cluster).kubernetes_version)
    # the chart's own is several releases older than the control plane, which Kubernetes does not support
    image = {"image": {"tag": tag}} if tag else {}
    return {"enabled": True, **own, "customScheduler": {"enabled": True, **image, **own}}


def job_charts(cluster: Cluster) -> tuple[Chart, ...]:
    """What the environment requests to run jobs, besides its scheduler."""
    settings = _settings(cluster)
    charts: dict[str, Mapping[str, Any]] = {}
    if settings.jobset:
        charts["jobset"] = {}
    if settings.leader_worker_set:
        charts["lws"] = {}
    if settings.kubeflow_trainer:
        charts["kubeflow-trainer"] = {"jobset": {"install": False}}
    if settings.kuberay:
        # Helm merges: without this limit the chart's own, a tenth of a processor, is below the request
        charts[KUBERAY] = {"resources": {"requests": _OPERATOR, "limits": _OPERATOR | {"cpu": "1"}}}
    return tuple(_with_settings(cluster, charts))


def _operator_with_domains(types: list[InstanceType]) -> dict[str, Any]:
    """Node feature discovery on nodes with taints of their own; no MIG where the driver's coherent memory
    (CDMM) excludes it on every GPU (EKS User Guide, ml-eks-nvidia-ultraserver)."""
    nvidia = [
        instance_type
        for instance_type in types
        if instance_type.accelerator and instance_type.accelerator.manufacturer == "NVIDIA"
    ]
    off = {"migManager": {"enabled": False}} if all(instance_type.imex for instance_type in nvidia) else {}
    return {"node-feature-discovery": {"worker": {"tolerations": TOLERATIONS}}, **off}


def _feature_discovery(cluster: Cluster) -> dict[str, Any]:
    """GPU feature discovery labels nodes with their NVLink domain (`nvidia.com/gpu.clique`); node feature
    discovery, which writes its labels, runs on system nodes and on each node."""
    nfd = with_tolerations({}, ("master.tolerations", "gc.tolerations"), system_tolerations(cluster))
    return {"gfd": {"enabled": True}, "nfd": {**nfd, "worker": {"tolerations": TOLERATIONS}}}


def _dcgm(cluster: Cluster, types: list[InstanceType]) -> dict[str, Any]:
    return {
        "nodeSelector": {GPU_LABEL: "true"},
        "serviceMonitor": {"enabled": False},
        "tolerations": TOLERATIONS,
        **_host_engine(cluster, types),
        **(dcgm_values() if collects(cluster) else {}),
    }


def _host_engine(cluster: Cluster, types: list[InstanceType]) -> dict[str, Any]:
    """The exporter asks the host engine of EKS's node monitoring agent: some fields of a GPU can be read by
    one engine only (aws/eks-node-monitoring-agent#256). The agent's is only on x86-64 nodes of EKS."""
    gpus = [
        instance_type
        for instance_type in types
        if instance_type.accelerator and instance_type.accelerator.manufacturer == "NVIDIA"
    ]
    if cluster.traits.hyperpod or any(instance_type.architecture == "arm64" for instance_type in gpus):
        return {}
    node = {"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
    engine = {"name": "DCGM_REMOTE_HOSTENGINE_INFO", "value": f"$(NODE_IP):{_DCGM_PORT}"}
    return {"extraEnv": [node, engine]}


_DCGM_PORT = 5555
"""Of the agent's `dcgm-server`, on the node (charts/eks-node-monitoring-agent, dcgm-daemonset.yaml)."""


def efa_types(types: list[InstanceType]) -> tuple[InstanceType, ...]:
    """Those with EFA, each once."""
    return tuple(
        {
            instance_type.name: instance_type for instance_type in types if instance_type.efa_interfaces != 0
        }.values()
    )


def _label(cluster: Cluster, instance_type: InstanceType) -> str:
    """The type as the label `node.kubernetes.io/instance-type` of compute nodes has it."""
    return instance_type.hyperpod_name if cluster.traits.hyperpod else instance_type.name


def _with_settings(cluster: Cluster, charts: Mapping[str, Mapping[str, Any]]) -> Iterator[Chart]:
    settings, tolerations = _settings(cluster), system_tolerations(cluster)
    for name, values in charts.items():
        extra = settings.chart_values.get(name)
        yield chart(name, values, mirror=settings.chart_repository, extra=extra, tolerations=tolerations)


def _settings(cluster: Cluster) -> Eks | HyperPodEks:
    assert cluster.kubernetes, "charts are only for Kubernetes"
    return cluster.kubernetes


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], cast("dict[str, Any]", value)) if both else value
    return merged
