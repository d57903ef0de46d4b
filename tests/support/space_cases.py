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
        {f"{SPACES}.gpus": 1},
        f"{SPACES}.gpus",
        "at most 0 for pods",
        "0",
        {"node_groups.notebooks.instance_type": "g6e.4xlarge"},
    ),
    case(
        "HPE114",
        web(scheme="internet-facing"),
        f"{SPACES}.web_ui.scheme",
        "public addresses",
        "internal",
        {f"{SPACES}.web_ui.scheme": "internal"},
    ),
]
