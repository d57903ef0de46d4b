"""A group that HyperPod has set to 0 gets the nodes of the file back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.validate import validate_parameters
from hyperpod_service import BORN, HyperPod, account, group, node

from ultracluster.account.aws import Account
from ultracluster.account.nodes import hyperpod_restore

# A group that HyperPod has set to 0


SCRIPTS = "s3://example-scripts/dev/0123456789ab"


def emptied(**more: Any) -> dict[str, Any]:
    """DescribeCluster's entry of a group, with everything that it may tell."""
    return group(
        "gpu",
        0,
        MinCount=0,
        InstanceType="ml.g6e.12xlarge",
        ExecutionRole="arn:aws:iam::111122223333:role/nodes",
        LifeCycleConfig={"SourceS3Uri": SCRIPTS, "OnInitComplete": "a.sh"},
        InstanceStorageConfigs=[{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}],
        NetworkInterface={"InterfaceType": "efa-only"},
        CurrentImageId="ami-0123456789abcdef0",
        CurrentImageReleaseVersion="2.1.0",
        TrainingPlanStatus="Active",
        **more,
    )


def with_roles(*groups: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"ExecutionRole": "arn:aws:iam::111122223333:role/nodes", **entry} for entry in groups]


def test_restore_brings_one_group_back_and_leaves_the_others(run: Callable[..., Any]) -> None:
    aws_account = account()
    others = (group("controller", 1, "Controller"), group("login", 1, "Login"), group("more", 3, MinCount=2))
    service = HyperPod(aws_account, InstanceGroups=with_roles(*others, emptied()))
    result = run(aws_account, "add", "--restore", "--group", "gpu", "--yes", "--no-wait")

    assert result.exit_code == 0, result.output
    ((operation, asked),) = service.asked
    sent = {entry["InstanceGroupName"]: entry for entry in asked["InstanceGroups"]}
    assert operation == "update-cluster" and set(sent) == {"controller", "login", "more", "gpu"}
    assert sent["gpu"] == {
        "InstanceGroupName": "gpu",
        "InstanceCount": 2,
        "InstanceType": "ml.g6e.12xlarge",
        "ExecutionRole": "arn:aws:iam::111122223333:role/nodes",
        "LifeCycleConfig": {
            "SourceS3Uri": SCRIPTS,
            "OnInitComplete": "a.sh",
        },
        "InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}],
        "NetworkInterface": {"InterfaceType": "efa-only"},
        "SlurmConfig": {"NodeType": "Compute"},
    }
    assert (sent["more"]["InstanceCount"], sent["more"]["MinInstanceCount"]) == (3, 2)
    assert sent["login"]["InstanceCount"] == 1 and "MinInstanceCount" not in sent["login"]
    again = run(aws_account, "add", "--restore", "--group", "gpu", "--yes")
    assert again.exit_code == 0 and "already" in again.output and len(service.asked) == 1


def test_restore_waits_for_the_nodes(run: Callable[..., Any]) -> None:
    aws_account = account()
    service = HyperPod(
        aws_account, InstanceGroups=with_roles(group("controller", 1, "Controller"), emptied())
    )
    service.nodes = [node(1, "controller")]

    def come_up() -> None:
        service.nodes += [node(number) for number in (16, 17)]

    service.later = [lambda: None, lambda: None, come_up]
    result = run(aws_account, "add", "--restore", "--group", "gpu", "--yes")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("groups", "name", "line"),
    [
        ([emptied()], "gpus", "the environment file has no group gpus; it has controller, login, gpu"),
        ([group("controller", 1, "Controller")], "gpu", "dev has no group gpu yet: deploy makes it"),
        ([{**emptied(), "TargetCount": 5}], "gpu", "this command ends no node"),
    ],
)
def test_restore_is_refused(
    run: Callable[..., Any], groups: list[dict[str, Any]], name: str, line: str
) -> None:
    aws_account = account()
    service = HyperPod(aws_account, InstanceGroups=with_roles(*groups))
    result = run(aws_account, "add", "--restore", "--group", name, "--yes")
    assert result.exit_code == 1 and line in result.output and not service.asked


def test_restore_asks_first_and_can_be_tried(run: Callable[..., Any]) -> None:
    aws_account = account()
    service = HyperPod(aws_account, InstanceGroups=with_roles(emptied()))

    tried = run(aws_account, "add", "--restore", "--group", "gpu", "--dry-run")
    refused = run(aws_account, "add", "--restore", "--group", "gpu", answers="n\n")
    busy = run(hyperpod_account(ClusterStatus="Updating"), "add", "--restore", "--group", "gpu", "--yes")

    assert tried.exit_code == 0 and "from a target of 0 to 2 nodes" in tried.output
    assert refused.exit_code == 2 and not service.asked
    assert busy.exit_code == 1 and "works when it is InService again" in busy.output


def hyperpod_account(**cluster: Any) -> Account:
    aws_account = account()
    HyperPod(aws_account, InstanceGroups=with_roles(emptied()), **cluster)
    return aws_account


def test_a_group_is_sent_in_the_form_that_the_update_takes() -> None:
    """The SDK's own check of both: what DescribeCluster gives in another form is turned round."""
    described = emptied(
        InstanceRequirements={
            "CurrentInstanceTypes": ["ml.p4d.24xlarge"],
            "DesiredInstanceTypes": ["ml.p5.48xlarge"],
        },
        KubernetesConfig={"CurrentLabels": {"a": "b"}, "DesiredLabels": {"a": "c"}, "DesiredTaints": []},
        AutoPatchConfig={"PatchingStrategy": "WhenIdle", "DesiredPatchSchedule": {"NextPatchDate": BORN}},
        ThreadsPerCore=1,
        Status="InService",
    ) | {"MinCount": 3}
    sent = hyperpod_restore.specification(described)
    model = account().client("sagemaker").meta.service_model

    validate_parameters(sent, model.shape_for("ClusterInstanceGroupSpecification"))
    assert sent["InstanceRequirements"] == {"InstanceTypes": ["ml.p5.48xlarge"]}
    assert sent["KubernetesConfig"] == {"Labels": {"a": "c"}}
    assert sent["MinInstanceCount"] == 3
    # every field of the update but counts and image comes from what is described
    fields = set(model.shape_for("ClusterInstanceGroupSpecification").members)
    left = fields - {"InstanceCount", "MinInstanceCount", "ImageId", "ImageReleaseVersion"}
    assert left == hyperpod_restore._AS_IT_IS | hyperpod_restore._DETAILED.keys()
