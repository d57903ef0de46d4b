"""One group after the other: controller, login, compute; nothing after a failure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from account_fixtures import keys
from botocore.exceptions import ReadTimeoutError
from hyperpod_service import HyperPod, account, group, refusal
from typer.testing import CliRunner

from ultracluster.account import aws, software_update
from ultracluster.account.aws import Account
from ultracluster.account.nodes.hyperpod import read_cluster
from ultracluster.cli.main import app
from ultracluster.cli.terminal import PART

__all__ = ["keys"]

DEV = Path(__file__).parents[2] / "environments" / "dev.yaml"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs `ultracluster software update dev ...`; waiting takes no time."""
    update = software_update.update

    def invoke(made: Account, *words: str, answers: str | None = None) -> Any:
        ticks = iter(range(0, 1_000_000, 60))
        monkeypatch.setattr(aws, "Account", lambda **_: made)
        monkeypatch.setattr(
            software_update, "update",
            lambda *a, **k: update(*a, **k, sleep=lambda _: None, clock=lambda: float(next(ticks))),
        )  # fmt: skip
        monkeypatch.setenv(PART, "1")  # nobody asks for the account
        return CliRunner().invoke(app, ["software", "update", str(DEV), *words], input=answers)

    return invoke


def old(name: str, count: int, role: str | None, **more: Any) -> dict[str, Any]:
    image = {"CurrentImageReleaseVersion": "1.2.0", "ImageVersionStatus": "UpdateAvailable"}
    return group(name, count, role, **{**image, **more})


@pytest.fixture
def service() -> tuple[Account, HyperPod]:
    aws_account = account()
    groups = [old("gpu", 8, "Compute"), old("login", 1, "Login"), old("controller", 1, "Controller")]
    cluster = HyperPod(aws_account, InstanceGroups=groups)

    def begin(asked: dict[str, Any]) -> None:
        name = asked["InstanceGroups"][0]["InstanceGroupName"]
        entry = next(one for one in cluster.cluster["InstanceGroups"] if one["InstanceGroupName"] == name)
        entry["SoftwareUpdateStatus"] = "InProgress"

        def finish() -> None:
            entry["SoftwareUpdateStatus"] = cluster.failing.get(name, "Succeeded")
            entry["CurrentImageReleaseVersion"] = "1.3.0"

        cluster.later = [lambda: None, finish]

    cluster.on_update = begin
    return aws_account, cluster


def asked(cluster: HyperPod) -> list[str]:
    return [call["InstanceGroups"][0]["InstanceGroupName"] for _, call in cluster.asked]


def test_groups_are_updated_in_slurms_order(run: Callable[..., Any], service: Any) -> None:
    made, cluster = service
    result = run(made, "--release", "1.3.0", "--batch-percent", "25", "--wait-seconds", "60",
                 "--rollback-alarm", "gpu-errors", answers="y\n")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert asked(cluster) == ["controller", "login", "gpu"]
    assert cluster.asked[0][1] == {
        "ClusterName": "dev",
        "InstanceGroups": [{"InstanceGroupName": "controller", "ImageReleaseVersion": "1.3.0"}],
        "DeploymentConfig": {
            "RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "CAPACITY_PERCENTAGE", "Value": 25}},
            "WaitIntervalInSeconds": 60,
            "AutoRollbackConfiguration": [{"AlarmName": "gpu-errors"}],
        },
    }
    assert "root volumes are wiped" in result.stderr and "mysqldump" in result.stderr
    assert result.output.splitlines()[-3:] == [
        "controller: accepted: Succeeded 1.3.0",
        "login: accepted: Succeeded 1.3.0",
        "gpu: accepted: Succeeded 1.3.0",
    ]
    again = run(made, "--release", "1.3.0", "--json")
    assert again.exit_code == 0 and len(cluster.asked) == 3
    assert {outcome["result"] for outcome in json.loads(again.stdout)["outcomes"]} == {"already"}


@pytest.mark.parametrize("ending", ["Failed", "RollbackComplete"])
def test_a_failed_group_ends_the_run(run: Callable[..., Any], service: Any, ending: str) -> None:
    made, cluster = service
    cluster.failing["login"] = ending
    result = run(made, "--yes")
    assert result.exit_code == 1 and asked(cluster) == ["controller", "login"]
    assert result.output.splitlines()[-3:] == [
        "controller: accepted: Succeeded 1.3.0",
        f"login: failed: {ending}; run `ultracluster doctor` for the cause",
        "gpu: refused: not updated, because login failed",
    ]


def test_a_lost_answer_is_not_known(run: Callable[..., Any]) -> None:
    aws_account = account()
    cluster = HyperPod(
        aws_account, InstanceGroups=[old("controller", 1, "Controller"), old("gpu", 8, "Compute")]
    )
    cluster.raising["UpdateClusterSoftware"] = ReadTimeoutError(endpoint_url="https://api.sagemaker")
    result = run(aws_account, "--yes")
    assert result.exit_code == 3 and "controller: unknown: " in result.output
    assert "gpu: refused: not updated, because it is not known whether controller is" in result.output


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (refusal("ConflictException", "Cluster is Updating"), "something else is changing the same thing"),
        (refusal("ThrottlingException"), "is being throttled"),
        (refusal("AccessDeniedException"), "access denied: UpdateClusterSoftware"),
    ],
)
def test_a_refused_request_is_a_row(run: Callable[..., Any], error: Exception, line: str) -> None:
    aws_account = account()
    cluster = HyperPod(
        aws_account, InstanceGroups=[old("controller", 1, "Controller"), old("gpu", 8, "Compute")]
    )
    cluster.raising["UpdateClusterSoftware"] = error
    result = run(aws_account, "--yes")
    assert result.exit_code == 1 and line in result.output and "Traceback" not in result.output
    assert "gpu: refused: not updated, because controller failed" in result.output


@pytest.mark.parametrize(
    ("entry", "wanted", "result", "why"),
    [
        ({}, {}, "would", "1.2.0 -> the newest image"),
        ({"ImageVersionStatus": "UpToDate"}, {}, "already", "runs the newest image 1.2.0"),
        ({"ImageVersionStatus": "UpToDate"}, {"force": True}, "would", "1.2.0"),
        ({"ImageVersionStatus": "EndOfLife"}, {}, "would", "1.2.0"),
        ({}, {"release": "1.2.0"}, "already", "runs 1.2.0"),
        ({"SoftwareUpdateStatus": "InProgress"}, {}, "already", "under way"),
        ({"Status": "Updating", "MinCount": 8}, {}, "refused", "towards its minimum count"),
        ({}, {"custom": {"gpu"}}, "refused", "name the next one with --image"),
        (
            {"CurrentImageId": "ami-0123456789abcdef0", "CurrentImageReleaseVersion": None},
            {"custom": {"gpu"}, "image": "default"},
            "would",
            "ami-0123456789abcdef0 -> default",
        ),
        ({"CurrentImageId": "ami-0123456789abcdef0"}, {"image": "ami-0123456789abcdef0"}, "already", "runs"),
    ],
)
def test_what_is_updated(entry: dict[str, Any], wanted: dict[str, Any], result: str, why: str) -> None:
    aws_account = account()
    one = {key: value for key, value in old("gpu", 8, "Compute", **entry).items() if value is not None}
    HyperPod(aws_account, InstanceGroups=[one])
    cluster = read_cluster(aws_account, "dev")
    outcome = software_update.judge(cluster, [], **wanted)[0]
    assert outcome.result == result and why in outcome.why


def test_a_cluster_that_changes_is_left_alone(run: Callable[..., Any]) -> None:
    aws_account = account()
    cluster = HyperPod(aws_account, ClusterStatus="Updating")
    result = run(aws_account, "--yes")
    assert result.exit_code == 1 and "updated when it is InService" in result.output and not cluster.asked


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (["--group", "gpus", "--yes"], 1, "no such group; there are controller, gpu"),
        (["--batch-count", "1", "--batch-percent", "5"], 2, "either --batch-count or --batch-percent"),
        (["--release", "newest"], 2, "three numbers, as 1.3.0"),
        (["--image", "ubuntu"], 2, "pass the id of an AMI"),
        (["--release", "1.3.0", "--image", "default"], 2, "either --release or --image"),
        ([*(["--rollback-alarm", "x"] * 11)], 2, "at most 10"),
        (["--dry-run"], 0, "gpu: would"),
        ([], 2, "Not confirmed: nothing changed"),
    ],
)
def test_nothing_is_asked(run: Callable[..., Any], words: list[str], code: int, line: str) -> None:
    aws_account = account()
    cluster = HyperPod(aws_account)
    result = run(aws_account, *words)
    assert result.exit_code == code and line in result.output and not cluster.asked


def test_an_update_that_takes_too_long_goes_on_without_us(run: Callable[..., Any], service: Any) -> None:
    made, cluster = service
    cluster.failing["controller"] = "InProgress"
    result = run(made, "--yes", "--timeout", "10")
    assert result.exit_code == 3 and "still InProgress; the update is still running in AWS" in result.output
    assert asked(cluster) == ["controller"]


def test_the_environment_file_knows_the_roles_of_older_clusters(run: Callable[..., Any]) -> None:
    aws_account = account()
    HyperPod(
        aws_account, InstanceGroups=[old("gpu", 8, None), old("login", 1, None), old("controller", 1, None)]
    )
    result = run(aws_account, "--dry-run")
    assert [line.split(":")[0] for line in result.output.splitlines()] == ["controller", "login", "gpu"]
