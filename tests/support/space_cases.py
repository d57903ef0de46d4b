"""Cases of the rules on spaces, which are tested with the others of HyperPod on EKS."""

from __future__ import annotations

from typing import Any

from rules_table import Case

SPACES = "orchestrator.spaces"
PLACE = "arn:aws:{service}:{region}:111122223333:{kind}/12345678-1234-1234-1234-123456789012"
NODES = {"role": "compute", "instance_type": "m5.4xlarge", "count": 3}
TEAM = {"teams": {"research": {"quota": 8}}}


def arn(service: str, kind: str, region: str = "us-east-2") -> str:
    return PLACE.format(service=service, kind=kind, region=region)


def web(**more: Any) -> dict[str, Any]:
    whole = {
        "domain": "spaces.example.com",
        "certificate_arn": arn("acm", "certificate"),
        "key_arn": arn("kms", "key"),
    }
    return {f"{SPACES}.web_ui": {**whole, **more}}


def case(rule: str, broken: dict[str, Any], at: str, says: str, instead: str, mended: dict[str, Any]) -> Case:
    asked = {"node_groups.notebooks": NODES, SPACES: {"group": "notebooks"}}
    return Case(rule, {**asked, **broken}, at, says, instead, mended, base="hyperpod-eks-p5")


CASES = [
    case(
        "HPE110",
        {f"{SPACES}.group": "notebook"},
        f"{SPACES}.group",
        "there is no node group `notebook`",
        "notebooks",
        {f"{SPACES}.group": "notebooks"},
    ),
    case(
        "HPE110",
        {f"{SPACES}.group": "system"},
        f"{SPACES}.group",
        "`system` has the role system",
        "train",
        {f"{SPACES}.group": "train"},
    ),
    Case(
        "HPE110",
        {SPACES: {"group": "tune"}},
        f"{SPACES}.group",
        "`tune` is restricted",
        "a compute group for spaces",
        {
            "node_groups.notebooks": {"role": "compute", "instance_type": "m5.4xlarge", "count": 1},
            f"{SPACES}.group": "notebooks",
        },
        base="wishes/restricted-groups",
    ),
    case(
        "HPE111",
        {f"{SPACES}.cpu": 16},
        f"{SPACES}.cpu",
        "nodes of `notebooks` (m5.4xlarge) have at most 15 for pods, and a space asks for 16",
        "15",
        {f"{SPACES}.cpu": 15},
    ),
    case(
        "HPE111",
        {f"{SPACES}.gpus": 1},
        f"{SPACES}.gpus",
        "at most 0 for pods",
        "0",
        {"node_groups.notebooks.instance_type": "g6e.4xlarge"},
    ),
    case(
        "HPE112",
        {"network.egress": "closed"},
        f"{SPACES}.images",
        "is in a public registry",
        "images: [<account>.dkr.ecr",
        {f"{SPACES}.images": ["111122223333.dkr.ecr.us-east-2.amazonaws.com/space:1"]},
    ),
    case(
        "HPE113",
        web(),
        f"{SPACES}.web_ui",
        "neither is installed here",
        "acknowledge that you install them",
        {f"{SPACES}.web_ui": ...},
    ),
    case(
        "HPE114",
        web(scheme="internet-facing"),
        f"{SPACES}.web_ui.scheme",
        "public addresses",
        "internal",
        {f"{SPACES}.web_ui.scheme": "internal"},
    ),
    case(
        "HPE115",
        {f"{SPACES}.remote_ide": True, f"{SPACES}.memory_gib": 7},
        f"{SPACES}.memory_gib",
        "refuses every space with less than 8",
        "8",
        {f"{SPACES}.memory_gib": 8},
    ),
    case(
        "HPE116",
        {**TEAM, f"{SPACES}.remote_ide": True},
        f"{SPACES}.remote_ide",
        "pods of research are `restricted`",
        "pod_security: baseline",
        {"teams.research.pod_security": "baseline"},
    ),
    case(
        "HPE117",
        {**TEAM, "node_groups.notebooks.instance_type": "g6e.4xlarge", f"{SPACES}.gpus": 1},
        f"{SPACES}.gpus",
        "does not know of GPUs that spaces have",
        "0",
        {f"{SPACES}.gpus": 0},
    ),
    case(
        "HPE118",
        web(certificate_arn=arn("acm", "certificate", "us-east-1")),
        f"{SPACES}.web_ui.certificate_arn",
        "it is in us-east-1",
        "one in us-east-2",
        {f"{SPACES}.web_ui.certificate_arn": arn("acm", "certificate")},
    ),
    case(
        "HPE119",
        {"teams": {"research": {"quota": 8, "uid": 2001}}},
        f"{SPACES}.images",
        "team `research` runs as user 2001",
        "whose files belong to no user",
        {"teams.research.uid": 1000},
    ),
]
