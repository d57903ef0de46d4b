"""Expositions in Prometheus' text format, as exporters of a node write them, for any number of devices.

Of dcgm-exporter, kube-state-metrics and Kueue, which cannot run here: constructed from published sources.
What was recorded from real programs lies in `tests/metrics/recorded/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ultracluster.catalog.metrics import Metric, metrics

HOUR = 1_795_392_000
"""The unix second of all recordings."""

_DCGM = {
    "GPU_TEMP": 54, "MEMORY_TEMP": 61, "POWER_USAGE": 612.4, "TOTAL_ENERGY_CONSUMPTION": 412_000_000_000,
    "SM_CLOCK": 1755, "MEM_CLOCK": 2619, "GPU_UTIL": 99, "FB_USED": 70_111, "FB_FREE": 11_008,
    "GR_ENGINE_ACTIVE": 0.97, "SM_ACTIVE": 0.81, "SM_OCCUPANCY": 0.32, "PIPE_TENSOR_ACTIVE": 0.41,
    "DRAM_ACTIVE": 0.35, "NVLINK_TX_BYTES": 81_000_000_000, "NVLINK_RX_BYTES": 80_500_000_000,
    "PCIE_TX_BYTES": 2_100_000_000, "PCIE_RX_BYTES": 1_900_000_000, "CLOCKS_EVENT_REASONS": 4,
}  # fmt: skip
"""Plausible values of an H100 at work; what is not here is 0."""

_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"(?:,|$)')


def series(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Name, labels and value of each line of an exposition.

    Raises:
        ValueError: a line is none.
    """
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"no sample: {line[:200]}")
        inner, labels, at = match[2] or "", {}, 0
        while at < len(inner):
            label = _LABEL.match(inner, at)
            if label is None:
                raise ValueError(f"no labels: {line[:200]}")
            labels[label[1]], at = label[2], label.end()
        yield match[1], labels, float(match[3])


def exposition(samples: Iterable[tuple[Metric, Mapping[str, str], float]]) -> str:
    """HELP, TYPE and lines, samples of one metric together."""
    grouped: dict[str, tuple[Metric, list[str]]] = {}
    for metric, labels, value in samples:
        inner = ",".join(f'{key}="{text}"' for key, text in labels.items())
        line = f"{metric.name}{f'{{{inner}}}' if inner else ''} {value:g}"
        if float(f"{value:g}") != value:
            line = f"{line.rpartition(' ')[0]} {value!r}"
        grouped.setdefault(metric.name, (metric, []))[1].append(line)
    blocks = [
        "\n".join([f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.type}", *lines])
        for name, (metric, lines) in grouped.items()
    ]
    return "\n".join([*blocks, ""])


def dcgm(
    gpus: int = 8, *, job: str = "", host: str = "ip-10-1-0-1", values: Mapping[str, float] | None = None
) -> str:
    """What dcgm-exporter writes for our counters file.

    Args:
        gpus: their number.
        job: the Slurm job on all of them; none without.
        host: label `Hostname`.
        values: by the name without `DCGM_FI_DEV_` or `DCGM_FI_PROF_`, for all GPUs.
    """
    told = _DCGM | dict(values or {})
    own = [one for one in metrics().values() if one.exporter == "dcgm-exporter" and not one.until]
    return exposition(
        (
            one,
            {
                "gpu": str(gpu),
                "UUID": f"GPU-{gpu:08x}-0000-4000-8000-000000000000",
                "pci_bus_id": f"00000000:{0x53 + gpu * 0x11:02X}:00.0",
                "device": f"nvidia{gpu}",
                "modelName": "NVIDIA H100 80GB HBM3",
                "Hostname": host,
                "DCGM_FI_DRIVER_VERSION": "580.105.08",
                **({"hpc_job": job} if job else {}),
            },
            told.get(one.name.split("_", 3)[3], 0),
        )
        for one in own
        for gpu in range(gpus)
    )


def kube_state(nodes: int = 2, pods: int = 3) -> str:
    """What kube-state-metrics writes of nodes and pods, as far as the catalogue has it."""
    own = metrics()
    conditions = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "AcceleratedHardwareReady")
    samples: list[tuple[Metric, dict[str, str], float]] = []
    for number in range(nodes):
        node = f"ip-10-1-0-{number + 1}.ec2.internal"
        for condition in conditions:
            good = "true" if condition.endswith("Ready") else "false"
            samples += [
                (
                    own["kube_node_status_condition"],
                    {"node": node, "condition": condition, "status": one},
                    one == good,
                )
                for one in ("true", "false", "unknown")
            ]
        samples.append((own["kube_node_spec_unschedulable"], {"node": node}, 0))
        taint = {"node": node, "key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
        samples.append((own["kube_node_spec_taint"], taint, 1))
    for number in range(pods):
        pod = {"namespace": "team-a", "pod": f"train-{number}"}
        where = {
            "node": f"ip-10-1-0-{number % nodes + 1}.ec2.internal",
            "created_by_kind": "Job",
            "created_by_name": "train",
        }
        samples.append((own["kube_pod_info"], pod | where, 1))
        samples += [
            (own["kube_pod_status_phase"], pod | {"phase": phase}, phase == "Running")
            for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown")
        ]
        if number == pods - 1:
            samples.append((own["kube_pod_status_unschedulable"], pod, 1))
    samples.sort(key=lambda one: one[0].name)
    return exposition(samples)


def kueue(queues: int = 2) -> str:
    """What Kueue writes of its queues, as far as the catalogue has it."""
    own = metrics()
    samples: list[tuple[Metric, dict[str, str], float]] = []
    for number in range(queues):
        queue = {"cluster_queue": f"team-{number}"}
        samples += [
            (own["kueue_pending_workloads"], queue | {"status": one}, number)
            for one in ("active", "inadmissible")
        ]
        samples.append((own["kueue_admitted_active_workloads"], queue, 3))
        flavor = {"cohort": "all", **queue, "flavor": "gpu", "resource": "nvidia.com/gpu"}
        samples.append((own["kueue_cluster_queue_resource_usage"], flavor, 16))
        samples.append((own["kueue_cluster_queue_nominal_quota"], flavor, 32))
    samples.sort(key=lambda one: one[0].name)
    return exposition(samples)
