"""Rights of a team's members: in their own namespaces and nowhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubernetes_support import MEMBER
from scheduling_support import TEAMS, made

from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.teams import team_namespaces, team_rights
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


def rules() -> list[dict[str, Any]]:
    (role,) = [one for one in team_rights(resolve(made("kueue"))) if one["kind"] == "ClusterRole"]
    return role["rules"]


def may(verb: str, resource: str, group: str = "") -> bool:
    return any(
        verb in rule["verbs"] and resource in rule["resources"] and group in rule["apiGroups"]
        for rule in rules()
    )


WRITES = ("create", "delete", "deletecollection", "patch", "update")


@pytest.mark.parametrize(
    ("resource", "group"),
    [
        ("networkpolicies", "networking.k8s.io"),
        ("ingresses", "networking.k8s.io"),
        ("resourcequotas", ""),
        ("limitranges", ""),
        ("namespaces", ""),
        ("serviceaccounts", ""),
        ("serviceaccounts/token", ""),
        ("roles", "rbac.authorization.k8s.io"),
        ("rolebindings", "rbac.authorization.k8s.io"),
        ("pods/ephemeralcontainers", ""),
        ("pods/eviction", ""),
        ("nodes", ""),
        ("persistentvolumes", ""),
        ("deployments", "apps"),
        ("daemonsets", "apps"),
        ("statefulsets", "apps"),
        ("workloads", "kueue.x-k8s.io"),
        ("localqueues", "kueue.x-k8s.io"),
    ],
)
def test_a_member_changes_nothing_that_keeps_teams_apart(resource: str, group: str) -> None:
    assert not [verb for verb in (*WRITES, "impersonate", "bind", "escalate") if may(verb, resource, group)]


def test_a_member_runs_jobs_and_looks_into_their_pods() -> None:
    for resource, group in (("jobs", "batch"), ("jobsets", "jobset.x-k8s.io"), ("mpijobs", "kubeflow.org")):
        assert all(may(verb, resource, group) for verb in ("create", "delete", "get", "list", "watch"))
    assert may("get", "pods/log")
    assert may("create", "pods/exec")
    assert may("delete", "pods")
    # a bare pod would get round the queue
    assert not may("create", "pods")
    assert not may("update", "pods")


def test_nothing_is_bound_that_others_add_rights_to() -> None:
    """`edit` is put together by label from every chart's roles."""
    bound = {one["roleRef"]["name"] for one in team_rights(resolve(made("kueue"))) if "roleRef" in one}
    assert bound == {"ultracluster-team-member"}
    assert "*" not in json.dumps(rules())


def test_namespaces_have_their_teams_levels() -> None:
    teams = {"a": {}, "b": {"pod_security": "baseline", "uid": 2001}}
    levels = {
        one["metadata"]["name"]: one["metadata"]["labels"]
        for one in team_namespaces(resolve(made("kueue", teams=teams)))
    }

    enforce = "pod-security.kubernetes.io/enforce"
    assert (levels["a"][enforce], levels["b"][enforce]) == ("restricted", "baseline")
    assert levels["b"]["ultracluster/uid"] == "2001"
    assert "ultracluster/uid" not in levels["a"]
