"""`ultracluster serve`: objects that Kubernetes and LeaderWorkerSet take; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from crd_fields import problems
from pod_security import violations
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner, Result

from ultracluster.cli.main import app

pytestmark = pytest.mark.slow

VLLM, SGLANG = "vllm/vllm-openai:v0.19.1", "lmsysorg/sglang:v0.5.6"
FSX = ("--model", "/fsx/llama", "--image", VLLM)
SERVE = {"role": "compute", "instance_type": "p5.48xlarge", "count": 4}
ON = {
    "node_groups.serve": SERVE,
    "orchestrator.leader_worker_set": True,
    "orchestrator.serving": {"groups": ["serve"], "over_nodes": True, "disaggregated": True},
}
TEAM = {"quota": 16, "pod_security": "restricted"}

CLOSED = {
    "network.egress": "closed",
    "orchestrator.chart_repository": "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/charts",
}


def run(folder: Path, changes: dict[str, Any], *arguments: str, base: str = "eks-p5en") -> Result:
    file = folder / "cluster.yaml"
    with file.open("w") as stream:
        YAML().dump(changed(environment_data(base), changes), stream)
    return CliRunner().invoke(app, ["serve", str(file), "llama", *arguments])


def objects(
    folder: Path, *arguments: str, base: str = "eks-p5en", **changes: Any
) -> dict[str, dict[str, Any]]:
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    result = run(folder, (ON if base == "eks-p5en" else {}) | keys, *arguments, base=base)
    assert result.exit_code == 0, result.stderr
    made = list(YAML(typ="safe").load_all(result.stdout))
    assert [problem for one in made for problem in problems(one, kubernetes="1.36")] == []
    return {f"{one['kind']} {one['metadata']['name']}": one for one in made}


def container(made: dict[str, Any]) -> dict[str, Any]:
    (found,) = made["spec"]["template"]["spec"]["containers"]
    return found


def variables(made: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("value") or one["valueFrom"] for one in container(made)["env"]}


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("base", ["eks-p5en", "hyperpod-eks-p5"])
def test_a_part_of_a_node_is_a_deployment(engine: str, base: str, tmp_path: Path) -> None:
    manifests = objects(tmp_path, *FSX, "--engine", engine, "--gpus", "4", "--replicas", "2", base=base)
    server = manifests["Deployment llama"]
    found = container(server)

    assert set(manifests) == {"Service llama", "Deployment llama"}
    assert (
        server["spec"]["template"]["metadata"]["labels"].items()
        >= manifests["Service llama"]["spec"]["selector"].items()
    )
    assert found["resources"]["limits"]["nvidia.com/gpu"] == "4"
    assert "vpc.amazonaws.com/efa" not in found["resources"]["limits"], "nobody speaks to another node"
    assert found["readinessProbe"]["httpGet"] == {"path": "/health", "port": 8000}
    assert "rollingUpdate" in server["spec"]["strategy"]
    assert server["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0, "no GPU is left for one more"
    assert {"name": "lustre", "mountPath": "/fsx", "readOnly": True} in found["volumeMounts"]


def test_a_server_reads_the_file_systems_of_its_group(tmp_path: Path) -> None:
    fast = {"deployment": "scratch-2", "capacity_gib": 4800, "mount_path": "/fast", "groups": ["serve"]}
    changes: dict[str, Any] = {"storage__further_lustre": {"fast": fast}}
    manifests = objects(tmp_path, "--model", "/fast/llama", "--image", VLLM, **changes)
    server = manifests["Deployment llama"]

    mounts = {mount["mountPath"]: mount["name"] for mount in container(server)["volumeMounts"]}
    assert {"/fsx", "/fast"} <= set(mounts)
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in server["spec"]["template"]["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    }
    assert (claims[mounts["/fsx"]], claims[mounts["/fast"]]) == ("lustre", "lustre-fast")
    assert "/fast" not in str(objects(tmp_path, *FSX, "--group", "train", **changes))


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("vllm", {"--nnodes=2", "--pipeline-parallel-size=2", "--node-rank=$(LWS_WORKER_INDEX)"}),
        ("sglang", {"--nnodes=2", "--tp=16", "--dist-init-addr=$(LWS_LEADER_ADDRESS):20000"}),
    ],
)
def test_several_nodes_are_one_group_over_efa(engine: str, words: set[str], tmp_path: Path) -> None:
    manifests = objects(tmp_path, *FSX, "--engine", engine, "--nodes", "2", "--replicas", "2")
    template = manifests["LeaderWorkerSet llama"]["spec"]["leaderWorkerTemplate"]
    leader, worker = (template[f"{one}Template"]["spec"]["containers"][0] for one in ("leader", "worker"))

    assert template["size"] == 2 and words <= set(leader["args"])
    assert leader["resources"]["limits"]["vpc.amazonaws.com/efa"] == "32"
    assert "readinessProbe" in leader and "readinessProbe" not in worker
    assert ("--headless" in worker["args"]) is (engine == "vllm")
    selector = manifests["Service llama"]["spec"]["selector"]
    assert selector["leaderworkerset.sigs.k8s.io/worker-index"] == "0", "only the leader answers"


def test_servers_claim_their_part_of_the_interfaces_where_pods_claim_them(tmp_path: Path) -> None:
    claims = {"orchestrator__efa_devices": "dra"}
    asked = ("--gpus", "4", "--disaggregate", "1:2", "--router-image", "vllm/vllm-router:v0.1.9")
    manifests = objects(tmp_path, *FSX, *asked, **claims)
    template = manifests["ResourceClaimTemplate llama-efa"]
    (request,) = template["spec"]["spec"]["devices"]["requests"]

    assert request["exactly"]["count"] == 16  # half of the 32 of a node
    serving = [one for one in manifests.values() if "resourceClaims" in str(one)]
    assert len(serving) == 2 and "vpc.amazonaws.com/efa" not in str(manifests)
    # alone, a server speaks to nobody
    assert "ResourceClaimTemplate llama-efa" not in objects(tmp_path, *FSX, "--gpus", "4", **claims)


def test_caches_of_vllm_go_over_nixl_and_libfabric(tmp_path: Path) -> None:
    router = ("--router-image", "vllm/vllm-router:v0.1.9")
    manifests = objects(tmp_path, *FSX, "--disaggregate", "1:2", *router)
    settings = {
        role: json.loads(
            next(
                arg
                for arg in container(manifests[f"StatefulSet llama-{role}"])["args"]
                if "kv-transfer" in arg
            ).partition("=")[2]
        )
        for role in ("prefill", "decode")
    }

    assert {role: one["kv_role"] for role, one in settings.items()} == {
        "prefill": "kv_producer",
        "decode": "kv_consumer",
    }
    assert all(
        setting["kv_connector_extra_config"] == {"backends": ["LIBFABRIC"]} for setting in settings.values()
    )
    known = variables(manifests["StatefulSet llama-decode"])
    assert known["FI_PROVIDER"] == "efa"
    assert known["VLLM_NIXL_SIDE_CHANNEL_HOST"] == {"fieldRef": {"fieldPath": "status.podIP"}}


@pytest.mark.parametrize(
    ("engine", "image", "ports"), [("vllm", VLLM, []), ("sglang", SGLANG, ["8998"])], ids=["vllm", "sglang"]
)
def test_the_router_knows_every_pod_by_its_name(
    engine: str, image: str, ports: list[str], tmp_path: Path
) -> None:
    asked = ("--model", "/fsx/llama", "--image", image, "--engine", engine, "--disaggregate", "1:2")
    manifests = objects(tmp_path, *asked, "--router-image", "example.com/router:1")
    words = container(manifests["Deployment llama-router"])["args"]

    start = words.index("--prefill")
    assert words[start : start + 6 + len(ports)] == [
        "--prefill", "http://llama-prefill-0.llama-prefill:8000", *ports,
        "--decode", "http://llama-decode-0.llama-decode:8000",
        "--decode", "http://llama-decode-1.llama-decode:8000",
    ]  # fmt: skip
    for role, count in (("prefill", 1), ("decode", 2)):
        home = manifests[f"Service llama-{role}"]["spec"]
        assert home["clusterIP"] == "None" and home["publishNotReadyAddresses"]
        assert manifests[f"StatefulSet llama-{role}"]["spec"]["replicas"] == count
    assert manifests["Service llama"]["spec"]["selector"]["ultracluster/serves-as"] == "router"


def test_caches_of_sglang_go_over_nixl_too(tmp_path: Path) -> None:
    asked = ("--model", "hf:a/b", "--image", SGLANG, "--engine", "sglang", "--disaggregate", "1:1")
    manifests = objects(tmp_path, *asked, "--token-secret", "hub", "--arg=--mem-fraction-static=0.8")
    found = container(manifests["StatefulSet llama-prefill"])

    assert {"--disaggregation-mode=prefill", "--disaggregation-transfer-backend=nixl"} <= set(found["args"])
    assert found["args"][-1] == "--mem-fraction-static=0.8"
    known = variables(manifests["StatefulSet llama-prefill"])
    assert known["SGLANG_DISAGGREGATION_NIXL_BACKEND"] == "LIBFABRIC"
    assert known["HF_TOKEN"] == {"secretKeyRef": {"name": "hub", "key": "token"}}
    assert container(manifests["Deployment llama-router"])["image"] == SGLANG, "its image has its router"


def test_a_team_has_them_in_its_namespace_and_as_its_level_allows(tmp_path: Path) -> None:
    manifests = objects(tmp_path, *FSX, "--team", "research", teams={"research": TEAM})

    assert {one["metadata"]["namespace"] for one in manifests.values()} == {"research"}
    pod = manifests["Deployment llama"]["spec"]["template"]
    assert violations(pod, "restricted") == []


def test_the_agent_finds_a_server_and_knows_its_engine(tmp_path: Path) -> None:
    watched = {"kind": "prometheus", "alerts": {"emails": ["a@example.com"]}}
    manifests = objects(tmp_path, *FSX, observability=watched)

    assert manifests["Deployment llama"]["spec"]["template"]["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "8000",
        "prometheus.io/path": "/metrics",
        "ultracluster/serves": "vllm",
    }
    assert "annotations" not in objects(tmp_path, *FSX)["Deployment llama"]["spec"]["template"]["metadata"]


@pytest.mark.parametrize(
    ("changes", "arguments", "says"),
    [
        ({"storage.lustre": ...}, FSX, "there is no Lustre file system"),
        (CLOSED, ("--model", "hf:a/b", "--image", VLLM), "does not reach: S3 or Lustre"),
        ({}, (*FSX, "--gpus", "9"), "has 8 GPUs"),
        ({}, (*FSX, "--replicas", "5"), "Use at most 4"),
        ({}, (*FSX, "--nodes", "2", "--replicas", "3"), "Use at most 2"),
        ({}, (*FSX, "--disaggregate", "1:1"), "vLLM's image has no router"),
        ({}, (*FSX, "--disaggregate", "1"), "another form than 1:1"),
        ({}, (*FSX, "--disaggregate", "1:1", "--router-image", "a", "--nodes", "2"), "without --nodes"),
        ({}, (*FSX, "--group", "system"), "no group `system` with accelerators"),
        ({}, (*FSX, "--token-secret", "A B"), "characters that are not allowed"),
        ({}, (*FSX, "--token-secret", "hub"), "--token-secret is for models of Hugging Face"),
        ({}, (*FSX, "--router-image", "a"), "--router-image is for --disaggregate"),
        ({}, (*FSX, "--nodes", "99"), "a replica over 99 nodes never starts"),
        ({}, (*FSX, "--team", "a"), "there is no team `a`: the environment has none"),
        ({}, (*FSX, "--arg", "--host=::1"), "writes --host itself"),
        (
            {"orchestrator.leader_worker_set": False, "orchestrator.serving.over_nodes": False},
            (*FSX, "--nodes", "2"),
            "add orchestrator.serving.over_nodes: true",
        ),
        (
            {"node_groups.serve.instance_type": "g6.4xlarge", "orchestrator.serving.disaggregated": False},
            (*FSX, "--disaggregate", "1:1", "--router-image", "a"),
            "has no EFA",
        ),
        (
            {"orchestrator.serving.disaggregated": False},
            (*FSX, "--disaggregate", "1:1", "--router-image", "a"),
            "add orchestrator.serving.disaggregated: true",
        ),
        (
            {"orchestrator.serving": ...},
            (*FSX, "--group", "serve", "--nodes", "2"),
            "add orchestrator.serving: {groups: [serve], over_nodes: true}",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    changes: dict[str, Any], arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    result = run(tmp_path, ON | changes, *arguments)

    assert result.exit_code == 2
    assert says in result.stderr


def test_slurm_has_no_objects_of_kubernetes(tmp_path: Path) -> None:
    result = run(tmp_path, {}, *FSX, base="prod")

    assert result.exit_code == 2 and "start it in a batch job" in result.stderr
