"""What each service says of one of its clusters, beside the cluster itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from ultracluster.account.aws import AWS_ERRORS, Account, explain, is_credentials
from ultracluster.config.base import s3_place
from ultracluster.config.plain_text import one_line

MOST_BYTES = 1024 * 1024
"""Of a file in S3 that is read."""
PARAMETERS = "provisioning_parameters.json"


class Notes:
    """What could not be read, and why; nothing else depends on it."""

    def __init__(self) -> None:
        self.unread: dict[str, str] = {}

    def attempt(self, what: str, ask: Callable[[], Any], instead: Any) -> Any:
        """The answer, or this instead and a note.

        Raises:
            Exception: the credentials themselves cannot be used.
        """
        try:
            return ask()
        except AWS_ERRORS as error:
            if is_credentials(error):
                raise
            self.unread[what] = explain(error)
            return instead


def below(one: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A structure of an answer; empty where there is none."""
    value = one.get(key)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def hyperpod(account: Account, answer: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """DescribeCluster's answer with the cluster's tags."""
    sagemaker = account.client("sagemaker")

    def tags() -> list[Any]:
        pages = sagemaker.get_paginator("list_tags").paginate(ResourceArn=answer["ClusterArn"])
        return [tag for page in pages for tag in page["Tags"]]

    return {**answer, "Tags": notes.attempt("tags", tags, [])}


def lifecycle_parameters(account: Account, answer: dict[str, Any], notes: Notes) -> dict[str, Any] | None:
    """provisioning_parameters.json beside the scripts of a group, where the nodes' scripts find it."""
    for place in _sources(answer):
        bucket, prefix = s3_place(place)
        key = f"{prefix}/{PARAMETERS}" if prefix else PARAMETERS
        text = notes.attempt(f"s3://{bucket}/{key}", lambda b=bucket, k=key: _object(account, b, k), None)
        if text is None:
            continue
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            notes.unread[f"s3://{bucket}/{key}"] = "it is not JSON"
            continue
        if isinstance(document, dict):
            return cast("dict[str, Any]", document)
        notes.unread[f"s3://{bucket}/{key}"] = "it holds no keys and values"
    return None


def parallelcluster(account: Account, stack: dict[str, Any]) -> tuple[str, str]:
    """Address and text of the configuration that the cluster was last made or updated with.

    ParallelCluster 3 keeps it in the bucket and folder that parameters of the stack name, with versions
    (pcluster/models/cluster_resources.py and s3_bucket.py of 3.16.1).
    """
    parameters = {
        parameter["ParameterKey"]: parameter.get("ParameterValue", "")
        for parameter in stack.get("Parameters", [])
    }
    bucket, folder = parameters.get("ResourcesS3Bucket", ""), parameters.get("ArtifactS3RootDirectory", "")
    key = f"{folder.strip('/')}/configs/cluster-config.yaml"
    version = parameters.get("ConfigVersion") or ""
    if not bucket or not folder:
        return "", ""
    return f"s3://{bucket}/{key}", _object(account, bucket, key, version)


def pcs(account: Account, cluster: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """The cluster with its queues and node groups, and their launch templates."""
    client, name = account.client("pcs"), cluster["id"]

    def queues() -> Iterator[dict[str, Any]]:
        for page in client.get_paginator("list_queues").paginate(clusterIdentifier=name):
            for queue in page["queues"]:
                yield client.get_queue(clusterIdentifier=name, queueIdentifier=queue["id"])["queue"]

    def groups() -> Iterator[dict[str, Any]]:
        for page in client.get_paginator("list_compute_node_groups").paginate(clusterIdentifier=name):
            for one in page["computeNodeGroups"]:
                answer = client.get_compute_node_group(
                    clusterIdentifier=name, computeNodeGroupIdentifier=one["id"]
                )
                yield answer["computeNodeGroup"]

    found = list(groups())
    for group in found:
        group["launchTemplate"] = _template(account, below(group, "customLaunchTemplate"), notes)
    tags = notes.attempt(
        "tags", lambda: client.list_tags_for_resource(resourceArn=cluster["arn"])["tags"], {}
    )
    return {"cluster": cluster, "queues": list(queues()), "groups": found, "tags": tags}


def eks(account: Account, cluster: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """The cluster with its node groups, launch templates, add-ons and access entries."""
    client, name = account.client("eks"), cluster["name"]

    def pages(operation: str, key: str) -> list[Any]:
        answers = client.get_paginator(operation).paginate(clusterName=name)
        return [one for page in answers for one in page[key]]

    def addons() -> list[Any]:
        return pages("list_addons", "addons")

    def entries() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for arn in pages("list_access_entries", "accessEntries"):
            entry = client.describe_access_entry(clusterName=name, principalArn=arn)["accessEntry"]
            asked = client.get_paginator("list_associated_access_policies")
            answers = asked.paginate(clusterName=name, principalArn=arn)
            policies = [policy for page in answers for policy in page["associatedAccessPolicies"]]
            found.append({**entry, "policies": policies})
        return found

    groups: list[dict[str, Any]] = []
    for group in pages("list_nodegroups", "nodegroups"):
        one = client.describe_nodegroup(clusterName=name, nodegroupName=group)["nodegroup"]
        groups.append({**one, "launchTemplate": _template(account, below(one, "launchTemplate"), notes)})
    return {
        "cluster": cluster,
        "nodegroups": groups,
        "addons": notes.attempt("addons", addons, []),
        "accessEntries": notes.attempt("accessEntries", entries, []),
        "fargateProfiles": notes.attempt(
            "fargateProfiles", lambda: pages("list_fargate_profiles", "fargateProfileNames"), []
        ),
        "podIdentities": notes.attempt(
            "podIdentities", lambda: pages("list_pod_identity_associations", "associations"), []
        ),
    }


def _sources(answer: dict[str, Any]) -> list[str]:
    """Places of lifecycle scripts, those of the controller first."""
    found: dict[str, None] = {}
    groups: list[dict[str, Any]] = answer.get("InstanceGroups") or []
    for one in sorted(groups, key=lambda group: "control" not in str(group.get("InstanceGroupName", ""))):
        place = str(below(one, "LifeCycleConfig").get("SourceS3Uri") or "")
        if place.startswith("s3://"):
            found[place.rstrip("/")] = None
    return list(found)


def _object(account: Account, bucket: str, key: str, version: str = "") -> str:
    asked = {"Bucket": bucket, "Key": key, **({"VersionId": version} if version else {})}
    body = account.client("s3").get_object(**asked)["Body"]
    return body.read(MOST_BYTES).decode("utf-8", "replace")


def _template(account: Account, named: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """Data of one version of a launch template; empty where there is none."""
    number, version = named.get("id", ""), str(named.get("version") or "$Default")
    if not number:
        return {}

    def ask() -> dict[str, Any]:
        answer = account.client("ec2").describe_launch_template_versions(
            LaunchTemplateId=number, Versions=[version]
        )
        return answer["LaunchTemplateVersions"][0]["LaunchTemplateData"]

    try:
        return notes.attempt(f"launch template {one_line(number)}", ask, {})
    except IndexError:
        notes.unread[f"launch template {one_line(number)}"] = f"it has no version {one_line(version)}"
        return {}
