"""Tiered checkpoints of a job: its folder, its account, its log, and its memory."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from crd_fields import problems
from kubernetes_support import environment
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner

from ultracluster.catalog.eks import kubernetes_releases
from ultracluster.cli.main import app
from ultracluster.kubernetes.checkpoints import ACCOUNT, checkpoint_accounts
from ultracluster.kubernetes.team_admission import team_objects
from ultracluster.model import resolve

pytestmark = pytest.mark.slow

BASE = "hyperpod-eks-p5"
TIER = {"orchestrator.checkpoint_tier": {"bucket": "example-checkpoints", "prefix": "runs/"}}
TEAMS = {"teams": {"research": {"quota": 16}}}


def pod(folder: Path, arguments: str, changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    file = folder / "cluster.yaml"
    with file.open("w") as stream:
        YAML().dump(changed(environment_data(BASE), changes), stream)
    asked = shlex.split(f"--nodes 2 --image registry/trainer:1 {arguments}")
    result = CliRunner().invoke(app, ["job", "write", str(file), *asked])
    assert result.exit_code == 0, result.stderr
    (made,) = YAML(typ="safe").load_all(result.stdout)
    return made, made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


def variables(spec: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in spec["containers"][0]["env"]}


@pytest.mark.parametrize("release", kubernetes_releases())
@pytest.mark.parametrize("place", ["memory", "s3"])
def test_what_reads_the_job_takes_it(place: str, release: str, tmp_path: Path) -> None:
    made, _ = pod(tmp_path, f"--checkpoints-to {place}", TIER)

    assert problems(made, kubernetes=release) == []


def test_each_namespace_has_a_folder_and_an_account_of_its_own(tmp_path: Path) -> None:
    _, spec = pod(tmp_path, "--checkpoints-to s3 --team research --name large", {**TIER, **TEAMS})

    assert spec["serviceAccountName"] == ACCOUNT
    assert spec["automountServiceAccountToken"] is False
    told = variables(spec)
    assert told["ULTRACLUSTER_CHECKPOINT_TIER"] == "s3://example-checkpoints/runs/research"
    assert told["TRAINING_JOB_NAME"] == "large"


def test_in_memory_alone_a_pod_has_no_rights(tmp_path: Path) -> None:
    _, spec = pod(tmp_path, "--checkpoints-to memory", TIER)

    assert "serviceAccountName" not in spec
    assert "ULTRACLUSTER_CHECKPOINT_TIER" not in variables(spec)


def test_the_library_has_a_folder_for_its_log(tmp_path: Path) -> None:
    _, spec = pod(tmp_path, "--checkpoints-to memory", {})
    (mount,) = [
        one
        for one in spec["containers"][0]["volumeMounts"]
        if one["mountPath"] == "/var/log/sagemaker_checkpointing"
    ]

    assert {"name": mount["name"], "emptyDir": {}} in spec["volumes"]


@pytest.mark.parametrize(("percent", "memory"), [(None, "1638Gi"), (20, "1310Gi"), (50, "819Gi")])
def test_a_job_requests_what_is_left(percent: int | None, memory: str, tmp_path: Path) -> None:
    _, spec = pod(tmp_path, "", {"orchestrator.tiered_checkpoints_percent": percent})

    assert spec["containers"][0]["resources"]["requests"]["memory"] == memory


def test_accounts_are_made_where_a_bucket_is_named() -> None:
    with_tier = resolve(environment({**TIER, **TEAMS}, base=BASE))
    (account,) = checkpoint_accounts(with_tier, ["research"])

    assert problems(account) == []
    assert account["metadata"] == {"name": ACCOUNT, "namespace": "research"}
    assert checkpoint_accounts(resolve(environment({}, base=BASE)), ["default"]) == ()


def test_namespaces_that_hyperpod_makes_get_theirs_from_the_command() -> None:
    governed = {"orchestrator.task_governance": True, "orchestrator.scheduler": "none"}
    objects = team_objects(resolve(environment({**TIER, **TEAMS, **governed}, base=BASE)))

    assert ("hyperpod-ns-research", ACCOUNT) in {
        (one["metadata"]["namespace"], one["metadata"]["name"])
        for one in objects
        if one["kind"] == "ServiceAccount"
    }
