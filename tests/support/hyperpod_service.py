"""A HyperPod cluster that answers boto3: what it is asked and what it answers is held against the SDK's
own model of the API, so a field that AWS does not have fails the test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError
from botocore.loaders import Loader
from botocore.validate import validate_parameters

from ultracluster.account.aws import Account, Identity

ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
BORN = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)


def account(region: str = "us-west-2", number: str = "111122223333") -> Account:
    """An account that is known already; its clients have keys that open nothing."""
    made = Account(region)
    made._session._session.set_credentials("AKIAIOSFODNN7EXAMPLE", "example")
    made._session._session.register_component("data_loader", _MODELS)
    made._identity = Identity(number, f"arn:aws:iam::{number}:user/operator")
    return made


_MODELS = Loader(include_default_search_paths=True)
"""One for all: reading SageMaker's model takes half a second."""


def refusal(code: str, message: str = "", operation: str = "Operation") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


def answer(client: Any, operation: str, reply: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer an operation of a client by a function of its request.

    The request has passed the SDK's checks by then; the reply is checked the same way.
    """
    service = client.meta.service_model
    model = service.operation_model(operation)
    asked = threading.local()  # several threads ask at the same time

    def keep(params: dict[str, Any], **_: Any) -> None:
        asked.params = dict(params)

    def respond(**_: Any) -> tuple[Any, dict[str, Any]]:
        try:
            parsed = reply(asked.params)
        except ClientError as error:
            details = error.response.get("Error", {})
            return _Reply(400), {"Error": details, "ResponseMetadata": {"HTTPStatusCode": 400}}
        if model.output_shape:
            validate_parameters(parsed, model.output_shape)
        return _Reply(200), {**parsed, "ResponseMetadata": {"HTTPStatusCode": 200}}

    name = f"{service.service_id.hyphenize()}.{operation}"
    client.meta.events.register(f"provide-client-params.{name}", keep)
    client.meta.events.register(f"before-call.{name}", respond)


class _Reply:
    def __init__(self, status: int) -> None:
        self.status_code = status
        self.headers: dict[str, str] = {}


def node(number: int, group: str = "gpu", status: str = "Running", **more: Any) -> dict[str, Any]:
    """One entry of ListClusterNodes."""
    return {
        "InstanceGroupName": group,
        "InstanceId": f"i-{number:017x}",
        "NodeLogicalId": f"{group}-{number}",
        "InstanceType": "ml.p5.48xlarge",
        "LaunchTime": BORN,
        "InstanceStatus": {"Status": status},
        "PrivateDnsHostname": f"ip-10-1-{number // 256}-{number % 256}.us-west-2.compute.internal",
        **more,
    }


def group(name: str, count: int, role: str | None = "Compute", **more: Any) -> dict[str, Any]:
    """One group of DescribeCluster."""
    made = {
        "InstanceGroupName": name,
        "InstanceType": "ml.p5.48xlarge",
        "CurrentCount": count,
        "TargetCount": count,
        "Status": "InService",
    }
    return {**made, **({"SlurmConfig": {"NodeType": role}} if role else {}), **more}


class HyperPod:
    """A cluster with a controller and eight GPU nodes, unless told otherwise.

    Attributes:
        asked: every request that changes something: operation and parameters.
        later: run before each further look at the cluster; one entry is used up each time.
    """

    def __init__(self, account: Account, **cluster: Any) -> None:
        self.cluster = {
            "ClusterArn": ARN,
            "ClusterName": "dev",
            "ClusterStatus": "InService",
            "NodeProvisioningMode": "Continuous",
            "InstanceGroups": [group("controller", 1, "Controller"), group("gpu", 8)],
            "Orchestrator": {"Slurm": {}},
            **cluster,
        }
        self.nodes = [node(1, "controller"), *(node(number) for number in range(16, 24))]
        self.events: list[dict[str, Any]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.failing: dict[str, str] = {}
        self.raising: dict[str, Exception] = {}
        self.later: list[Callable[[], None]] = []
        self.on_update: Callable[[dict[str, Any]], None] = lambda asked: None
        self.page = 100
        self.looks = 0
        self.client = account.client("sagemaker")
        for operation, reply in (
            ("DescribeCluster", self._describe),
            ("ListClusterNodes", self._list),
            ("DescribeClusterNode", self._describe_node),
            ("ListClusterEvents", self._list_events),
            ("DescribeClusterEvent", self._describe_event),
            ("BatchRebootClusterNodes", self._batch("reboot", "ErrorCode", "InvalidInstanceStatus")),
            ("BatchReplaceClusterNodes", self._batch("replace", "ErrorCode", "InvalidInstanceStatus")),
            ("BatchDeleteClusterNodes", self._batch("delete", "Code", "InvalidNodeStatus")),
            ("BatchAddClusterNodes", self._add),
            ("StartClusterHealthCheck", self._check),
            ("UpdateClusterSoftware", self._update),
            ("UpdateCluster", self._update_groups),
        ):
            for client in (self.client, account.client("sagemaker", once=True)):
                answer(client, operation, self._guard(operation, reply))

    def status(self, number: int, status: str, message: str = "") -> None:
        """Put a node into a status."""
        for entry in self.nodes:
            if entry["InstanceId"] == f"i-{number:017x}":
                entry["InstanceStatus"] = {"Status": status, **({"Message": message} if message else {})}

    def _guard(self, operation: str, reply: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(asked: dict[str, Any]) -> dict[str, Any]:
            if operation in self.raising:
                raise self.raising[operation]
            return reply(asked)

        return guarded

    def _describe(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["ClusterName"] != self.cluster["ClusterName"]:
            raise refusal("ResourceNotFound", "Cluster not found")
        self.looks += 1
        if self.looks > 1 and self.later:
            self.later.pop(0)()
        return dict(self.cluster)

    def _list(self, asked: dict[str, Any]) -> dict[str, Any]:
        start = int(asked.get("NextToken", "0"))
        end = start + min(self.page, asked.get("MaxResults", 100))
        more = {"NextToken": str(end)} if end < len(self.nodes) else {}
        return {"ClusterNodeSummaries": self.nodes[start:end], **more}

    def _describe_node(self, asked: dict[str, Any]) -> dict[str, Any]:
        for entry in self.nodes:
            if asked.get("NodeId", entry["InstanceId"]) == entry["InstanceId"] and (
                asked.get("NodeLogicalId", entry["NodeLogicalId"]) == entry["NodeLogicalId"]
            ):
                return {"NodeDetails": {**entry, "PrivatePrimaryIp": "10.1.0.16"}}
        raise refusal("ResourceNotFound", "no such node")

    def _list_events(self, asked: dict[str, Any]) -> dict[str, Any]:
        wanted = asked.get("NodeId")
        return {"Events": [event for event in self.events if wanted in (None, event.get("InstanceId"))]}

    def _describe_event(self, asked: dict[str, Any]) -> dict[str, Any]:
        event = next(one for one in self.events if one["EventId"] == asked["EventId"])
        metadata = {"Instance": {"FailureMessage": "EFA health check did not succeed"}}
        return {"EventDetails": {**event, "EventDetails": {"EventMetadata": metadata}}}

    def _batch(self, action: str, code: str, kind: str) -> Callable[..., Any]:
        def reply(asked: dict[str, Any]) -> dict[str, Any]:
            self.asked.append((action, asked))
            answered: dict[str, Any] = {}
            for key, good, bad, name in (
                ("NodeIds", "Successful", "Failed", "NodeId"),
                ("NodeLogicalIds", "SuccessfulNodeLogicalIds", "FailedNodeLogicalIds", "NodeLogicalId"),
            ):
                ids = asked.get(key, [])
                failed = [
                    {name: one, code: kind, "Message": self.failing[one]}
                    for one in ids
                    if one in self.failing
                ]
                done = [one for one in ids if one not in self.failing]
                answered |= {good: done} if done else {}
                answered |= {bad: failed} if failed else {}
            return answered

        return reply

    def _add(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(("add", asked))
        wanted = asked["NodesToAdd"][0]
        name, count = wanted["InstanceGroupName"], wanted["IncrementTargetCountBy"]
        if "add" in self.failing:
            failed = {"InstanceGroupName": name, "ErrorCode": self.failing["add"], "FailedCount": count}
            return {"Successful": [], "Failed": [failed]}
        return {
            "Successful": [
                {"NodeLogicalId": f"{name}-new{number}", "InstanceGroupName": name, "Status": "Pending"}
                for number in range(count)
            ],
            "Failed": [],
        }

    def _check(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(("health-check", asked))
        return {"ClusterArn": ARN}

    def _update(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(("update", asked))
        self.on_update(asked)
        return {"ClusterArn": ARN}

    def _update_groups(self, asked: dict[str, Any]) -> dict[str, Any]:
        """It takes all groups, each with what a group must have, and forgets those that are not named."""
        self.asked.append(("update-cluster", asked))
        known = {entry["InstanceGroupName"]: entry for entry in self.cluster["InstanceGroups"]}
        if {entry["InstanceGroupName"] for entry in asked["InstanceGroups"]} != known.keys():
            raise refusal("ValidationException", "every instance group must be given")
        for entry in asked["InstanceGroups"]:
            if entry["InstanceType"] != known[entry["InstanceGroupName"]]["InstanceType"]:
                raise refusal("ValidationException", "InstanceType cannot change")
            known[entry["InstanceGroupName"]] |= {
                "TargetCount": entry["InstanceCount"],
                "CurrentCount": entry["InstanceCount"],
                "MinCount": entry.get("MinInstanceCount", 0),
            }
        return {"ClusterArn": ARN}


__all__ = ["ARN", "BORN", "HyperPod", "account", "answer", "group", "node", "refusal"]
