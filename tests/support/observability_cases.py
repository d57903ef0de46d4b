"""Each rule on observability broken and mended."""

from __future__ import annotations

from typing import Any

from rules_table import Case

WORKSPACE = "arn:aws:aps:{}:{}:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
HERE = WORKSPACE.format("us-west-2", "111122223333")
WRITER = "arn:aws:iam::444455556666:role/metrics-writer"
ADMIN = "12345678-90ab-cdef-1234-567890abcdef"
SAML = {"authentication": "SAML", "admins": ["platform"], "saml_metadata_url": "https://id.example.com/m"}


def asks(**changes: Any) -> dict[str, Any]:
    """Observability with somebody who is told, and these changes."""
    return {"observability": {"alerts": {"emails": ["oncall@example.com"]}, **changes}}


def grafana(**changes: Any) -> dict[str, Any]:
    """The same with a Grafana that somebody may enter."""
    return asks(grafana={"admins": [ADMIN], **changes})


def case(
    number: int,
    at: str,
    says: str,
    instead: str,
    broken: dict[str, Any],
    mended: dict[str, Any],
    base: str = "dev",
) -> Case:
    return Case(f"OBS{number:03d}", broken, f"observability{at}", says, instead, mended, base)


OBSERVABILITY_CASES = [
    case(
        1, "", "not in cn-north-1", "kind: cloudwatch",
        asks() | {"region": "cn-north-1"}, asks(kind="cloudwatch"),
    ),
    case(
        2, ".workspace.arn", "nothing leads there", "remove observability.workspace",
        asks(workspace={"arn": WORKSPACE.format("us-east-1", "111122223333")}) | {"network.egress": "closed"},
        asks(workspace={"arn": HERE}),
    ),
    *(
        case(
            4, f".{key}", "its owner's", "remove",
            asks(workspace={"arn": HERE}, **{key: value}), asks(workspace={"arn": HERE}),
        )
        for key, value in (("retention_days", 30), ("max_series", 100_000))
    ),
    *(
        case(
            5, f".{key}", "does nothing", "remove",
            asks(kind="cloudwatch", **{key: value}), asks(kind="cloudwatch"),
        )
        for key, value in (("scrape_seconds", 60), ("workspace", {"arn": HERE}), ("collector", "managed"))
    ),
    case(6, ".retention_days", "last", "150", asks(retention_days=7), asks(retention_days=8)),
    case(7, ".alerts", "unheard", "emails", {"observability": {"kind": "prometheus"}}, asks()),
    case(
        9, ".alerts.emails[1]", "named twice", "remove",
        asks(alerts={"emails": ["a@example.com", "a@example.com"]}),
        asks(alerts={"emails": ["a@example.com"]}),
    ),
    case(
        8, ".alerts.emails", "would not be told", "remove",
        asks(alerts={"emails": ["a@example.com"], "topic_arn": "arn:aws:sns:us-west-2:111122223333:alerts"}),
        asks(alerts={"topic_arn": "arn:aws:sns:us-west-2:111122223333:alerts"}),
    ),
    case(
        11, ".grafana", "nobody could log in", "saml_metadata_url",
        grafana(authentication="SAML", admins=["platform"]), asks(grafana=SAML),
    ),
    case(12, ".grafana", "nobody can enter", "admins", grafana(admins=[]), grafana()),
    case(
        12, ".grafana", "nobody administer", "admins",
        asks(grafana={**SAML, "admins": []}), asks(grafana=SAML),
    ),
    case(13, ".grafana.admins[0]", "no id of a user", "identitystore", grafana(admins=["jane"]), grafana()),
    case(
        13, ".grafana.admin_groups", "unknown to SAML", "remove",
        asks(grafana={**SAML, "admin_groups": [ADMIN]}), asks(grafana=SAML),
    ),
    case(
        14, ".grafana.version", "its owner's", "remove",
        grafana(workspace_id="g-1234567890", version="12.4"), grafana(workspace_id="g-1234567890"),
    ),
    case(16, ".kind", "eks has no collection", "prometheus", asks(kind="hyperpod"), asks(), base="eks-p5en"),
    case(
        17, ".kind", "classic", "prometheus",
        asks(kind="hyperpod")
        | {"orchestrator.provisioning": "classic", "orchestrator.slurm_config_strategy": "merge"},
        asks(),
    ),
    case(
        18, ".kind", "beside ours", "remove orchestrator.observability",
        asks() | {"orchestrator.observability.workspace_arn": WORKSPACE.format("us-east-2", "111122223333")},
        {"orchestrator.observability": ...}, base="hyperpod-eks-p5",
    ),
    case(
        18, ".kind", "the same add-on", "remove orchestrator.observability",
        asks(kind="hyperpod")
        | {"orchestrator.observability.workspace_arn": WORKSPACE.format("us-east-2", "111122223333")},
        {"orchestrator.observability": ...}, base="hyperpod-eks-p5",
    ),
    case(
        19, ".kind", "4xlarge", "prometheus",
        asks(kind="hyperpod") | {"node_groups.train.instance_type": "g5.2xlarge"},
        {"node_groups.train.instance_type": "g5.4xlarge"}, base="hyperpod-eks-p5",
    ),
    case(
        21, ".kind", "nothing on the nodes", "cloudwatch",
        asks(kind="prometheus") | {"orchestrator.lifecycle": "none"}, {"orchestrator.lifecycle": ...},
    ),
    case(
        24, ".budget_series_per_node", "nothing is taken in", "or more",
        asks(budget_series_per_node=100),
        asks(budget_series_per_node=10_000),
    ),
    case(
        22, "", "no login group", "login group", asks() | {"node_groups.login": ...},
        {"node_groups.login": {"role": "login", "instance_type": "m7i.2xlarge", "count": 1}},
        base="pcs-p6-b200",
    ),
]  # fmt: skip


__all__ = ["OBSERVABILITY_CASES", "asks", "grafana"]
