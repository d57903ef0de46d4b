"""`environments/dev.yaml` as an account has it: stacks with drift, nodes, storage and alarms."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from hyperpod_service import BORN, HyperPod, account, answer, group, node, refusal
from project import ROOT

from ultracluster.account.aws import Account
from ultracluster.config import load
from ultracluster.model import resolve

DEV = ROOT / "environments" / "dev.yaml"
CLUSTER = resolve(load(DEV).environment)
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
LUSTRE = "fs-0123456789abcdef0"
GROUP = "sg-0123456789abcdef0"
ARN = "arn:aws:cloudformation:us-west-2:111122223333:stack/{}/x"
SELF = {"IpProtocol": "-1", "SourceSecurityGroupId": {"Fn::GetAtt": ["Nodes", "GroupId"]}}
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Nodes": {
            "Type": "AWS::EC2::SecurityGroup",
            "Properties": {
                "SecurityGroupEgress": [
                    {"IpProtocol": "6", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"}
                ],
                "SecurityGroupIngress": [
                    {
                        "IpProtocol": "tcp",
                        "FromPort": 22,
                        "ToPort": 22,
                        "CidrIp": {"Fn::GetAtt": ["Vpc", "CidrBlock"]},
                    }
                ],
            },
        },
        "Self": {
            "Type": "AWS::EC2::SecurityGroupIngress",
            "Properties": {"GroupId": {"Fn::GetAtt": ["Nodes", "GroupId"]}, **SELF},
        },
    }
}


def rule(
    number: int, *, egress: bool = False, protocol: str = "tcp", port: int = 443, **peer: Any
) -> dict[str, Any]:
    """One rule as EC2 describes it."""
    ports = -1 if protocol == "-1" else port
    return {
        "SecurityGroupRuleId": f"sgr-{number:017x}", "GroupId": GROUP, "IsEgress": egress,
        "IpProtocol": protocol, "FromPort": ports, "ToPort": ports, **peer,
    }  # fmt: skip


OURS = [
    rule(1, egress=True, CidrIpv4="0.0.0.0/0"),
    rule(2, port=22, CidrIpv4="10.1.0.0/16"),
    rule(3, protocol="-1", ReferencedGroupInfo={"GroupId": GROUP}),
]


class Live:
    """An environment on which every source answers, and nothing is wrong; a test breaks what it is about.

    Attributes:
        stacks: CloudFormation's status of each stack that is there.
        detections: answers about a detection, one used up each time; the last one stays.
        drifts: resource drifts by stack.
        compared: result of the last detection of a stack without drifts.
        asked: operations of CloudFormation, in their order.
        refused: errors by operation.
        unlisted: the error for who asks for all stacks.
    """

    def __init__(self) -> None:
        self.account: Account = account()
        self.service = HyperPod(
            self.account,
            InstanceGroups=[
                group("controller", 1, "Controller"),
                group("login", 1, "Login"),
                group("gpu", 2),
            ],
        )
        self.service.nodes = [node(1, "controller"), node(2, "login"), node(16), node(17)]
        for one in self.service.nodes:
            one["CurrentImageReleaseVersion"] = "1.3.0"
        self.stacks = dict.fromkeys(CLUSTER.environment.stack_names, "UPDATE_COMPLETE")
        self.tags: dict[str, str] = {}
        self.detections = ["DETECTION_IN_PROGRESS", "DETECTION_COMPLETE"]
        self.drifts: dict[str, list[dict[str, Any]]] = {}
        self.compared = "IN_SYNC"
        self.rules = [*OURS]
        self.used = 600 * 2**30
        self.alarms: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.refused: dict[str, Exception] = {}
        self.unlisted: Exception | None = None
        for service, operation, reply in (
            ("cloudformation", "DescribeStacks", self._stacks),
            ("cloudformation", "DescribeStackEvents", self._events),
            (
                "cloudformation",
                "DetectStackDrift",
                lambda asked: {"StackDriftDetectionId": self._there(asked)},
            ),
            ("cloudformation", "DescribeStackDriftDetectionStatus", self._detection),
            ("cloudformation", "DescribeStackResourceDrifts", self._drifts),
            ("cloudformation", "GetTemplate", lambda asked: {"TemplateBody": json.dumps(TEMPLATE)}),
            ("cloudformation", "ListStackResources", self._resources),
            ("ec2", "DescribeSecurityGroupRules", lambda asked: {"SecurityGroupRules": self.rules}),
            ("fsx", "DescribeFileSystems", self._file_systems),
            ("cloudwatch", "GetMetricStatistics", self._fill),
            ("cloudwatch", "DescribeAlarms", lambda asked: {"MetricAlarms": self.alarms}),
            ("logs", "DescribeLogGroups", lambda asked: {"logGroups": []}),
            ("logs", "DescribeLogStreams", lambda asked: {"logStreams": []}),
            ("logs", "FilterLogEvents", lambda asked: {"events": []}),
        ):
            answer(self.account.client(service), operation, self._guard(operation, reply))

    def _guard(self, operation: str, reply: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(asked: dict[str, Any]) -> dict[str, Any]:
            self.asked.append(operation)
            if operation in self.refused:
                raise self.refused[operation]
            return reply(asked)

        return guarded

    def _there(self, asked: dict[str, Any]) -> str:
        name = str(asked["StackName"])
        if name not in self.stacks:
            raise refusal("ValidationError", f"Stack with id {name} does not exist")
        return name

    def _stacks(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self.unlisted and "StackName" not in asked:
            raise self.unlisted
        names = [self._there(asked)] if "StackName" in asked else [*self.stacks]
        return {"Stacks": [self._stack(name) for name in names]}

    def _stack(self, name: str) -> dict[str, Any]:
        drift = {
            "StackDriftStatus": "DRIFTED" if self.drifts.get(name) else self.compared,
            "LastCheckTimestamp": NOW,
        }
        tags = [{"Key": "ultracluster:environment", "Value": self.tags.get(name, "dev")}]
        return {
            "StackName": name, "StackId": ARN.format(name), "CreationTime": BORN, "Tags": tags,
            "StackStatus": self.stacks[name], "DriftInformation": drift,
        }  # fmt: skip

    def _events(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = self._there(asked)
        event = {
            "StackId": ARN.format(name), "EventId": "1", "StackName": name, "LogicalResourceId": name,
            "PhysicalResourceId": ARN.format(name), "Timestamp": NOW, "ResourceStatus": "UPDATE_COMPLETE",
        }  # fmt: skip
        return {"StackEvents": [event]}

    def _detection(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = str(asked["StackDriftDetectionId"])
        state = self.detections.pop(0) if len(self.detections) > 1 else self.detections[0]
        done = {"StackDriftStatus": "DRIFTED" if self.drifts.get(name) else "IN_SYNC"}
        why = {"DetectionStatusReason": "access denied: kms:DescribeKey"} if state.endswith("FAILED") else {}
        return {
            "StackId": ARN.format(name), "StackDriftDetectionId": name, "DetectionStatus": state,
            "Timestamp": NOW, **(done if state == "DETECTION_COMPLETE" else {}), **why,
        }  # fmt: skip

    def _drifts(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["StackResourceDriftStatusFilters"] == ["MODIFIED", "DELETED"]
        return {"StackResourceDrifts": self.drifts.get(self._there(asked), [])}

    def _resources(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = {
            "LogicalResourceId": "Nodes", "PhysicalResourceId": GROUP, "LastUpdatedTimestamp": BORN,
            "ResourceType": "AWS::EC2::SecurityGroup", "ResourceStatus": "CREATE_COMPLETE",
        }  # fmt: skip
        return {"StackResourceSummaries": [found] if asked["StackName"] == "dev-network" else []}

    def _file_systems(self, asked: dict[str, Any]) -> dict[str, Any]:
        own = {
            "FileSystemId": LUSTRE, "FileSystemType": "LUSTRE", "Lifecycle": "AVAILABLE",
            "StorageCapacity": 1200, "Tags": [{"Key": "ultracluster:environment", "Value": "dev"}],
        }  # fmt: skip
        other = {**own, "FileSystemId": "fs-00000000000000001", "Tags": [{"Key": "team", "Value": "web"}]}
        return {"FileSystems": [own, other]}

    def _fill(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["MetricName"] == "PhysicalDiskUsage", "its only dimension is the file system"
        assert asked["Dimensions"] == [{"Name": "FileSystemId", "Value": LUSTRE}]
        point = {"Timestamp": NOW, "Sum": float(self.used), "Unit": "Bytes"}
        return {"Datapoints": [point] if self.used else []}


def drifted(logical: str = "Nodes", kind: str = "AWS::EC2::SecurityGroup", *paths: str) -> dict[str, Any]:
    """One resource as DescribeStackResourceDrifts has it; deleted without paths."""
    return {
        "StackId": ARN.format("dev-network"), "LogicalResourceId": logical, "ResourceType": kind,
        "Timestamp": NOW,
        "StackResourceDriftStatus": "MODIFIED" if paths else "DELETED",
        "PropertyDifferences": [
            {"PropertyPath": path, "ExpectedValue": "a", "ActualValue": "b", "DifferenceType": "NOT_EQUAL"}
            for path in paths
        ],
    }  # fmt: skip
