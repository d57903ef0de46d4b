"""Changes of stacks past CloudFormation: its own drift detection, and rules of security groups.

CloudFormation compares only properties that a template sets, and takes minutes for a large stack (API
reference, DetectStackDrift, read 2026-11-28). A rule that somebody adds to a group is no drift to it where
the template lists none of that kind; those are compared here.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain, message
from ultracluster.account.status.rows import Difference, Drifted, StackDrift, StackState

EVERY = 1.0
"""Seconds between two questions about a detection."""
MOST_DIFFERENCES = 20
"""Property differences of one resource that are kept."""
MOST_GROUPS = 200
"""Values of one filter (EC2 API reference, Filter)."""
_WORDS: Mapping[str, Drifted] = {"IN_SYNC": "in sync", "DRIFTED": "differs"}
_PROTOCOLS = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6"}
_RULES = {"AWS::EC2::SecurityGroupIngress": False, "AWS::EC2::SecurityGroupEgress": True}
_INLINE = {"SecurityGroupIngress": False, "SecurityGroupEgress": True}
_PEERS = {
    "CidrIp": "address", "CidrIpv6": "address", "SourceSecurityGroupId": "group",
    "DestinationSecurityGroupId": "group", "SourcePrefixListId": "list", "DestinationPrefixListId": "list",
}  # fmt: skip
_WORLD = ("0.0.0.0/0", "::/0")

Place = tuple[str, str]
"""Stack and logical id."""
Key = tuple[bool, str, int, int, str]
"""Egress, protocol, ports, and the peer; `* group` for a group that only the deployed stack knows."""


def stack_state(account: Account, name: str) -> StackState | None:
    """A stack as CloudFormation describes it; None where it is not there."""
    try:
        answer: dict[str, Any] = account.client("cloudformation").describe_stacks(StackName=name)
    except AWS_ERRORS as error:
        if code(error) == "ValidationError" and "does not exist" in message(error):
            return None
        raise
    return state_of(answer["Stacks"][0])


def state_of(stack: Mapping[str, Any]) -> StackState:
    """The row of a stack of DescribeStacks."""
    times = [stack.get(key) for key in ("DeletionTime", "LastUpdatedTime", "CreationTime")]
    since = next((one for one in times if isinstance(one, datetime)), None)
    return StackState(str(stack["StackName"]), str(stack["StackStatus"]), since)


def stack_drift(
    account: Account,
    stack: str,
    *,
    detect: bool,
    over: Callable[[], bool],
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[StackDrift | Difference]:
    """Changes that CloudFormation finds in a stack.

    Args:
        detect: start a detection; otherwise the last one's answer is read.
        over: whether nobody waits any more. CloudFormation continues, and the next question has its answer.
        pause: takes seconds; exchanged in tests.
    """
    cloudformation = account.client("cloudformation")
    state: dict[str, Any] = {}
    if detect:
        asked = _begun(account, stack)
        while asked:
            state = cloudformation.describe_stack_drift_detection_status(StackDriftDetectionId=asked)
            if state["DetectionStatus"] != "DETECTION_IN_PROGRESS" or over():
                break
            pause(EVERY)
    last: dict[str, Any] = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    last = last.get("DriftInformation") or {}
    drift = _WORDS.get(str(state.get("StackDriftStatus") or last.get("StackDriftStatus", "")), "not checked")
    checked, why = last.get("LastCheckTimestamp"), ""
    if state.get("DetectionStatus") == "DETECTION_FAILED":
        why = str(state.get("DetectionStatusReason") or "the detection failed")
    elif detect and state.get("DetectionStatus") != "DETECTION_COMPLETE":
        drift, why = (
            "checking",
            "still running: ask again in a minute; differences are the last known",
        )
    differences = list(_resources(account, stack)) if drift != "not checked" or why else []
    if drift == "not checked" and not why:
        why = "it was never compared: --drift compares it"
    if drift == "differs" and not differences:
        drift = "in sync"
    yield StackDrift(stack, drift, checked, why)
    yield from differences


def _begun(account: Account, stack: str) -> str:
    """Id of a detection; empty where one runs already."""
    try:
        return str(
            account.client("cloudformation").detect_stack_drift(StackName=stack)["StackDriftDetectionId"]
        )
    except AWS_ERRORS as error:
        if code(error) == "ValidationError" and "in progress" in message(error).lower():
            return ""
        raise


def _resources(account: Account, stack: str) -> Iterator[Difference]:
    cloudformation = account.client("cloudformation")
    request: dict[str, Any] = {"StackName": stack, "StackResourceDriftStatusFilters": ["MODIFIED", "DELETED"]}
    while True:
        answer = cloudformation.describe_stack_resource_drifts(**request)
        for one in answer["StackResourceDrifts"]:
            yield from _of_resource(stack, one)
        if not answer.get("NextToken"):
            return
        request["NextToken"] = answer["NextToken"]


def _of_resource(stack: str, found: Mapping[str, Any]) -> Iterator[Difference]:
    source = "CloudFormation DescribeStackResourceDrifts"
    where = f"{stack} {found['LogicalResourceId']} ({found['ResourceType']})"
    if found["StackResourceDriftStatus"] == "DELETED":
        yield Difference("resource", where, "is there", "was deleted", source)
        return
    listed: list[dict[str, Any]] = found.get("PropertyDifferences") or []
    differences = [one for one in listed if not _attached(found, one)]
    for one in differences[:MOST_DIFFERENCES]:
        yield Difference(
            "property",
            f"{where} {one['PropertyPath']}",
            str(one.get("ExpectedValue", "")),
            str(one.get("ActualValue", "")),
            source,
        )
    if (more := len(differences) - MOST_DIFFERENCES) > 0:
        yield Difference("property", where, "", f"{more} more properties differ", source)


def _attached(found: Mapping[str, Any], difference: Mapping[str, Any]) -> bool:
    """True for a rule that was added to a security group, which `foreign_rules` judges.

    CloudFormation calls one drift that another stack adds (CloudFormation User Guide, "Detect
    unmanaged configuration changes", read 2026-11-28).
    """
    path = str(difference.get("PropertyPath", "")).strip("/").partition("/")[0]
    group = found["ResourceType"] == "AWS::EC2::SecurityGroup"
    return group and path in _INLINE and difference.get("DifferenceType") == "ADD"


def foreign_rules(account: Account, stacks: Sequence[str]) -> list[Difference]:
    """Rules of the stacks' security groups that none of their templates has.

    Raises:
        AccountError: no stack is there, or AWS cannot be asked.
    """
    groups: dict[str, Place] = {}
    known: dict[Place | None, set[Key]] = defaultdict(set)
    try:
        for stack in stacks:
            if stack_state(account, stack) is None:
                continue
            _read_template(account, stack, known)
            for resource in _listed(account, stack):
                if resource["ResourceType"] == "AWS::EC2::SecurityGroup" and resource.get(
                    "PhysicalResourceId"
                ):
                    groups[str(resource["PhysicalResourceId"])] = (stack, str(resource["LogicalResourceId"]))
        read = {place for place in known if place}
        ours = {group: place for group, place in groups.items() if place in read}
        return [_foreign(rule, ours) for rule in _live(account, sorted(ours)) if not _has(known, rule, ours)]
    except AWS_ERRORS as error:
        raise AccountError(explain(error)) from None


def _listed(account: Account, stack: str) -> Iterator[dict[str, Any]]:
    cloudformation = account.client("cloudformation")
    for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack):
        yield from page["StackResourceSummaries"]


def _live(account: Account, groups: Sequence[str]) -> Iterator[dict[str, Any]]:
    ec2 = account.client("ec2")
    for start in range(0, len(groups), MOST_GROUPS):
        filters = [{"Name": "group-id", "Values": list(groups[start : start + MOST_GROUPS])}]
        for page in ec2.get_paginator("describe_security_group_rules").paginate(Filters=filters):
            yield from page["SecurityGroupRules"]


def _read_template(account: Account, stack: str, known: dict[Place | None, set[Key]]) -> None:
    """The rules of a template by the group that they are of; None stands for a group of another stack."""
    cloudformation = account.client("cloudformation")
    body: Any = cloudformation.get_template(StackName=stack, TemplateStage="Processed")["TemplateBody"]
    if not isinstance(body, dict):
        return  # YAML of another tool: its groups are not judged
    resources = cast("dict[str, dict[str, Any]]", cast("dict[str, Any]", body).get("Resources", {}))
    for name, resource in resources.items():
        properties: dict[str, Any] = resource.get("Properties") or {}
        if resource.get("Type") == "AWS::EC2::SecurityGroup":
            known[stack, name].update(_inline(properties))
        elif (egress := _RULES.get(str(resource.get("Type")))) is not None:
            target = _logical(properties.get("GroupId"))
            place = (stack, target) if target in resources else None
            known[place].add(_key(egress, properties))


def _inline(properties: Mapping[str, Any]) -> Iterator[Key]:
    for key, egress in _INLINE.items():
        rules: Any = properties.get(key) or []
        for rule in rules if isinstance(rules, list) else [rules]:  # pyright: ignore[reportUnknownVariableType]
            yield _key(egress, cast("Mapping[str, Any]", rule))
    if not properties.get("SecurityGroupEgress"):
        for world in _WORLD:  # what AWS gives a group without one
            yield (True, "-1", -1, -1, world)


def _logical(value: Any) -> str:
    """Logical id behind a Ref or Fn::GetAtt; empty for anything else."""
    if not isinstance(value, dict):
        return ""
    reference = cast("dict[str, Any]", value)
    name: Any = reference.get("Ref") or reference.get("Fn::GetAtt") or ""
    return str(name[0] if isinstance(name, list) else name).partition(".")[0]  # pyright: ignore[reportUnknownArgumentType]


def _key(egress: bool, rule: Mapping[str, Any]) -> Key:
    """The key of a rule of a template."""
    kind, peer = next(((kind, rule[name]) for name, kind in _PEERS.items() if name in rule), ("", ""))
    return (egress, *_traffic(rule), peer if isinstance(peer, str) else f"* {kind}")


def _traffic(rule: Mapping[str, Any]) -> tuple[str, int, int]:
    protocol = str(rule.get("IpProtocol", "-1")).lower()
    protocol = _PROTOCOLS.get(protocol, protocol)
    if protocol == "-1":
        return protocol, -1, -1
    return protocol, _port(rule.get("FromPort", -1)), _port(rule.get("ToPort", -1))


def _port(value: Any) -> int:
    return int(value) if str(value).lstrip("-").isdigit() else -1


def _peer(rule: Mapping[str, Any]) -> tuple[str, str]:
    """The kind of a peer, and who it is."""
    referenced: dict[str, Any] = rule.get("ReferencedGroupInfo") or {}
    if group := referenced.get("GroupId"):
        return "group", str(group)
    if listed := rule.get("PrefixListId"):
        return "list", str(listed)
    return "address", str(rule.get("CidrIpv4") or rule.get("CidrIpv6") or "")


def _has(
    known: Mapping[Place | None, set[Key]],
    rule: Mapping[str, Any],
    ours: Mapping[str, Place],
) -> bool:
    """True if a template has a rule. A peer that only the deployed stack knows is taken for the same one, but
    never for the whole internet."""
    traffic = (bool(rule.get("IsEgress")), *_traffic(rule))
    keys = known.get(ours[str(rule["GroupId"])], set()) | known.get(None, set())
    kind, peer = _peer(rule)
    return (*traffic, peer) in keys or (peer not in _WORLD and (*traffic, f"* {kind}") in keys)


def _foreign(rule: Mapping[str, Any], ours: Mapping[str, Place]) -> Difference:
    stack, logical = ours[str(rule["GroupId"])]
    protocol, first, last = _traffic(rule)
    ports = "" if protocol == "-1" or first < 0 else f" {first}" if first == last else f" {first}-{last}"
    way = "to" if rule.get("IsEgress") else "from"
    said = f" ({rule['Description']})" if rule.get("Description") else ""
    traffic = "everything" if protocol == "-1" else f"{protocol}{ports}"
    return Difference(
        "rule",
        f"{stack} {logical} {rule['GroupId']} {rule.get('SecurityGroupRuleId', '')}",
        "no template has it",
        f"{traffic} {way} {_peer(rule)[1]}{said}",
        "EC2 DescribeSecurityGroupRules",
    )
