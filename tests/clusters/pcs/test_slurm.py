"""What a PCS cluster says to Slurm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pcs_support import (
    BLOCK,
    bare,
    compute,
    group_of,
    login,
    made,
    only,
)
from project import ROOT, environments_of
from wish_cases import OVERLAYS

from ultracluster.clusters.pcs.slurm import node_configuration
from ultracluster.config import load
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.pcs import PROLOG, Pcs
from ultracluster.config.slurm import Partition
from ultracluster.model import Cluster, resolve
from ultracluster.model.slurm_reading import refusals
from ultracluster.scripts_folder import scripts_folder

SHIPPED = [*(f"environments/{name}.yaml" for name in environments_of("pcs")), *OVERLAYS]


def pcs_clusters() -> dict[str, Cluster]:
    """Shipped environments and overlays of PCS, the one service that takes these files' lines, by file."""
    found = {file: resolve(load(ROOT / file).environment) for file in SHIPPED}
    return {file: one for file, one in found.items() if isinstance(one.settings, Pcs)}


def refused(cluster: Cluster, **more: dict[str, str]) -> list[str]:
    """What slurmd and slurmdbd refuse of gres.conf and slurmdbd.conf with `more` in each line of them."""
    settings = cluster.settings
    assert isinstance(settings, Pcs)
    says = [*refusals("slurmdbd.conf", settings.slurmdbd_settings | more.get("slurmdbd", {}),
                      settings.slurm_version)]  # fmt: skip
    for group in cluster.groups.values():
        made = node_configuration(settings, group.settings, group.type) if group.type else None
        lines = made.gres_custom_settings if made else None
        assert lines is None or isinstance(lines, list)
        for line in lines or ():
            assert isinstance(line, dict)
            says += refusals("gres.conf", line | more.get("gres", {}), settings.slurm_version)
    return [one.says for one in says]


def test_slurm_reads_gres_conf_and_slurmdbd_conf_of_each_shipped_environment() -> None:
    clusters = pcs_clusters()
    assert len(clusters) > 2 and any("gres" in file for file in clusters)
    for file, cluster in clusters.items():
        assert not refused(cluster), file
        assert refused(cluster, slurmdbd={"DebugLevel": "trace"}) == ["Invalid DebugLevel trace"], file
        assert refused(cluster, slurmdbd={"PurgeJobsAfter": "1"}), file


def test_slurm_refuses_a_line_of_gres_conf_that_counts_other_devices() -> None:
    gres = next(one for file, one in pcs_clusters().items() if "gres" in file)
    for line in ({"Count": "99", "File": "/dev/nvidia[0-7]"}, {"Devices": "/dev/sg0"}):
        assert refused(gres, gres=line), line


@pytest.mark.parametrize(
    ("kind", "config", "gres", "record"),
    [
        ("p5.48xlarge", {}, "gpu:h100:8", {"Type": "h100", "File": "/dev/nvidia[0-7]"}),
        ("p5.4xlarge", {}, "gpu:h100:1", {"Type": "h100", "File": "/dev/nvidia0"}),
        ("g6e.12xlarge", {}, "gpu:l40s:4", {"Type": "l40s", "File": "/dev/nvidia[0-3]"}),
        ("p5.48xlarge", {"slurm_version": "26.05"}, None, None),
        ("p5.48xlarge", {"gpu_types": False}, None, None),
        ("trn2.48xlarge", {}, None, None),
        ("m7i.2xlarge", {}, None, None),
    ],
)
def test_gpus_by_type(
    kind: str, config: dict[str, Any], gres: str | None, record: dict[str, str] | None, tmp_path: Path
) -> None:
    result = bare(tmp_path, config=Pcs(kind="pcs", **config), node_groups={"train": compute(kind)})
    slurm = group_of(result, "train").get("SlurmConfiguration")

    if gres is None or record is None:
        assert slurm is None
    else:
        assert slurm == {
            "GresCustomSettings": [{"Name": "gpu"} | record],
            "SlurmCustomSettings": [{"ParameterName": "Gres", "ParameterValue": gres}],
        }


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (
            {
                "gres": [
                    {"name": "gpu", "type": "mine", "file": "/dev/nvidia[0-7]", "cores": "0-47"},
                    {"name": "staging", "count": 4, "flags": "CountOnly"},
                ],
                "slurm_settings": {"Gres": "gpu:mine:8,staging:4"},
            },
            {
                "GresCustomSettings": [
                    {"Name": "gpu", "Type": "mine", "Cores": "0-47", "File": "/dev/nvidia[0-7]"},
                    {"Name": "staging", "Count": "4", "Flags": "CountOnly"},
                ],
                "SlurmCustomSettings": [{"ParameterName": "Gres", "ParameterValue": "gpu:mine:8,staging:4"}],
            },
        ),
        ({"gres": [{"auto_detect": "nvml"}]}, {"GresCustomSettings": [{"AutoDetect": "nvml"}]}),
        (
            {
                "mig_layout": {"1g.10gb": 3, "4g.40gb": 1},
                "gres": [{"name": "staging", "count": 4}],
                "slurm_settings": {"gres": "staging:4"},
            },
            {
                "GresCustomSettings": [{"AutoDetect": "nvml"}, {"Name": "staging", "Count": "4"}],
                "SlurmCustomSettings": [
                    {"ParameterName": "Sockets", "ParameterValue": "2"},
                    {"ParameterName": "Gres", "ParameterValue": "gpu:1g.10gb:24,gpu:4g.40gb:8,staging:4"},
                ],
            },
        ),
        (
            {"scaledown_seconds": 300, "max_count": 8},
            {
                "GresCustomSettings": [{"Name": "gpu", "Type": "h100", "File": "/dev/nvidia[0-7]"}],
                "ScaleDownIdleTimeInSeconds": 300,
                "SlurmCustomSettings": [{"ParameterName": "Gres", "ParameterValue": "gpu:h100:8"}],
            },
        ),
    ],
    ids=["records of yours", "detected", "cut by MIG", "idle time"],
)
def test_what_a_group_says_of_its_devices_and_idle_nodes(
    group: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    train = NodeGroup.model_validate(compute().model_dump() | group)
    assert group_of(bare(tmp_path, node_groups={"train": train}), "train")["SlurmConfiguration"] == expected


def test_one_queue_for_each_partition_with_its_settings(tmp_path: Path) -> None:
    config = Pcs(
        kind="pcs",
        partitions={
            "train": Partition(slurm_settings={"MaxTime": "1-00:00:00"}),
            "shared": Partition(exclusive=False, slurm_settings={"PriorityTier": 2}),
        },
    )
    groups = {
        "login": login(),
        "first": compute(),
        "second": compute(),
        "small": compute("g6e.12xlarge", partition="shared"),
    }
    result = bare(tmp_path, config=config, node_groups=groups)
    queues = {
        queue["Properties"]["Name"]: queue["Properties"]
        for queue in result.resources("AWS::PCS::Queue").values()
    }
    settings = {
        name: {
            one["ParameterName"]: one["ParameterValue"]
            for one in queue["SlurmConfiguration"]["SlurmCustomSettings"]
        }
        for name, queue in queues.items()
    }

    assert settings == {
        "train": {"MaxTime": "1-00:00:00", "OverSubscribe": "EXCLUSIVE", "Default": "YES"},
        "shared": {"PriorityTier": "2"},
    }
    assert {name: len(queue["ComputeNodeGroupConfigurations"]) for name, queue in queues.items()} == {
        "train": 2,
        "shared": 1,
    }


RACK = {"rack": compute("p6e-gb200.36xlarge", count=18, partition="rack", capacity=BLOCK)}
IMEX = {"Prolog": PROLOG, "PrologFlags": "Alloc,NoHold"}
NAMES = ("prolog", "prologflags", "minjobage")
# a dry run of the health checks names no prolog, for the nodes that run have none
JOBS = {"PrologFlags": "Alloc,Contain,DeferBatch"}


@pytest.mark.parametrize(
    ("groups", "config", "expected"),
    [
        (RACK, {}, IMEX),
        ({"train": compute()}, {}, JOBS),
        ({"trn2": compute("trn2u.48xlarge", capacity=BLOCK)}, {}, JOBS),  # NeuronLink knows no IMEX
        (RACK, {"imex": False}, {}),
        (RACK, {"lifecycle": "none"}, {}),  # nobody would put the prolog there
        (RACK, {"slurm_settings": {"MinJobAge": 300}}, IMEX | {"MinJobAge": "300"}),
        (
            RACK,
            {"slurm_settings": {"prologflags": "Alloc"}},
            {"Prolog": PROLOG, "prologflags": "Alloc"},
        ),
        (
            RACK,
            {"slurm_settings": {"Prolog": "/mine"}},
            {"Prolog": "/mine", "PrologFlags": "Alloc,NoHold"},
        ),
    ],
)
def test_ultraservers_run_the_imex_prolog(
    tmp_path: Path, groups: dict[str, NodeGroup], config: dict[str, Any], expected: dict[str, str]
) -> None:
    asked = Pcs(kind="pcs", **config)
    result = made(tmp_path, config=asked, node_groups={"login": login(), **groups})
    settings = only(result, "AWS::PCS::Cluster")["SlurmConfiguration"].get("SlurmCustomSettings", [])

    found = {one["ParameterName"]: one["ParameterValue"] for one in settings}
    assert {name: found[name] for name in found if name.lower() in NAMES} == expected


def test_the_scripts_put_the_prolog_where_slurm_looks_for_it() -> None:
    step = (scripts_folder() / "steps" / "imex.sh").read_text()

    assert f"readonly PROLOG={PROLOG}\n" in step
    assert 'slurm_prolog.sh" "$PROLOG"' in step


def test_what_is_said_of_a_partition_is_not_said_twice(tmp_path: Path) -> None:
    said = Partition(slurm_settings={"oversubscribe": "EXCLUSIVE", "default": "NO"})
    queue = only(bare(tmp_path, config=Pcs(kind="pcs", partitions={"train": said})), "AWS::PCS::Queue")

    assert [one["ParameterName"] for one in queue["SlurmConfiguration"]["SlurmCustomSettings"]] == [
        "oversubscribe",
        "default",
    ]
