"""Volumes of Mountpoint for S3 in templates: one driver, one role, a claim in each namespace."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded
from templates import Template, templates_alone

VOLUMES: dict[str, Any] = {
    "orchestrator.mountpoint_s3": {
        "datasets": {"bucket": "example-datasets"},
        "runs": {"bucket": "example-runs", "prefix": "a/b/", "write": True},
    },
    "teams": {"research": {"quota": 1, "uid": 2001}},
}
MODELS = {"orchestrator.inference": {"model_buckets": ["models"]}}
DRIVER = "aws-mountpoint-s3-csi-driver"
PLACES = [
    ("eks-p5en", "system", False),
    ("hyperpod-eks-p5", "workloads", False),
    ("hyperpod-eks-p5", "workloads", True),
]


@cache
def stacks(base: str, serves: bool) -> dict[str, Template]:
    changes = VOLUMES | (MODELS if serves else {})
    return templates_alone(loaded(changed(environment_data(base), changes)).environment)


def resources(base: str, serves: bool, kind: str) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (stack, name): one["Properties"]
        for stack, template in stacks(base, serves).items()
        for name, one in template["Resources"].items()
        if one["Type"] == kind
    }


def objects(base: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Volumes and claims of S3, by kind and name."""
    found = {}
    for one in resources(base, False, "Custom::AWSCDK-EKS-KubernetesResource").values():
        if "s3.csi.aws.com" in str(one["Manifest"]):
            for each in json.loads(one["Manifest"]):
                found[
                    each["kind"], each["metadata"]["name"] + "/" + each["metadata"].get("namespace", "")
                ] = each
    return found


@pytest.mark.parametrize(("base", "stack", "serves"), PLACES)
def test_one_driver_has_one_role_by_pod_identity(base: str, stack: str, serves: bool) -> None:
    found = {
        key: one
        for key, one in resources(base, serves, "AWS::EKS::Addon").items()
        if one["AddonName"] == DRIVER
    }
    (((where, _), driver),) = found.items()
    assert where.endswith(stack)
    assert driver["AddonVersion"] == "v2.7.0-eksbuild.1"
    assert "ServiceAccountRoleArn" not in driver
    (identity,) = driver["PodIdentityAssociations"]
    assert identity["ServiceAccount"] == "s3-csi-driver-sa"
    assert json.loads(driver["ConfigurationValues"]) == {"node": {"tolerateAllTaints": True}}


def test_the_driver_stays_where_it_is_when_the_inference_operator_comes() -> None:
    names = [
        {
            name
            for name, one in resources("hyperpod-eks-p5", serves, "AWS::EKS::Addon").items()
            if one["AddonName"] == DRIVER
        }
        for serves in (False, True)
    ]
    assert names[0] == names[1] and len(names[0]) == 1


@pytest.mark.parametrize(("base", "stack", "serves"), PLACES)
def test_the_role_reaches_these_folders_and_no_others(base: str, stack: str, serves: bool) -> None:
    (policy,) = [
        one["PolicyDocument"]["Statement"]
        for (_, name), one in resources(base, serves, "AWS::IAM::Policy").items()
        if "S3CsiDriverRole" in name
    ]
    said = {}
    for one in policy:
        resource = one["Resource"]
        resource = resource if isinstance(resource, str) else "".join(map(str, resource["Fn::Join"][1]))
        said[one["Sid"]] = (one["Action"], resource.rpartition(":::")[2], one.get("Condition"))
    within = {"StringLike": {"s3:prefix": ["a/b", "a/b/*"]}}
    assert said == {
        "ListBucket1": ("s3:ListBucket", "example-datasets", None),
        "ReadFiles1": ("s3:GetObject", "example-datasets/*", None),
        "ListBucket2": ("s3:ListBucket", "example-runs", within),
        "ReadFiles2": ("s3:GetObject", "example-runs/a/b/*", None),
        "WriteFiles2": (
            ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:PutObject"],
            "example-runs/a/b/*",
            None,
        ),
        **(
            {
                "ListBucket3": ("s3:ListBucket", "models", None),
                "ReadFiles3": ("s3:GetObject", "models/*", None),
            }
            if serves
            else {}
        ),
    }


@pytest.mark.parametrize("base", ["eks-p5en", "hyperpod-eks-p5"])
def test_each_namespace_of_jobs_has_a_claim_of_each_volume(base: str) -> None:
    found = objects(base)
    assert {f"s3-{one}/{space}" for one in ("datasets", "runs") for space in ("default", "research")} == {
        name for kind, name in found if kind == "PersistentVolumeClaim"
    }
    region = environment_data(base)["region"]
    options = {
        name: one["spec"]["mountOptions"] for (_, name), one in found.items() if "mountOptions" in one["spec"]
    }
    both = ["allow-other", f"region {region}"]
    write = [*both, "prefix a/b/"]
    team = ["uid=2001", "gid=2001"]
    assert options == {
        "s3-datasets-default/": [*both, "read-only"],
        "s3-datasets-research/": [*both, *team, "read-only"],
        "s3-runs-default/": [*write, "allow-delete", "allow-overwrite", "dir-mode=0777", "file-mode=0666"],
        "s3-runs-research/": [*write, *team, "allow-delete", "allow-overwrite"],
    }
    handles = [
        one["spec"]["csi"]["volumeHandle"] for (kind, _), one in found.items() if kind == "PersistentVolume"
    ]
    assert len(set(handles)) == len(handles) == 4
