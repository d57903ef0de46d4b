"""ComputeDomains and claims of jobs, before the schemas of Kubernetes and of NVIDIA's driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crd_fields import configuration_problems, problems
from kubernetes_support import environment
from project import ROOT
from ruamel.yaml import YAML
from scheduling_support import plain
from typer.testing import CliRunner

from ultracluster.catalog.eks import charts
from ultracluster.cli.main import app
from ultracluster.config import load
from ultracluster.kubernetes.charts import Chart, device_charts
from ultracluster.kubernetes.kueue import kueue_values
from ultracluster.kubernetes.teams import team_rights
from ultracluster.kubernetes.volcano import volcano_objects
from ultracluster.model import Cluster, resolve

pytestmark = pytest.mark.slow

RACK = ROOT / "environments" / "wishes" / "ultraservers-kubernetes.yaml"
EFA = ROOT / "environments" / "wishes" / "efa-dra.yaml"
IMAGE = "111122223333.dkr.ecr.us-east-2.amazonaws.com/trainer:1"
TAINT = {"key": "dedicated", "value": "system", "effect": "NoSchedule"}
GB200 = {"role": "compute", "instance_type": "p6e-gb200.36xlarge", "count": 18}
SCHEDULERS = ["kueue", "volcano", "kai"]


def objects(file: Path, *arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["job", "write", str(file), "--image", IMAGE, *arguments])
    assert result.exit_code == 0, result.stderr
    return list(YAML(typ="safe").load_all(result.stdout))


def pod(made: dict[str, Any]) -> dict[str, Any]:
    spec = made["spec"]
    if made["kind"] == "JobSet":
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    elif "tasks" in spec:
        spec = spec["tasks"][0]
    return spec["template"]


def by_name(cluster: Cluster) -> dict[str, Chart]:
    return {one.name: one for one in device_charts(cluster)}


# --- ComputeDomains --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_job_on_an_ultraserver_brings_its_own_domain(scheduler: str) -> None:
    domain, made = objects(RACK, "--nodes", "18", "--scheduler", scheduler)

    assert problems(domain) == problems(made) == []
    assert (domain["kind"], domain["metadata"]) == (
        "ComputeDomain",
        {"name": "train", "namespace": "default"},
    )
    spec = pod(made)["spec"]
    (claim,) = spec["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    (container,) = spec["containers"]
    assert container["resources"]["claims"] == [{"name": claim["name"]}]
    # both NVLink within, and EFA between UltraServers
    assert container["resources"]["limits"]["vpc.amazonaws.com/efa"] == "4"
    assert "NCCL_MNNVL_ENABLE" not in {one["name"] for one in container["env"]}


@pytest.mark.parametrize("within", [None, "ultraserver"])
def test_its_nodes_share_an_ultraserver(within: str | None) -> None:
    more = ["--within", within] if within else []
    word, label = "required" if within else "preferred", "nvidia.com/gpu.clique"

    kueue = pod(objects(RACK, "--nodes", "9", *more)[-1])["metadata"]["annotations"]
    assert kueue == {f"kueue.x-k8s.io/podset-{word}-topology": label}
    kai = objects(RACK, "--nodes", "9", "--scheduler", "kai", *more)[-1]["metadata"]["annotations"]
    assert kai == {"kai.scheduler/topology": "clique", f"kai.scheduler/topology-{word}-placement": label}
    volcano = objects(RACK, "--nodes", "9", "--scheduler", "volcano", *more)[-1]
    assert problems(volcano) == []
    assert volcano["spec"]["networkTopology"] == {"mode": "soft"}
    affinity = pod(volcano)["spec"].get("affinity", {}).get("podAffinity", {})
    wanted = [
        {"labelSelector": {"matchLabels": {"volcano.sh/job-name": "train"}}, "topologyKey": label},
    ]
    assert affinity.get("requiredDuringSchedulingIgnoredDuringExecution") == (wanted if within else None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nodes", "9", "--within", "layer-1"], "there is no level `layer-1`: one of ultraserver"),
        (["--nodes", "9", "--within", "layer-1", "--scheduler", "kai"], "one of ultraserver"),
    ],
)
def test_a_level_that_is_not_there_is_refused(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["job", "write", str(RACK), "--image", IMAGE, *arguments])
    assert result.exit_code == 2 and message in " ".join(result.stderr.split())


def test_a_job_that_fits_into_no_ultraserver_is_refused_within_one(tmp_path: Path) -> None:
    file = tmp_path / "environments" / "two.yaml"
    file.parent.mkdir()
    data = YAML(typ="safe").load(RACK.read_text(encoding="utf-8"))
    base = YAML(typ="safe").load((ROOT / "environments" / "eks-p5en.yaml").read_text(encoding="utf-8"))
    data["node_groups"]["train"]["count"] = 36
    data["extends"] = "base.yaml"
    for name, content in (("two.yaml", data), ("base.yaml", base)):
        with (file.parent / name).open("w") as stream:
            YAML().dump(content, stream)
    asked = ["job", "write", str(file), "--image", IMAGE, "--nodes", "36"]

    assert CliRunner().invoke(app, asked).exit_code == 0
    refused = CliRunner().invoke(app, [*asked, "--within", "ultraserver"])
    assert refused.exit_code == 2 and "at most 18 nodes" in " ".join(refused.stderr.split())


def test_hyperpod_has_its_own_label_and_the_same_domain(tmp_path: Path) -> None:
    plan = {"kind": "training-plan", "arn": "arn:aws:sagemaker:us-east-2:111122223333:training-plan/rack"}
    cluster = resolve(environment({"node_groups.rack": {**GB200, "capacity": plan}}, base="hyperpod-eks-p5"))
    driver = by_name(cluster)["dra-driver-nvidia-gpu"]
    (term,) = driver.values["kubeletPlugin"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]

    assert term["matchExpressions"][0]["values"] == ["ml.p6e-gb200.36xlarge"]


def test_the_driver_joins_nodes_and_hands_out_no_gpus() -> None:
    found = by_name(resolve(load(RACK).environment))
    driver, plugin = found["dra-driver-nvidia-gpu"], found["nvidia-device-plugin"]

    assert driver.values["resources"] == {"gpus": {"enabled": False}, "computeDomains": {"enabled": True}}
    assert sorted(driver.values) == charts()["dra-driver-nvidia-gpu"]["keys"]
    assert plugin.values["gfd"] == {"enabled": True}
    row = charts()["nvidia-device-plugin"]
    assert set(plugin.values) <= {*row["keys"], *row["options"]}
    assert "dra-driver-nvidia-gpu" not in by_name(resolve(environment({})))
    off = by_name(resolve(environment({"node_groups.rack": GB200, "orchestrator.compute_domains": False})))
    assert "gfd" not in off["nvidia-device-plugin"].values


def test_node_feature_discovery_runs_on_system_nodes_with_taints() -> None:
    cluster = resolve(environment({"node_groups.rack": GB200, "node_groups.system.taints": [TAINT]}))
    nfd = by_name(cluster)["nvidia-device-plugin"].values["nfd"]

    for once in ("master", "gc"):
        assert {"key": "dedicated", "operator": "Equal", "value": "system", "effect": "NoSchedule"} in nfd[
            once
        ]["tolerations"]
    assert nfd["worker"]["tolerations"] == [{"operator": "Exists"}]


def test_the_operator_divides_no_gpus_of_ultraservers() -> None:
    operator = {"orchestrator.gpu_plugin": "gpu-operator"}
    alone = by_name(
        resolve(environment({**operator, "node_groups.train.instance_type": "p6e-gb200.36xlarge"}))
    )
    beside = by_name(resolve(environment({**operator, "node_groups.rack": GB200})))

    assert alone["gpu-operator"].values["migManager"] == {"enabled": False}
    assert "enabled" not in beside["gpu-operator"].values["migManager"]
    worker = beside["gpu-operator"].values["node-feature-discovery"]["worker"]
    assert worker == {"tolerations": [{"operator": "Exists"}]}
    row = charts()["gpu-operator"]
    assert set(alone["gpu-operator"].values) <= {*row["keys"], *row["options"]}


def test_charts_are_not_older_than_what_ultraservers_require() -> None:
    def parts(version: str) -> list[int]:
        return [int(part) for part in version.removeprefix("v").split(".")]

    least = {name: row["least"]["version"] for name, row in charts().items() if "least" in row}
    assert {"aws-efa-k8s-device-plugin", "gpu-operator"} <= least.keys()
    for name, version in least.items():
        assert parts(charts()[name]["version"]) >= parts(version), name


# --- EFA -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["1.34", "1.35", "1.36"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_job_claims_every_interface_of_its_nodes(scheduler: str, release: str) -> None:
    template, made = objects(EFA, "--nodes", "4", "--scheduler", scheduler)

    assert problems(template, kubernetes=release) == problems(made, kubernetes=release) == []
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {
        "deviceClassName": "efa.networking.k8s.aws",
        "allocationMode": "ExactCount",
        "count": 16,
    }
    spec = pod(made)["spec"]
    assert spec["resourceClaims"] == [
        {"name": "efa", "resourceClaimTemplateName": template["metadata"]["name"]}
    ]
    resources = spec["containers"][0]["resources"]
    assert resources["claims"] == [{"name": "efa"}]
    assert "vpc.amazonaws.com/efa" not in resources["limits"] and "hugepages-2Mi" in resources["limits"]


def test_a_wrong_field_of_a_claim_is_found() -> None:
    template, _ = objects(EFA, "--nodes", "4")
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["number"] = 1
    assert problems(template, kubernetes="1.34")
    domain, _ = objects(RACK, "--nodes", "4")
    domain["spec"]["channel"]["template"] = "train"
    assert problems(domain)


def test_one_driver_of_interfaces_is_installed() -> None:
    found = by_name(resolve(load(EFA).environment))

    assert "aws-efa-k8s-device-plugin" not in found
    assert sorted(found["aws-dranet"].values) == charts()["aws-dranet"]["keys"]
    assert found["aws-dranet"].values["supportedInstanceLabels"]["values"] == ["p5en.48xlarge"]
    assert "aws-dranet" not in by_name(resolve(environment({})))


# --- what admits them ------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [RACK, EFA])
def test_kueue_leaves_claims_to_the_scheduler(file: Path) -> None:
    values = kueue_values(resolve(load(file).environment))
    configuration = plain(values["managerConfig"]["controllerManagerConfigYaml"])

    assert set(configuration["featureGates"].values()) == {False}
    assert "KueueDRARejectWorkloadsWhenDRADisabled" in configuration["featureGates"]
    rest = {key: value for key, value in configuration.items() if key not in ("apiVersion", "kind")}
    assert configuration_problems(rest, "config.kueue.x-k8s.io/v1beta2 Configuration") == []
    without = kueue_values(resolve(environment({})))["managerConfig"]["controllerManagerConfigYaml"]
    assert "featureGates" not in without


def test_teams_may_claim_where_jobs_do() -> None:
    teams = {"teams": {"research": {"quota": 8}}}

    def groups(changes: dict[str, Any]) -> set[str]:
        role, *_ = team_rights(resolve(environment({**teams, **changes})))
        return {rule["apiGroups"][0] for rule in role["rules"]}

    claims = {"resource.k8s.io", "resource.nvidia.com"}
    assert claims <= groups({"orchestrator.efa_devices": "dra"})
    assert not claims & groups({})


def test_quotas_of_volcano_leave_claimed_interfaces_out() -> None:
    changes = {
        "teams": {"research": {"quota": 8}},
        "orchestrator.scheduler": "volcano",
        "orchestrator.efa_devices": "dra",
    }
    (queue,) = [one for one in volcano_objects(resolve(environment(changes))) if one["kind"] == "Queue"]
    assert "vpc.amazonaws.com/efa" not in queue["spec"]["deserved"]
