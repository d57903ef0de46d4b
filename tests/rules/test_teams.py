"""Rules on teams, each broken and mended; and who schedules, with how many accelerators."""

from __future__ import annotations

from typing import Any

import pytest
from rules_table import Case, found, table_tests

from ultracluster.config.teams import Team
from ultracluster.rules import check
from ultracluster.rules.sets import TEA

# eks-p5en and hyperpod-eks-p5 have one group `train`: 8 x 8 and 4 x 8 GPUs; prod is HyperPod with Slurm
ROLE = "arn:aws:iam::111122223333:role/research"
MORE = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 2}
PLAIN = {"role": "compute", "instance_type": "c5.large", "count": 1}
TASKS = {"orchestrator.task_governance": True}
KAI = {"orchestrator.scheduler": "kai"}
VOLCANO = {"orchestrator.scheduler": "volcano"}


def case(
    rule: str,
    broken: dict[str, Any],
    at: str,
    says: str,
    instead: str,
    mended: dict[str, Any],
    base: str = "eks-p5en",
) -> Case:
    return Case(rule, broken, at, says, instead, mended, base)


def team(**fields: Any) -> dict[str, Any]:
    return {"teams": {"research": fields}}


def tree(**fields: Any) -> dict[str, Any]:
    """Two teams in `research`, which has 16 accelerators."""
    below = {"parent": "research", "quota": 8}
    return {"teams": {"research": {"quota": 16}, "vision": below | fields, "speech": below}}


CASES = [
    case(
        "TEA034", tree(parent="reserch"), "teams.vision.parent", "there is no team `reserch`",
        "parent: research", tree(),
    ),
    case(
        "TEA034", tree(parent="vision"), "teams.vision.parent", "vision of vision", "remove parent", tree(),
    ),
    case(
        "TEA034", tree() | {"teams.research.parent": "vision"}, "teams.research.parent",
        "research of vision of research", "remove parent", {"teams.research.parent": ...},
    ),
    case(
        "TEA035", tree(quota=12), "teams.vision.quota", "(vision 12, speech 8), and research has 16",
        "quota: 8", {"teams.research.quota": 20},
    ),
    case(
        "TEA035",
        {
            "teams": {
                "research": {"quota": {"train": 8}},
                "vision": {"parent": "research", "quota": {"train": 12}},
            }
        },
        "teams.vision.quota.train", "of train of the teams in research", "8",
        {"teams.vision.quota.train": 8},
    ),
    case(
        "TEA035",
        {
            "node_groups.more": MORE,
            "teams": {
                "research": {"quota": 8},
                "vision": {"parent": "research", "quota": {"more": 8}},
            },
        },
        "teams.vision", "8 accelerators of more, and 0 are free", "by group",
        {"teams.research.quota": {"more": 8}},
    ),
    case(
        "TEA036", tree(limit=24) | {"teams.research.limit": 16}, "teams.vision.limit", "has no effect",
        "limit: 16", {"teams.vision.limit": 16},
    ),
    case(
        "TEA037", KAI | tree() | {"teams.research.members": [ROLE]}, "teams.research.members",
        "takes no jobs in a queue with queues below it", "remove members", {"teams.research.members": ...},
    ),
    case(
        "TEA038", tree(most_per_user=17) | {"teams.research.limit": 16}, "teams.vision.most_per_user",
        "all of vision together 16", "most_per_user: 16", {"teams.vision.most_per_user": 16}, "prod",
    ),
    case(
        "TEA001", {"node_groups.cpu": PLAIN, **team(limit={"cpu": 8})}, "teams.research.limit.cpu",
        "has no accelerators", "remove cpu", team(limit={"train": 8}),
    ),
    case(
        "TEA002", {"teams": {"research": {"quota": {"train": 40}}, "product": {"quota": {"train": 25}}}},
        "teams.research.quota.train", "64 (8 nodes of 8)", "39",
        {"teams.research": {"quota": {"train": 39}}},
    ),
    case(
        "TEA002", {"teams": {"research": {"quota": 40}, "product": {"quota": {"train": 25}}}},
        "teams.research.quota", "add up to 65", "39", {"teams.research": {"quota": 39}},
    ),
    case(
        "TEA003", team(quota={"train": 16}, limit={"train": 8}), "teams.research.limit.train",
        "below the quota of 16", "16", team(quota={"train": 16}, limit={"train": 16}),
    ),
    case(
        "TEA004", team(limit={"train": 65}), "teams.research.limit.train", "has no effect", "64",
        team(limit={"train": 64}),
    ),
    case(
        "TEA006", {**VOLCANO, "node_groups.more": MORE, **team(quota={"train": 8, "more": 4})},
        "teams.research.quota", "not by node group", "quota: 12, or orchestrator", team(quota=12),
    ),
    case(
        "TEA008", VOLCANO | team(weight=2), "teams.research.weight", "proportion to the quotas",
        "remove weight", {"orchestrator.scheduler": "kai"},
    ),
    case(
        "TEA008", VOLCANO | team(preempt_own=False), "teams.research.preempt_own", "whole cluster",
        "remove preempt_own", {"orchestrator.scheduler": "kueue"},
    ),
    case(
        "TEA008", team(users=["alice"]), "teams.research.users", "not Unix users", "members:",
        team(members=[ROLE]),
    ),
    case(
        "TEA008", team(members=[ROLE]), "teams.research.members", "Slurm has no `members`", "users: [...]",
        team(users=["alice"]), "prod",
    ),
    case(
        "TEA008", TASKS | team(namespace="vision"), "teams.research.namespace", "hyperpod-ns-<team>",
        "remove namespace", team(), "hyperpod-eks-p5",
    ),
    case(
        "TEA008", TASKS | tree(quota=8), "teams.vision.parent", "none is a part of another", "remove parent",
        {"orchestrator.task_governance": False}, "hyperpod-eks-p5",
    ),
    case(
        "TEA008", team(most_per_user=4), "teams.research.most_per_user", "does not know who submitted",
        "a team of their own", team(limit=4),
    ),
    case(
        "TEA011", team(users=["alice"]) | {"storage.accounting_database": ...}, "teams", "no slurmdbd",
        "rds-mysql",
        {"storage.accounting_database": {"kind": "rds-mysql", "second_zone_id": "use2-az1"}},
        "parallelcluster-p5",
    ),
    case(
        "TEA012",
        team(users=["alice"], limit=8)
        | {"orchestrator.slurm_settings": {"AccountingStorageEnforce": "associations"}},
        "orchestrator.slurm_settings.AccountingStorageEnforce", "ignores the limits", "remove",
        {"orchestrator.slurm_settings": {"AccountingStorageEnforce": "limits"}}, "pcs-p6-b200",
    ),
    case(
        "TEA012",
        team(users=["alice"]) | {"orchestrator.slurm_settings": {"prioritytype": "priority/basic"}},
        "orchestrator.slurm_settings.prioritytype", "knows no shares", "remove",
        {"orchestrator.slurm_settings": {}}, "prod",
    ),
    case(
        "TEA012",
        team(users=["alice"]) | {"orchestrator.slurm_settings": {"PriorityWeightFairshare": 0}},
        "orchestrator.slurm_settings.PriorityWeightFairshare", "ignores the teams' shares", "remove",
        {"orchestrator.slurm_settings": {}}, "pcs-p6-b200",
    ),
    case(
        "TEA031", team(users=["alice"]) | {"orchestrator.lifecycle": "none"}, "teams", "makes their accounts",
        "render slurm-accounts", {"orchestrator.lifecycle": "on-create"}, "prod",
    ),
    case(
        "TEA013", {"teams": {"root": {"users": ["alice"]}}}, "teams.root", "of their own", "root-team",
        {"teams": {"root-team": {"users": ["alice"]}}}, "prod",
    ),
    case(
        "TEA013", team(namespace="kube-public"), "teams.research.namespace", "belongs to the cluster",
        "team-kube-public", team(namespace="vision"),
    ),
    case(
        "TEA013", {"teams": {"research": {}, "product": {"namespace": "research"}}},
        "teams.product.namespace", "2 teams share", "remove namespace",
        {"teams": {"research": {}, "product": {"namespace": "vision"}}},
    ),
    case(
        "TEA016", team(limit=16, users=["alice"]), "teams.research.limit", "aws.amazon.com/neuron",
        "remove limit", team(quota=16, users=["alice"]), "trainium",
    ),
    case(
        "TEA017", TASKS | team(quota=8, lend=False), "teams.research.lend", "borrow that does not lend",
        "limit: 8", team(quota=8, limit=8, lend=False), "hyperpod-eks-p5",
    ),
    case(
        "TEA019", TASKS | team(quota=8, weight=250), "teams.research.weight", "takes up to 100",
        "100", team(quota=8, weight=100), "hyperpod-eks-p5",
    ),
    case(
        "TEA020", {"teams": {"research": {"pod_security": "baseline"}, "product": {}}},
        "teams.research.pod_security", "storage.lustre and storage.openzfs", "pod_security: restricted",
        {"teams.research.pod_security": "restricted"},
    ),
    case(
        "TEA020", {"teams": {"research": {"pod_security": "baseline"}, "product": {"uid": 2005}}},
        "teams.research.pod_security", "who reads and changes", "uid: 2006", {"teams.research.uid": 2006},
    ),
    case(
        "TEA020",
        {"teams": {"a": {"pod_security": "baseline"}, "b": {}}, "storage.openzfs.root_squash": {}},
        "teams.a.pod_security", "on storage.lustre.", "pod_security: restricted",
        {"storage.lustre.root_squash": {"uid": 65534, "gid": 65534}},
    ),
    case(
        "TEA021", {"teams": {"research": {"uid": 2001}, "product": {"uid": 2001}}}, "teams.product.uid",
        "2 teams have the user 2001", "2002", {"teams.product.uid": 2002},
    ),
    case(
        "TEA032", {"teams": {"research": {}, "product": {"uid": 2005}}}, "teams.research",
        "every team's files on storage.lustre and storage.openzfs", "uid: 2006", {"teams.research.uid": 2006},
    ),
    case(
        "TEA008", team(uid=2001, users=["alice"]), "teams.research.uid", "Unix user that submits",
        "remove uid", team(users=["alice"]), "prod",
    ),
]  # fmt: skip


test_breaks_and_is_mended, test_advice_works = table_tests(cases=CASES)


def test_a_team_is_judged_without_a_file() -> None:
    assert [(one.code, one.dotted) for one in check(Team(quota=16, limit=8))] == [("TEA003", "limit")]


@pytest.mark.parametrize("base", ["eks-p5en", "hyperpod-eks-p5", "prod", "pcs-p6-b200", "eks-trn2"])
def test_an_environment_without_teams_has_no_findings(base: str) -> None:
    assert found(TEA, {}, base) == []


def test_one_team_alone_may_be_root_on_its_files() -> None:
    assert found(TEA, {"teams": {"research": {"pod_security": "baseline"}}}, "eks-p5en") == []
