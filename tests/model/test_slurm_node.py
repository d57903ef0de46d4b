"""What slurmd registers of a type, and each number of slurm.conf below it, equal and above."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from rows import for_each

from ultracluster.catalog import InstanceType, instance_type, instance_types
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.pcs import Pcs
from ultracluster.model import TRAITS, Group
from ultracluster.model.slurm_node import above, registered, reset_cpus

PCL, PCS = ParallelCluster(), Pcs()
ROOT_GIB = 200
TYPES = (
    "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5.4xlarge", "p5e.48xlarge", "p5en.48xlarge",
    "p6-b200.48xlarge", "p6-b300.48xlarge", "p6e-gb200.36xlarge", "g6.48xlarge", "g6e.48xlarge",
    "g6e.12xlarge", "trn1.32xlarge", "trn2.48xlarge", "m5.2xlarge", "m7i.48xlarge", "c7g.16xlarge",
    "m8g.48xlarge", "r7i.24xlarge", "c6i.32xlarge",
)  # fmt: skip


def threads(kind: InstanceType) -> int | None:
    return max(kind.threads_per_core, default=None)


def cores(kind: InstanceType) -> int | None:
    of_one = threads(kind)
    return kind.vcpu // of_one if of_one else None


LIMITS: Mapping[str, Callable[[InstanceType], int | None]] = {
    "CPUs": lambda kind: kind.vcpu,
    "Procs": lambda kind: kind.vcpu,
    "Sockets": lambda kind: cores(kind) or kind.vcpu,
    "SocketsPerBoard": lambda kind: cores(kind) or kind.vcpu,
    "CoresPerSocket": lambda kind: cores(kind) or kind.vcpu,
    "ThreadsPerCore": threads,
    "RealMemory": lambda kind: int(kind.memory_gib * 1024) * 100 // 75,
    "MemSpecLimit": lambda kind: int(kind.memory_gib * 1024) - 1,
    "TmpDisk": lambda kind: ROOT_GIB * 1024,
    "CoreSpecCount": lambda kind: of_cores - 1 if (of_cores := cores(kind)) else None,
    "CpuSpecList": lambda kind: kind.vcpu - 1,
    "Gres": lambda kind: gpus(kind),
    "RestrictedCoresPerGPU": lambda kind: (
        of_cores // of if (of_cores := cores(kind)) and (of := gpus(kind)) else None
    ),
}


def gpus(kind: InstanceType) -> int | None:
    if kind.accelerator is None:
        return 0
    return kind.accelerator.count if kind.accelerator.manufacturer == "NVIDIA" else None


def group(name: str, settings: dict[str, Any] | None = None, **more: Any) -> Group:
    written = NodeGroup.model_validate(
        {"role": "compute", "instance_type": name, "count": 1, "slurm_settings": settings or {}, **more}
    )
    return Group(
        name="train",
        settings=written,
        traits=TRAITS["parallelcluster"],
        type=instance_type(name),
        most_nodes=1,
        zone_id="use1-az4",
    )


def too_large(of: Group, cluster: ParallelCluster | Pcs = PCL) -> list[tuple[str | int, ...]]:
    node = registered(of, cluster)
    assert node
    return [one.path for one in above(of, node)]


def written(parameter: str, number: int) -> str | int:
    return {"CpuSpecList": f"0-{number}", "Gres": f"gpu:{number}"}.get(parameter, number)


def test_twenty_types_are_judged() -> None:
    assert len(set(TYPES)) == 20
    assert set(TYPES) <= instance_types().keys()
    assert sum(threads(instance_types()[name]) is not None for name in TYPES) >= 18


@for_each("parameter", LIMITS)
@for_each("name", TYPES)
def test_below_and_equal_are_taken_and_above_is_not(name: str, parameter: str) -> None:
    kind = instance_type(name)
    assert kind
    limit = LIMITS[parameter](kind)
    if limit is None:
        assert not too_large(group(name, {parameter: written(parameter, 10**6)}))  # not known
        return
    for number in (0, limit - 1, limit):
        assert number < 0 or not too_large(group(name, {parameter: written(parameter, number)})), number
    assert too_large(group(name, {parameter.upper(): written(parameter, limit + 1)})) == [
        ("slurm_settings", parameter.upper())
    ]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"name": "gpu", "file": "/dev/nvidia[0-7]"}, ""),
        ({"name": "gpu", "file": "/dev/nvidia[0-8]"}, "file"),
        ({"name": "gpu", "file": "/dev/nvidia0,/dev/nvidia11"}, "file"),
        ({"name": "gpu", "file": "/dev/nvidia[0-7]", "cores": "0-191"}, ""),
        ({"name": "gpu", "file": "/dev/nvidia[0-7]", "cores": "0-47,192"}, "cores"),
        ({"name": "gpu", "multiple_files": "/dev/nvidia8,/dev/nvidia-caps/nvidia-cap21"}, "multiple_files"),
        ({"name": "tape", "file": "/dev/sg[0-99]"}, ""),
        ({"name": "gpu", "file": "/dev/nvidia[a-b]"}, ""),
        ({"name": "gpu", "file": "/dev/nvidia[0-999999999999]"}, "file"),
    ],
)
def test_devices_of_records(record: dict[str, str], field: str) -> None:
    expected = [("gres", 0, field)] if field else []
    assert too_large(group("p5.48xlarge", gres=(record,)), PCS) == expected


def test_an_instance_of_mig_is_no_whole_gpu() -> None:
    assert not too_large(group("p5.48xlarge", {"Gres": "gpu:1g.10gb:56"}), PCS)
    assert too_large(group("p5.48xlarge", {"Gres": "gpu:h100:9"}), PCS)


def test_one_thread_for_each_core_halves_the_processors() -> None:
    single = group("p5.48xlarge", {"CPUs": 96}, threads_per_core=1)
    assert not too_large(single)
    assert too_large(group("p5.48xlarge", {"CPUs": 97, "ThreadsPerCore": 2}, threads_per_core=1)) == [
        ("slurm_settings", "CPUs"),
        ("slurm_settings", "ThreadsPerCore"),
    ]


@pytest.mark.parametrize(
    ("cluster", "percent"),
    [
        (PCL, 75),
        (PCS, 90),
        (Pcs(slurm_settings={"SlurmctldParameters": "node_reg_mem_percent=50"}), 50),
    ],
)
def test_memory_is_judged_by_the_share_that_the_service_asks_for(
    cluster: ParallelCluster | Pcs, percent: int
) -> None:
    limit = 2048 * 1024 * 100 // percent
    assert not too_large(group("p5.48xlarge", {"RealMemory": limit}), cluster)
    assert too_large(group("p5.48xlarge", {"RealMemory": limit + 1}), cluster)


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({}, None),
        ({"Sockets": 2}, 2),
        ({"Sockets": 2, "CoresPerSocket": 48, "ThreadsPerCore": 2}, None),
        ({"Sockets": 2, "CoresPerSocket": 96}, None),
        ({"CoresPerSocket": 48, "ThreadsPerCore": 2}, None),
        ({"CoresPerSocket": 50}, 50),
        ({"SocketsPerBoard": 2, "Boards": 2}, 4),
    ],
)
def test_processors_are_reset_where_the_parts_do_not_make_them_up(
    settings: dict[str, int], left: int | None
) -> None:
    of = group("p5.48xlarge", settings)
    node = registered(of, PCL)
    assert node and reset_cpus(of, node, node.cpus) == left


def test_an_unknown_type_is_not_judged() -> None:
    assert registered(group("x99.metal", {"CPUs": 10**6}), PCL) is None
