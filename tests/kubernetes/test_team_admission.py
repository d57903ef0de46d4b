"""What is said of a team's objects besides the levels: judged by an evaluator of CEL from elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from crd_fields import problems
from judges_python import cel
from scheduling_support import TEAMS, made

from ultracluster.catalog.eks import kubernetes_releases
from ultracluster.kubernetes.isolation import job_namespace
from ultracluster.kubernetes.team_admission import admission_policies
from ultracluster.model import resolve

SERVICES, USER = "ultracluster-team-services", "ultracluster-team-user"
UID = "2001"


def expression(name: str) -> str:
    cluster = resolve(made("kueue", teams={**TEAMS, "own": {"uid": int(UID)}}))
    (policy,) = [
        one
        for one in admission_policies(cluster)
        if one["kind"] == "ValidatingAdmissionPolicy" and one["metadata"]["name"] == name
    ]
    (validation,) = policy["spec"]["validations"]
    return validation["expression"]


def test_kubernetes_takes_them() -> None:
    cluster = resolve(made("kueue", teams={**TEAMS, "own": {"uid": 2001}}))

    for release in kubernetes_releases():
        for one in admission_policies(cluster):
            assert problems(one, kubernetes=release) == []


def test_there_is_none_without_need() -> None:
    assert admission_policies(resolve(made("kueue", teams={}))) == ()
    names = {one["metadata"]["name"] for one in admission_policies(resolve(made("kueue")))}
    assert names == {SERVICES}


def test_each_is_bound_to_the_namespaces_that_have_its_label() -> None:
    cluster = resolve(made("kueue", teams={**TEAMS, "own": {"uid": 2001}}))
    bindings = [one for one in admission_policies(cluster) if one["kind"].endswith("Binding")]
    labels = {
        one["spec"]["policyName"]: one["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        for one in bindings
    }

    assert all(one["spec"]["validationActions"] == ["Deny"] for one in bindings)
    for name, keys in ((SERVICES, {"own", "research", "product"}), (USER, {"own"})):
        ((key,),) = [[one["key"] for one in labels[name]]]
        have = {team for team in cluster.environment.teams if key in job_namespace(cluster, team).labels}
        assert have == keys


@pytest.mark.slow
def test_a_service_takes_no_addresses_of_others() -> None:
    cases = [{"spec": {}}, {"spec": {"externalIPs": []}}, {"spec": {"externalIPs": ["10.0.0.1"]}}]

    assert cel(expression(SERVICES), [{"object": one} for one in cases]) == [True, True, False]


@pytest.mark.slow
def test_a_pod_runs_as_the_one_user_of_its_namespace() -> None:
    own = {"runAsUser": 2001, "runAsGroup": 2001}
    ours = {"securityContext": own, "containers": [{"name": "a"}]}
    good: list[dict[str, Any]] = [
        ours,
        {**ours, "initContainers": [{"name": "b", "securityContext": own}]},
        {**ours, "securityContext": {**own, "fsGroup": 2001, "supplementalGroups": [2001]}},
        {**ours, "containers": [{"name": "a", "securityContext": {"allowPrivilegeEscalation": False}}]},
    ]
    other = {"runAsUser": 2002}
    bad: list[dict[str, Any]] = [
        {"containers": [{"name": "a"}]},
        {**ours, "securityContext": {"runAsUser": 2001}},
        {**ours, "securityContext": {**own, **other}},
        {**ours, "securityContext": {**own, "runAsGroup": 2002}},
        {**ours, "securityContext": {**own, "fsGroup": 2002}},
        {**ours, "securityContext": {**own, "supplementalGroups": [2001, 2002]}},
        {**ours, "containers": [{"name": "a"}, {"name": "b", "securityContext": other}]},
        {**ours, "initContainers": [{"name": "b", "securityContext": {"runAsGroup": 0}}]},
        {**ours, "hostUsers": False},
    ]
    namespace = {"metadata": {"labels": {"ultracluster/uid": UID}}}
    cases = [{"object": {"spec": spec}, "namespaceObject": namespace} for spec in (*good, *bad)]

    assert cel(expression(USER), cases) == [True] * len(good) + [False] * len(bad)
