"""What running jobs lose although nothing is replaced: rights of roles, and ways that rules admit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from ultracluster.change.changes import BY_MEANING, MISSING, Pair, Ruling, Steps, Verdict
from ultracluster.change.policy_documents import Grant, grants, in_words, lost
from ultracluster.change.template import Json, as_mapping, as_text, references

_IAM: Final = "IAM User Guide: Policy evaluation logic (2026-11-22)"
_EC2: Final = "EC2 User Guide: Security group rules (2026-11-22)"
RULES: Final = frozenset({"AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"})
_OPEN: Final = frozenset({"AWS::EC2::VPCEndpoint", "AWS::KMS::Key"})
"""Without a policy of their own they admit everything, or leave it to IAM."""
_POLICIES: Final = frozenset({
    "AWS::IAM::Policy", "AWS::IAM::RolePolicy", "AWS::IAM::ManagedPolicy", "AWS::S3::BucketPolicy",
    "AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy",
})  # fmt: skip
"""Types that are nothing but a policy."""
_NO_NODES: Final = frozenset({"lambda.amazonaws.com", "vpc-flow-logs.amazonaws.com", "fsx.amazonaws.com"})
"""Services whose roles no job uses."""
_EVERYTHING: Final = {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}]}
_PORTS: Final = (
    (988, 1023, "clients of the Lustre file system: running nodes lose it, and processes that use it hang"),
    (2049, 2049, "clients of NFS: running nodes lose the file system, and processes that use it hang"),
    (111, 111, "clients of NFS: running nodes lose the file system, and processes that use it hang"),
    (20001, 20003, "clients of NFS: running nodes lose the file system, and processes that use it hang"),
    (3306, 3306, "clients of the database: Slurm's accounting is away, and limits are no longer enforced"),
    (
        6817,
        6819,
        "Slurm's daemons: nodes no longer answer the controller, and jobs on them are taken for lost",
    ),
    (443, 443, "HTTPS, the endpoints of AWS's services and a Kubernetes API among it"),
    (10250, 10250, "the kubelet: logs, exec and metrics of pods"),
)


def judge(pair: Pair, steps: Steps, before: Any, after: Any) -> Ruling | None:
    """What a changed policy document or list of rules does; None of what is neither."""
    name = steps[-1] if steps else ""
    if name in ("SecurityGroupIngress", "SecurityGroupEgress"):
        return _rules(before, after)
    if name in BY_MEANING:
        return _document(pair, name, before, after)
    if pair.type == "AWS::IAM::Role" and len(steps) == 2 and steps[0] == "Policies":
        old, new = (as_mapping(one).get("PolicyDocument") for one in (before, after))
        return _document(pair, "PolicyDocument", old, new)
    return None


def judge_removal(pair: Pair) -> Ruling | None:
    """What the removal of a whole policy does; None of what is no policy of a role."""
    if as_text(pair.before.get("Type")) not in _POLICIES or (document := _document_of(pair.before)) is None:
        return None
    return _document(pair, "PolicyDocument", document, MISSING)


def judge_new(pair: Pair) -> Ruling | None:
    """What comes as new and refuses something to what is there: a policy of a role or bucket that existed, an
    endpoint that does not let everything pass."""
    if not pair.before_all or (document := _document_of(pair.after)) is None:
        return None
    if pair.type == "AWS::EC2::VPCEndpoint":
        old = grants(_EVERYTHING)
    elif any(to in pair.before_all for to, _ in references(as_mapping(pair.after.get("Properties")))):
        old = []
    else:
        return None
    found = lost(old, grants(document))
    return _at_risk(f"new, and refuses what passed before: {in_words(found)}") if found else None


def rule_words(rule: Any) -> str:
    """What a rule of a security group is for; empty where its ports do not tell."""
    one = as_mapping(rule)
    own = one.get("GroupId")
    if own is not None and own in (one.get("SourceSecurityGroupId"), one.get("DestinationSecurityGroupId")):
        return (
            "members of the group reach each other by it: on nodes with EFA every collective of a running "
            "job stops at once"
        )
    ports = (_port(one.get("FromPort")), _port(one.get("ToPort")))
    if _text(one.get("IpProtocol")) == "-1" or ports == (None, None):
        return "it is for every port: whatever running jobs do over it stops at once"
    first = next(
        (words for low, high, words in _PORTS if ports[0] is not None and low <= ports[0] <= high), ""
    )
    return f"it is for {first}" if first else ""


def _rules(before: Any, after: Any) -> Ruling:
    if any(side is not MISSING and not isinstance(side, list) for side in (before, after)):
        return Ruling(Verdict.AT_RISK, "which rules end cannot be told from a function of the template", _EC2)
    old, new = ({_text(_bare(one)): one for one in _listed(side)} for side in (before, after))
    gone = [rule for text, rule in old.items() if text not in new]
    if not gone:
        return Ruling(Verdict.IN_PLACE, "rules come, or only their descriptions change", _EC2)
    words = "; ".join(dict.fromkeys(one for one in (rule_words(rule) for rule in gone) if one))
    text = f"{len(gone)} rule{'s' * (len(gone) > 1)} of the group end: traffic that only they admit stops"
    return Ruling(Verdict.AT_RISK, f"{text}{': ' if words else ''}{words}", _EC2)


def _bare(rule: Any) -> Any:
    if not isinstance(rule, dict):
        return rule
    return {name: value for name, value in as_mapping(rule).items() if name != "Description"}


def _document(pair: Pair, name: str, before: Any, after: Any) -> Ruling | None:
    if any(len(one) == 1 and next(iter(one)).startswith("Fn::") for one in map(as_mapping, (before, after))):
        text = "what it takes away cannot be told from a function of the template"
        return Ruling(Verdict.AT_RISK, text, _IAM)
    absent = _EVERYTHING if as_text(pair.before.get("Type")) in _OPEN else {}
    old, new = (grants(absent if one is MISSING or one is None else one) for one in (before, after))
    if not old and not new:
        return None  # no policies: CloudFormation would refuse them
    if name == "AssumeRolePolicyDocument":
        found = lost(old, new)
        text = f"who may take the role narrows: {in_words(found)}. Nodes renew their credentials with it"
        return _of_role(pair, pair.logical_id, found, text)
    roles = _roles_of(pair.before, pair.logical_id)
    if roles:
        found = [one for role in roles for one in _lost_by(pair, role, old, new)]
        text = f"rights end at once, for running nodes, too: {in_words(found)}"
        return _of_role(pair, roles[0], found, text)
    found = lost(old, new)
    if not found:
        return Ruling(Verdict.IN_PLACE, "nothing that passed is refused: the same, or more", _IAM)
    return _at_risk(f"what passed before is refused at once, to running nodes, too: {in_words(found)}")


def _lost_by(pair: Pair, role: str, old: list[Grant], new: list[Grant]) -> Iterator[Grant]:
    """What a role loses: a right that another of its policies has now is none."""
    all_old = [*old, *_granted(pair.before_all, role)]
    all_new = [*new, *_granted(pair.after_all, role)]
    yield from lost(old, [one for one in all_new if one.effect == "Allow"])
    refused_before, refused = ([one for one in side if one.effect == "Deny"] for side in (all_old, new))
    yield from lost(refused_before, refused)


def _granted(resources: Mapping[str, Json], role: str) -> Iterator[Grant]:
    for name, resource in resources.items():
        if role in _roles_of(resource, name):
            properties = as_mapping(resource.get("Properties"))
            yield from grants(properties.get("PolicyDocument"))
            for inline in _listed(properties.get("Policies")):
                yield from grants(as_mapping(inline).get("PolicyDocument"))


def _roles_of(resource: Json, logical_id: str) -> list[str]:
    """Logical ids of the roles that a policy is of; a role's own of its inline policies."""
    properties = as_mapping(resource.get("Properties"))
    match as_text(resource.get("Type")):
        case "AWS::IAM::Role":
            return [logical_id]
        case "AWS::IAM::Policy" | "AWS::IAM::ManagedPolicy":
            return list(dict.fromkeys(to for to, _ in references(properties.get("Roles"))))
        case "AWS::IAM::RolePolicy":
            return list(dict.fromkeys(to for to, _ in references(properties.get("RoleName"))))
        case _:
            return []


def _of_role(pair: Pair, role: str, found: list[Grant], text: str) -> Ruling:
    if not found:
        return Ruling(Verdict.IN_PLACE, "no right ends: the same ones, or more", _IAM)
    trust = as_mapping(pair.before_all.get(role, {}).get("Properties")).get("AssumeRolePolicyDocument")
    services = {grant.principal.removeprefix("Service:") for grant in grants(trust)}
    if services and services <= _NO_NODES:
        return Ruling(
            Verdict.IN_PLACE,
            f"a right of {', '.join(sorted(services))} ends, which no job uses: {in_words(found)}",
            _IAM,
        )
    return _at_risk(text)


def _at_risk(text: str) -> Ruling:
    return Ruling(Verdict.AT_RISK, text, _IAM)


def _document_of(resource: Json) -> Any:
    return as_mapping(resource.get("Properties")).get("PolicyDocument")


def _port(value: Any) -> int | None:
    text = _text(value)
    return int(text) if text.isdecimal() and len(text) < 6 else None


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
