"""Volumes of Kubernetes, before Kubernetes' own schemas; and which charts a cluster gets."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.catalog.eks import charts, kubernetes_releases
from ultracluster.kubernetes.charts import chart, device_charts, job_charts
from ultracluster.kubernetes.storage import (
    block_storage_class,
    lustre_volume,
    open_zfs_volume,
    scratch_volume,
)
from ultracluster.model import resolve

PAIRS = {
    "lustre": lustre_volume(
        file_system_id="fs-0123456789abcdef0",
        dns_name="fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
        mount_name="abcdefgh",
    ),
    "lustre-read-only": lustre_volume(
        file_system_id="fs-0123456789abcdef0",
        dns_name="fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
        mount_name="abcdefgh",
        namespace="vision",
        name="datasets",
        read_only=True,
    ),
    "home": open_zfs_volume(dns_name="fs-0123456789abcdef1.fsx.us-east-2.amazonaws.com"),
    "scratch": scratch_volume(groups=["train", "tune"], label="ultracluster/node-group"),
}


@pytest.mark.parametrize("release", kubernetes_releases())
@pytest.mark.parametrize("name", PAIRS)
def test_kubernetes_itself_accepts_every_volume_and_claim(name: str, release: str) -> None:
    for manifest in PAIRS[name]:
        kubernetes_validate.validate(manifest, release, strict=True)


@pytest.mark.parametrize("release", kubernetes_releases())
def test_kubernetes_itself_accepts_the_storage_class(release: str) -> None:
    made = block_storage_class(key_arn="arn:aws:kms:us-east-2:111122223333:key/a")
    kubernetes_validate.validate(made, release, strict=True)

    assert made["parameters"]["encrypted"] == "true"


def test_the_schemas_can_refuse() -> None:
    volume, _ = lustre_volume(file_system_id="fs-1", dns_name="a", mount_name="b")
    volume["spec"]["accesModes"] = volume["spec"].pop("accessModes")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(volume, "1.34", strict=True)


@pytest.mark.parametrize("name", PAIRS)
def test_volume_and_claim_belong_to_each_other_and_outlive_it(name: str) -> None:
    volume, claim = PAIRS[name]
    reference = volume["spec"]["claimRef"]

    assert (reference["name"], reference["namespace"]) == (
        claim["metadata"]["name"],
        claim["metadata"]["namespace"],
    )
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert claim["spec"]["storageClassName"] == volume["spec"]["storageClassName"] == ""
    assert claim["spec"]["resources"]["requests"] == volume["spec"]["capacity"]
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"


def test_one_file_system_in_two_namespaces_has_two_handles() -> None:
    handles = {PAIRS[name][0]["spec"]["csi"]["volumeHandle"] for name in ("lustre", "lustre-read-only")}

    assert len(handles) == 2


# --- charts -----------------------------------------------------------------------------------------------


def made(base: str = "eks-p5en", **changes: Any) -> dict[str, Any]:
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    environment = loaded(changed(environment_data(base), keys)).environment
    return {
        one.name: one for one in (*device_charts(resolve(environment)), *job_charts(resolve(environment)))
    }


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        ("eks-p5en", {}, {"aws-efa-k8s-device-plugin", "nvidia-device-plugin", "dcgm-exporter", "jobset"}),
        ("eks-trn2", {}, {"aws-efa-k8s-device-plugin", "neuron-helm-chart", "jobset"}),
        ("eks-p5en", {"orchestrator__gpu_plugin": "none"}, {"aws-efa-k8s-device-plugin", "jobset"}),
        (
            "eks-p5en",
            {"orchestrator__gpu_plugin": "gpu-operator", "orchestrator__jobset": False},
            {"aws-efa-k8s-device-plugin", "gpu-operator"},
        ),
        (
            "eks-trn2",
            {"orchestrator__kubeflow_trainer": True, "orchestrator__leader_worker_set": True},
            {"aws-efa-k8s-device-plugin", "neuron-helm-chart", "jobset", "lws", "kubeflow-trainer"},
        ),
        ("eks-trn2", {"node_groups__trn2__instance_type": "c5.large"}, {"jobset"}),
        (
            "eks-trn2",
            {"node_groups__trn2__instance_type": "c5.large", "orchestrator__kuberay": True},
            {"jobset", "kuberay-operator"},
        ),
    ],
)  # fmt: skip
def test_charts_follow_the_devices(base: str, changes: dict[str, Any], expected: set[str]) -> None:
    assert set(made(base, **changes)) == expected


def test_the_efa_plugin_serves_exactly_the_types_of_the_cluster() -> None:
    more = {"role": "compute", "instance_type": "p6-b300.48xlarge", "count": 1}
    plain = {"role": "compute", "instance_type": "c5.large", "count": 1}
    plugin = made(node_groups__more=more, node_groups__plain=plain)["aws-efa-k8s-device-plugin"]
    labels = plugin.values["supportedInstanceLabels"]

    assert labels["values"] == ["p5en.48xlarge", "p6-b300.48xlarge"]
    assert labels["keys"] == ["node.kubernetes.io/instance-type"]


def test_the_gpu_operator_leaves_alone_what_the_image_and_eks_bring() -> None:
    values = made(orchestrator__gpu_plugin="gpu-operator")["gpu-operator"].values

    assert [values[part]["enabled"] for part in ("driver", "toolkit", "dcgm")] == [False, False, False]


def test_the_device_plugin_gives_pods_no_devices_that_hide_those_of_efa() -> None:
    values = made()["nvidia-device-plugin"].values

    assert values["mofedEnabled"] is False and values["gdrcopyEnabled"] is True


def test_kuberays_operator_requests_no_more_than_its_limits() -> None:
    """Helm merges our values over the chart's: limits of 100m and 512Mi (v1.6.2, values.yaml)."""
    ours = made(orchestrator__kuberay=True)["kuberay-operator"].values["resources"]
    limits = {"cpu": "100m", "memory": "512Mi", **ours["limits"]}

    assert (ours["requests"], limits) == ({"cpu": "500m", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"})


def test_one_host_engine_watches_the_gpus_of_an_eks_node() -> None:
    """Some fields of a GPU can be read by one engine only; the monitoring agent brings one."""
    (node, engine) = made()["dcgm-exporter"].values["extraEnv"]

    assert node["valueFrom"]["fieldRef"]["fieldPath"] == "status.hostIP"
    assert engine == {"name": "DCGM_REMOTE_HOSTENGINE_INFO", "value": "$(NODE_IP):5555"}
    # the agent's engine is neither on HyperPod's nodes nor on those with ARM processors
    assert "extraEnv" not in made("hyperpod-eks-p5")["dcgm-exporter"].values
    arm = {"role": "compute", "instance_type": "p6e-gb200.36xlarge", "count": 18}
    assert "extraEnv" not in made(node_groups__arm=arm)["dcgm-exporter"].values


@pytest.mark.parametrize("release", ["1.31", "1.33", "1.34", "1.35", "1.36"])
def test_neurons_second_scheduler_is_of_the_control_planes_release(release: str) -> None:
    changes = {"orchestrator__neuron_scheduler": True, "orchestrator__kubernetes_version": release}
    scheduler = made("eks-trn2", **changes)["neuron-helm-chart"].values["scheduler"]

    assert scheduler["enabled"] is True
    assert scheduler["customScheduler"]["image"]["tag"].startswith(f"v{release}.")
    assert "scheduler" not in made("eks-trn2")["neuron-helm-chart"].values


def test_neurons_scheduler_runs_on_system_nodes_with_taints() -> None:
    taint = {"key": "dedicated", "value": "system", "effect": "NoSchedule"}
    system = {"role": "system", "instance_type": "m5.2xlarge", "count": 2, "taints": [taint]}
    changes = {"orchestrator__neuron_scheduler": True, "node_groups__system": system}
    scheduler = made("eks-trn2", **changes)["neuron-helm-chart"].values["scheduler"]

    both = (scheduler["tolerations"], scheduler["customScheduler"]["tolerations"])
    assert all(
        {"key": "dedicated", "operator": "Equal", "value": "system", "effect": "NoSchedule"} in one
        for one in both
    )


def test_own_values_come_on_top_and_copies_from_a_registry() -> None:
    registry = "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/charts"
    image = {"image": {"repository": "copy"}, "serviceMonitor": {"interval": "30s"}}
    exporter = made(
        orchestrator__chart_repository=registry, orchestrator__chart_values={"dcgm-exporter": image}
    )["dcgm-exporter"]

    assert exporter.repository == f"{registry}/dcgm-exporter"
    assert exporter.values["image"] == {"repository": "copy"}
    assert exporter.values["serviceMonitor"] == {"enabled": False, "interval": "30s"}


def test_the_catalogue_says_which_values_we_set() -> None:
    used = {
        **made(orchestrator__gpu_plugin="gpu-operator"),
        **made(orchestrator__kubeflow_trainer=True, orchestrator__leader_worker_set=True),
        **made(orchestrator__kuberay=True),
        **made("eks-trn2", orchestrator__neuron_scheduler=True),
    }

    for name, one in used.items():
        row = charts()[name]
        assert {*row["keys"]} <= {*one.values} <= {*row["keys"], *row.get("options", ())}, name
        assert one.version == charts()[name]["version"]


def test_every_chart_is_pinned_and_sourced() -> None:
    for name, row in charts().items():
        assert row["version"].removeprefix("v").count(".") == 2, name
        assert row["repository"].startswith(("https://", "oci://")) and row["source"] and row["namespace"]
        oci = row["repository"].startswith("oci://")
        assert not oci or row["repository"].endswith(f"/{name}"), "an OCI address names the chart itself"


def test_a_chart_that_nobody_knows_is_refused() -> None:
    with pytest.raises(KeyError):
        chart("no-such-chart")
