"""Runs ParallelCluster's schema and all of its validators, offline; `harness.py` calls it as a subprocess.

It is the only file here that runs in ParallelCluster's own environment (requirements-parallelcluster.lock),
which has nothing of ours. Reads from stdin a list of cases, each with `name`, `cluster_name`, `region`,
`configuration` and `facts`; writes for each its `findings` and the `calls` that nothing answered.

The validators ask AWS through boto3's default session. A handler that gives a response before the call is
signed ends the call there; what it says comes from `facts`, which are parts of real answers by id.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import fnmatch
import gc
import io
import json
import multiprocessing
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import boto3
from botocore.model import OperationModel
from botocore.validate import ParamValidator

os.environ |= {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "offline",
    "AWS_SECRET_ACCESS_KEY": "offline",
    "AWS_EC2_METADATA_DISABLED": "true",
}

from marshmallow import ValidationError
from pcluster.schemas.cluster_schema import ClusterSchema
from pcluster.validators.common import ValidatorContext

Answer = dict[str, Any]


class UnansweredError(Exception):
    """The validators asked AWS something that `facts` and `ANSWERS` do not know."""


class MissingError(Exception):
    """AWS would say that there is no such thing."""

    def __init__(self, code: str, thing: str) -> None:
        super().__init__(f"{thing} does not exist")
        self.code = code


class Facts:
    """What exists in the account, by kind and id."""

    def __init__(self, facts: dict[str, dict[str, Any]]) -> None:
        self.facts = facts

    def of(self, kind: str, ids: Iterable[str], code: str) -> list[Any]:
        """The parts of an answer, or the error that AWS gives for an id that it does not know."""
        known = self.facts.get(kind, {})
        for one in ids:
            if one not in known:
                raise MissingError(code, one)
        return [known[one] for one in ids]

    def all(self, kind: str) -> list[Any]:
        return list(self.facts.get(kind, {}).values())


def describe_images(facts: Facts, asked: Answer) -> Answer:
    if "ImageIds" in asked:
        return {"Images": facts.of("images", asked["ImageIds"], "InvalidAMIID.NotFound")}
    filters = {one["Name"]: one["Values"] for one in asked["Filters"]}
    if set(filters) != {"name", "state"}:
        raise UnansweredError(f"ec2.DescribeImages with filters {filters}")
    owners = asked["Owners"]
    return {
        "Images": [
            image
            for image in facts.all("images")
            if image.get("ImageOwnerAlias") in owners
            and image["State"] in filters["state"]
            and any(fnmatch.fnmatchcase(image["Name"], pattern) for pattern in filters["name"])
        ]
    }


def describe_offerings(facts: Facts, asked: Answer) -> Answer:
    """Offered are the types that are known: whether a zone has them is the rules' own subject."""
    filters = {one["Name"]: one["Values"] for one in asked.get("Filters", [])}
    if not set(filters) <= {"location", "instance-type"}:
        raise UnansweredError(f"ec2.DescribeInstanceTypeOfferings with filters {filters}")
    names = [one["InstanceType"] for one in facts.all("instance_types")]
    return {"InstanceTypeOfferings": [{"InstanceType": name} for name in names]}


def describe_types(facts: Facts, asked: Answer) -> Answer:
    if "InstanceTypes" not in asked:
        raise UnansweredError(f"ec2.DescribeInstanceTypes with {asked}")
    return {"InstanceTypes": facts.of("instance_types", asked["InstanceTypes"], "InvalidInstanceType")}


def vpc_attribute(facts: Facts, asked: Answer) -> Answer:
    (vpc,) = facts.of("vpcs", [asked["VpcId"]], "InvalidVpcID.NotFound")
    attribute = asked["Attribute"]
    key = attribute[0].upper() + attribute[1:]
    return {"VpcId": asked["VpcId"], key: {"Value": vpc[attribute]}}


def describe_blocks(facts: Facts, asked: Answer) -> Answer:
    ids = asked.get("CapacityBlockIds")
    blocks = facts.of("blocks", ids, "InvalidCapacityBlockId") if ids else facts.all("blocks")
    return {"CapacityBlockStatuses": blocks}


def run_instances(facts: Facts, asked: Answer) -> Answer:
    """What EC2 itself refuses in a dry run, of the little that can be known here."""
    if not asked.get("DryRun"):
        raise UnansweredError("ec2.RunInstances that is no dry run")
    facts.of("instance_types", [asked["InstanceType"]], "InvalidInstanceType")
    facts.of("images", [asked["ImageId"]], "InvalidAMIID.NotFound")
    for interface in asked.get("NetworkInterfaces", [asked]):
        facts.of("subnets", [interface["SubnetId"]], "InvalidSubnetID.NotFound")
    raise MissingError("DryRunOperation", "an error of a dry run that would succeed")


def describe_volumes(facts: Facts, asked: Answer) -> Answer:
    return {"Volumes": facts.of("volumes", asked["VolumeIds"], "VolumeNotFound")}


def get_policy(facts: Facts, asked: Answer) -> Answer:
    (policy,) = facts.of("policies", [asked["PolicyArn"]], "NoSuchEntity")
    return {"Policy": policy}


def get_role(facts: Facts, asked: Answer) -> Answer:
    (role,) = facts.of("roles", [asked["RoleName"]], "NoSuchEntity")
    return {"Role": role}


def get_instance_profile(facts: Facts, asked: Answer) -> Answer:
    (profile,) = facts.of("instance_profiles", [asked["InstanceProfileName"]], "NoSuchEntity")
    return {"InstanceProfile": profile}


def head_object(facts: Facts, asked: Answer) -> Answer:
    facts.of("objects", [f"s3://{asked['Bucket']}/{asked['Key']}"], "404")
    return {"ContentLength": 1}


def head_bucket(facts: Facts, asked: Answer) -> Answer:
    facts.of("buckets", [asked["Bucket"]], "404")
    return {}


def describe_secret(facts: Facts, asked: Answer) -> Answer:
    (secret,) = facts.of("secrets", [asked["SecretId"]], "ResourceNotFoundExceptionSecrets")
    return secret


def group_configuration(facts: Facts, asked: Answer) -> Answer:
    (group,) = facts.of("resource_groups", [asked["Group"]], "NotFoundException")
    return {"GroupConfiguration": {"Configuration": group["Configuration"]}}


def group_resources(facts: Facts, asked: Answer) -> Answer:
    (group,) = facts.of("resource_groups", [asked["Group"]], "NotFoundException")
    return {"Resources": group["Resources"]}


def listed(kind: str, ids: str, key: str, code: str) -> Callable[[Facts, Answer], Answer]:
    """An operation that describes things by id."""

    def answer(facts: Facts, asked: Answer) -> Answer:
        if ids not in asked:
            raise UnansweredError(f"all {kind} instead of some: {asked}")
        return {key: facts.of(kind, asked[ids], code)}

    return answer


ANSWERS: dict[str, Callable[[Facts, Answer], Answer]] = {
    "ec2.DescribeInstanceTypes": describe_types,
    "ec2.DescribeInstanceTypeOfferings": describe_offerings,
    "ec2.DescribeImages": describe_images,
    "ec2.DescribeVpcAttribute": vpc_attribute,
    "ec2.DescribeCapacityBlockStatus": describe_blocks,
    "ec2.RunInstances": run_instances,
    "ec2.DescribeSubnets": listed("subnets", "SubnetIds", "Subnets", "InvalidSubnetID.NotFound"),
    "ec2.DescribeSecurityGroups": listed(
        "security_groups", "GroupIds", "SecurityGroups", "InvalidGroup.NotFound"
    ),
    "ec2.DescribeNetworkInterfaces": listed(
        "interfaces", "NetworkInterfaceIds", "NetworkInterfaces", "InvalidNetworkInterfaceID.NotFound"
    ),
    "ec2.DescribePlacementGroups": listed(
        "placement_groups", "GroupNames", "PlacementGroups", "InvalidPlacementGroup.Unknown"
    ),
    "ec2.DescribeCapacityReservations": listed(
        "reservations",
        "CapacityReservationIds",
        "CapacityReservations",
        "InvalidCapacityReservationId.NotFound",
    ),
    "fsx.DescribeFileSystems": listed("file_systems", "FileSystemIds", "FileSystems", "FileSystemNotFound"),
    "fsx.DescribeVolumes": describe_volumes,
    "iam.GetInstanceProfile": get_instance_profile,
    "iam.GetPolicy": get_policy,
    "iam.GetRole": get_role,
    "resource-groups.GetGroupConfiguration": group_configuration,
    "resource-groups.ListGroupResources": group_resources,
    "s3.HeadBucket": head_bucket,
    "s3.HeadObject": head_object,
    "secretsmanager.DescribeSecret": describe_secret,
}


class Response:
    """As much of an HTTP response as botocore and ParallelCluster look at."""

    headers: dict[str, str] = {}
    content = b""
    raw = None

    def __init__(self, status: int) -> None:
        self.status_code = status


class Account:
    """Answers every call of the default session from the facts of the case in hand."""

    def __init__(self) -> None:
        self.facts = Facts({})
        self.unanswered: list[str] = []
        boto3.setup_default_session()
        events = boto3.DEFAULT_SESSION.events  # pyright: ignore[reportOptionalMemberAccess]
        events.register("provide-client-params.*.*", self._keep)
        events.register("before-call.*.*", self._reply)

    def _keep(self, params: Answer, context: Answer, **_: Any) -> None:
        context["asked"] = params

    def _reply(self, model: OperationModel, context: Answer, **_: Any) -> tuple[Response, Answer]:
        name = f"{model.service_model.service_name}.{model.name}"
        asked = context["asked"]
        try:
            if name not in ANSWERS:
                raise UnansweredError(f"{name} with {asked}")
            answer = ANSWERS[name](self.facts, asked)
            self._is_well_formed(name, model, answer)
        except MissingError as error:
            status = {"Code": error.code, "Message": str(error)}
            return Response(400), {"Error": status, "ResponseMetadata": {"HTTPStatusCode": 400}}
        except UnansweredError as error:
            self.unanswered.append(str(error))
            raise
        return Response(200), {**answer, "ResponseMetadata": {"HTTPStatusCode": 200}}

    def _is_well_formed(self, name: str, model: OperationModel, answer: Answer) -> None:
        """Facts must have the form of the real answer, or the validators would look past them."""
        report = ParamValidator().validate(answer, model.output_shape)
        if report.has_errors():
            raise UnansweredError(f"{name}: not of the answer's form: {report.generate_report()}")


ACCOUNT = Account()


class NoInternet:
    """Scripts at https:// addresses and the list of Regions are fetched past boto3."""

    def open(self, url: Any, *_: Any, **__: Any) -> io.BytesIO:
        if str(url).endswith("/supported-regions"):  # then the list in the package is read
            raise urllib.error.URLError("offline")
        raise UnansweredError(f"download of {url}")


def validate(case: Answer) -> Answer:
    """Findings of the schema, or else of all validators.

    Runs in a process of its own: the package remembers what it has looked up, and would take one case's
    answers for the next.
    """
    asyncio.set_event_loop(asyncio.new_event_loop())
    os.environ["AWS_DEFAULT_REGION"] = case["region"]
    ACCOUNT.facts = Facts(case["facts"])
    try:
        cluster = ClusterSchema(cluster_name=case["cluster_name"]).load(case["configuration"])
    except ValidationError as error:
        findings = [finding("ERROR", "Schema", json.dumps(error.messages))]
    else:
        try:
            results = cluster.validate(context=ValidatorContext())
            findings = [finding(str(one.level), one.validator_type, one.message) for one in results]
        except Exception as error:  # what is looked up while validators are registered is not caught there
            findings = [finding("ERROR", type(error).__name__, str(error))]
    return {"name": case["name"], "findings": findings, "unanswered": ACCOUNT.unanswered}


def finding(level: str, validator: str, message: str) -> dict[str, str]:
    return {"level": level, "validator": validator, "message": message}


def main() -> None:
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the answer is all on stdout: what packages print goes to stderr
    urllib.request.install_opener(NoInternet())  # pyright: ignore[reportArgumentType]
    cases = json.load(sys.stdin)
    new_client = cache(boto3.client)  # to make clients would be half of the work of a case
    boto3.client = lambda name, **_: new_client(name, region_name=os.environ["AWS_DEFAULT_REGION"])  # pyright: ignore[reportAttributeAccessIssue]
    for region in sorted({case["region"] for case in cases}):
        os.environ["AWS_DEFAULT_REGION"] = region
        for service in sorted({name.partition(".")[0] for name in ANSWERS}):
            _ = boto3.client(service).exceptions  # reads the service's model, once for all cases
    # a session is made at every call, only to ask for the Region
    boto3.session.Session = lambda: boto3.DEFAULT_SESSION  # pyright: ignore[reportAttributeAccessIssue]
    gc.freeze()  # what is collected in a child would be copied for it first
    with multiprocessing.get_context("fork").Pool(maxtasksperchild=1) as pool:
        json.dump(pool.map(validate, cases, chunksize=1), answer)
    answer.close()


if __name__ == "__main__":
    main()
