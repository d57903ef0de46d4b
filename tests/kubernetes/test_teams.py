"""Rights of a team's members: in their own namespaces and nowhere else."""

from __future__ import annotations

from kubernetes_support import MEMBER
from scheduling_support import TEAMS, made

from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.teams import team_rights
from ultracluster.model import resolve

# --- people ----------------------------------------------------------------------------------------------


def test_members_have_rights_in_their_own_namespaces_alone() -> None:
    env = made("kueue", teams={**TEAMS, "product": {"members": [MEMBER], "namespace": "vision"}})
    rights = team_rights(resolve(env))
    bindings = [one for one in rights if one["kind"] == "RoleBinding"]

    assert {one["metadata"]["namespace"] for one in bindings} == {"research", "vision"}
    assert not [one for one in rights if one["kind"] == "ClusterRoleBinding"]
    for one in bindings:
        team = {"research": "research", "vision": "product"}[one["metadata"]["namespace"]]
        assert [subject["name"] for subject in one["subjects"]] == [f"ultracluster:team:{team}"]
    assert scheduling(resolve(env)).members == {
        MEMBER: ("ultracluster:team:research", "ultracluster:team:product")
    }
    verbs = {
        verb
        for one in rights
        if one["kind"] == "ClusterRole"
        for rule in one["rules"]
        for verb in rule["verbs"]
    }
    assert "*" not in verbs
