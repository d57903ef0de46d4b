"""`serve --endpoint`: one object for each wish, before AWS's own definition; and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crd_fields import problems
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner, Result

from ultracluster.cli.main import app

pytestmark = pytest.mark.slow

VLLM, SGLANG = "vllm/vllm-openai:v0.19.1", "lmsysorg/sglang:v0.5.6"
S3 = ("--model", "s3://models/llama")
ON = {
    "orchestrator.inference": {
        "model_buckets": ["models"],
        "gateway": True,
        "kv_cache": "tiered",
        "disaggregated_groups": ["train"],
    }
}
TEAMS = {"teams": {"research": {"quota": 16, "limit": 24}, "product": {"quota": 8}}}
ADDON = "amazon-sagemaker-hyperpod-inference"

CLOSED = {
    "network.egress": "closed",
    "orchestrator.chart_repository": "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/charts",
}


def run(folder: Path, changes: dict[str, Any], *arguments: str, base: str = "hyperpod-eks-p5") -> Result:
    file = folder / "cluster.yaml"
    with file.open("w") as stream:
        YAML().dump(changed(environment_data(base), changes), stream)
    asked = arguments if "--image" in arguments else (*arguments, "--image", VLLM)
    return CliRunner().invoke(app, ["serve", str(file), "llama", "--endpoint", *asked])


def objects(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return list(YAML(typ="safe").load_all(result.stdout))


def spec(folder: Path, *arguments: str, **changes: Any) -> dict[str, Any]:
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    manifests = objects(run(folder, ON | keys, *arguments))
    assert [problem for one in manifests for problem in problems(one, kubernetes="1.36")] == []
    return manifests[-1]["spec"]


# --- what is written -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "source"),
    [
        (S3, {"modelSourceType": "s3", "s3Storage": {"bucketName": "models", "region": "us-east-2"}}),
        (
            ("--model", "/fsx/a/b", "--file-system", "fs-0123456789abcdef0"),
            {"modelSourceType": "fsx", "modelLocation": "a/b"},
        ),
        (
            ("--model", "hf:a/b", "--token-secret", "hub"),
            {
                "modelSourceType": "huggingface",
                "huggingFaceModel": {"modelId": "a/b", "tokenSecretRef": {"name": "hub", "key": "token"}},
            },
        ),
    ],
)
def test_a_model_comes_from_three_places(
    model: tuple[str, ...], source: dict[str, Any], tmp_path: Path
) -> None:
    assert spec(tmp_path, *model)["modelSourceConfig"].items() >= source.items()


def test_it_runs_on_the_groups_nodes_with_a_share_of_them(tmp_path: Path) -> None:
    made = spec(tmp_path, *S3, "--gpus", "4", "--replicas", "2", "--instance-type", "ml.p5.48xlarge")

    assert (made["instanceType"], made["replicas"]) == ("ml.p5.48xlarge", 2)
    worker = made["worker"]
    assert worker["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    # 20 % of the node's memory are tiered storage's
    assert worker["resources"]["requests"]["memory"] == f"{int(2048 * 0.8 * 0.7 / 2)}Gi"
    assert worker["args"][worker["args"].index("--tensor-parallel-size") + 1] == "4"
    assert worker["modelInvocationPort"]["containerPort"] == made["metrics"]["modelMetrics"]["port"] == 8000
    (term,) = made["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["train"]


@pytest.mark.parametrize(
    ("options", "cache"),
    [
        (("--kv-cache", "none"), {"enableL1Cache": False, "enableL2Cache": False}),
        (("--kv-cache", "l1"), {"enableL1Cache": True, "enableL2Cache": False}),
        (
            ("--kv-cache", "l2-redis", "--redis", "redis://cache:6379"),
            {"l2CacheSpec": {"l2CacheBackend": "redis", "l2CacheLocalUrl": "redis://cache:6379"}},
        ),
        (("--kv-cache", "tiered"), {"l2CacheSpec": {"l2CacheBackend": "tieredstorage"}}),
    ],
)
def test_caches(options: tuple[str, ...], cache: dict[str, Any], tmp_path: Path) -> None:
    assert spec(tmp_path, *S3, *options)["kvCacheSpec"].items() >= cache.items()


def test_only_routing_by_caches_speaks_another_api(tmp_path: Path) -> None:
    for strategy, api in (("kvaware", "/completions"), ("session", "v1/chat/completions")):
        made = spec(tmp_path, *S3, "--routing", strategy)
        assert made["intelligentRoutingSpec"] == {"enabled": True, "routingStrategy": strategy}
        assert made["invocationEndpoint"] == api


def test_replicas_follow_the_invocations_of_the_endpoint(tmp_path: Path) -> None:
    made = spec(tmp_path, *S3, "--autoscale", "0:4", "--invocations", "30")

    scaling, trigger = made["autoScalingSpec"], made["autoScalingSpec"]["cloudWatchTrigger"]
    assert (scaling["minReplicaCount"], scaling["maxReplicaCount"], made["replicas"]) == (0, 4, 1)
    assert trigger["targetValue"] == 30
    assert {"name": "EndpointName", "value": made["endpointName"]} in trigger["dimensions"]


def test_prefill_and_decode_are_apart_in_one_zone(tmp_path: Path) -> None:
    made = spec(tmp_path, *S3, "--disaggregate", "1:3")

    assert made["pdSpec"]["prefillSpec"]["replicas"] == 1
    assert made["pdSpec"]["decodingSpec"]["replicas"] == 3
    assert made["pdSpec"]["topologySpec"] == {"sameAZ": True}
    known = {variable["name"]: variable["value"] for variable in made["worker"]["environmentVariables"]}
    assert known["PYTHONHASHSEED"] == "0", "else both sides name the same prompt differently"


def test_sglang_is_started_by_its_own_words(tmp_path: Path) -> None:
    made = spec(tmp_path, *S3, "--engine", "sglang", "--image", SGLANG, "--gateway", "shared")

    assert made["worker"]["command"] == ["python3", "-m", "sglang.launch_server"]
    assert "--enable-metrics" in made["worker"]["args"] and "kvCacheSpec" not in made
    assert made["inferenceGateway"] == {"enabled": True, "name": "shared"}


def test_our_agent_finds_its_pods_where_there_is_one(tmp_path: Path) -> None:
    watched = spec(
        tmp_path, *S3, observability={"kind": "prometheus", "alerts": {"emails": ["a@example.com"]}}
    )

    assert watched["kubernetes"]["podTemplateAnnotations"]["ultracluster/serves"] == "vllm"
    quiet = spec(tmp_path, *S3, "--no-metrics")
    assert quiet["metrics"] == {"enabled": False} and "kubernetes" not in quiet


def test_a_teams_endpoint_lets_load_balancers_in(tmp_path: Path) -> None:
    result = run(
        tmp_path, ON | TEAMS | {"orchestrator.inference.kv_cache": "node"}, *S3, "--team", "research"
    )
    policy, made = objects(result)

    assert policy["kind"] == "NetworkPolicy" and policy["spec"]["ingress"] == [{}]
    assert policy["metadata"]["namespace"] == made["metadata"]["namespace"] == "research"
    assert "lets everybody in the VPC in" in result.stderr


def test_under_task_governance_it_is_in_its_teams_queue(tmp_path: Path) -> None:
    governed = {"orchestrator.task_governance": True, "orchestrator.scheduler": "none"}
    node = {"orchestrator.inference.kv_cache": "node"}
    made = objects(run(tmp_path, ON | TEAMS | governed | node, *S3, "--team", "research"))[-1]

    assert made["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": "hyperpod-ns-research-localqueue",
        "kueue.x-k8s.io/priority-class": "high-priority",
    }


# --- what is refused -------------------------------------------------------------------------------------

LOW = {"orchestrator.addon_versions": {ADDON: "v1.2.0-eksbuild.1"}}
PLAIN = {"orchestrator.inference": {"model_buckets": ["models"], "autoscaler": False}}
TAINTED = {
    "node_groups.train.taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
    "node_groups.train.deep_health_checks": ...,
}


@pytest.mark.parametrize(
    ("changes", "arguments", "says"),
    [
        ({"orchestrator.inference": ...}, S3, "write orchestrator.inference: {}"),
        (CLOSED, ("--model", "hf:a/b"), "does not reach: S3 or Lustre"),
        ({}, (*S3, "--kv-cache", "l2-redis"), "--redis redis://host:6379"),
        ({}, (*S3, "--redis", "redis://a:1"), "is for --kv-cache l2-redis"),
        (
            PLAIN | {"orchestrator.tiered_checkpoints_percent": ...},
            (*S3, "--kv-cache", "tiered"),
            "tiered storage",
        ),
        (
            PLAIN | {"orchestrator.tiered_checkpoints_percent": 0},
            (*S3, "--kv-cache", "tiered"),
            "tiered storage",
        ),
        (PLAIN, (*S3, "--kv-cache", "tiered"), "add orchestrator.inference.kv_cache: tiered"),
        ({}, ("--model", "s3://models/a/../b"), "characters that are not allowed"),
        ({}, ("--model", "s3://models/a\nb"), "characters that are not allowed"),
        ({}, ("--model", "s3://models/$(HOME)"), "characters that are not allowed"),
        ({}, (*S3, "--file-system", "fs-0123456789abcdef0"), "--file-system is for a folder on Lustre"),
        ({}, (*S3, "--token-secret", "hub"), "--token-secret is for models of Hugging Face"),
        ({}, (*S3, "--kv-cache", "l2-redis", "--redis", "redis://a:99999999"), "redis://host:6379"),
        ({}, (*S3, "--autoscale", "1:2", "--invocations", "inf"), "--invocations"),
        ({}, (*S3, "--arg=--port=1"), "writes --port itself"),
        ({}, (*S3, "--disaggregate", "1:1", "--replicas", "3"), "--replicas or --disaggregate"),
        ({}, (*S3, "--engine", "sglang", "--routing", "session"), "routes to vLLM only"),
        ({}, (*S3, "--engine", "sglang", "--kv-cache", "tiered"), "caches for vLLM only"),
        ({}, (*S3, "--routing", "session", "--gateway", "a"), "--routing or --gateway"),
        (PLAIN, (*S3, "--gateway", "a"), "there is no gateway"),
        (PLAIN | LOW, (*S3, "--routing", "kvaware"), "asks for v1.2.1-eksbuild.1"),
        ({}, (*S3, "--routing", "kvaware", "--image", "vllm/vllm-openai:v0.19.0"), "vllm 0.19.1 or newer"),
        (
            {},
            (*S3, "--routing", "kvaware", "--image", "lmcache/vllm-openai:v0.3.9"),
            "lmcache 0.4.3 or newer",
        ),
        (PLAIN | LOW | TAINTED, S3, "tolerate none before v2.1.0-eksbuild.1"),
        (PLAIN, (*S3, "--autoscale", "1:2"), "autoscaler is off"),
        ({}, (*S3, "--autoscale", "3:2"), "not below the first"),
        ({}, (*S3, "--autoscale", "many"), "another form than 1:4"),
        ({}, (*S3, "--autoscale", "1:5"), "Use at most 4"),
        (PLAIN, (*S3, "--disaggregate", "1:1"), "does not name train"),
        ({}, (*S3, "--disaggregate", "0:1"), "one replica of each kind"),
        ({}, (*S3, "--disaggregate", "2:3"), "Use at most 4"),
        ({}, (*S3, "--disaggregate", "1:1", "--autoscale", "1:2"), "not with --disaggregate"),
        ({}, (*S3, "--engine", "sglang", "--disaggregate", "1:1"), "of vLLM apart"),
        ({}, (*S3, "--instance-type", "ml.p4d.24xlarge"), "no group has p4d.24xlarge: there is train"),
        ({}, (*S3, "--team", "research"), "there is no team"),
        ({}, (*S3, "--image", "a b"), "characters that are not allowed"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    changes: dict[str, Any], arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    result = run(tmp_path, ON | changes, *arguments)

    assert result.exit_code == 2
    assert says in result.stderr


@pytest.mark.parametrize(
    ("base", "says"), [("eks-p5en", "without --endpoint it writes plain objects"), ("prod", "in a batch job")]
)
def test_other_orchestrators_have_no_operator(base: str, says: str, tmp_path: Path) -> None:
    result = run(tmp_path, {}, *S3, base=base)

    assert result.exit_code == 2
    assert says in result.stderr
