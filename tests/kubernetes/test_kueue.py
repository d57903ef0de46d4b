"""Kueue: jobs whole or not at all, flavors by group, and queues by team."""

from __future__ import annotations

from typing import Any

from crd_fields import configuration_problems
from kubernetes_support import environment
from scheduling_support import made, nominal, of_kind, plain

from ultracluster.config import Environment
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.model import resolve

# --- configurations --------------------------------------------------------------------------------------


def kueue_configuration(env: Environment) -> dict[str, Any]:
    chart = scheduling(resolve(env)).chart
    assert chart is not None
    configuration = plain(chart.values["managerConfig"]["controllerManagerConfigYaml"])
    assert (configuration.pop("apiVersion"), configuration.pop("kind")) == (
        "config.kueue.x-k8s.io/v1beta2",
        "Configuration",
    )
    return configuration


def test_kueue_starts_a_job_whole_and_counts_accelerators_alone() -> None:
    configuration = kueue_configuration(made("kueue"))

    assert configuration_problems(configuration, "config.kueue.x-k8s.io/v1beta2 Configuration") == []
    assert configuration["waitForPodsReady"]["timeout"] == "20m"
    assert configuration["resources"] == {"quotaCheckStrategy": "IgnoreUndeclared"}
    assert configuration["manageJobsWithoutQueueName"] is True
    namespaces = scheduling(resolve(made("kueue"))).namespaces
    (expression,) = configuration["managedJobsNamespaceSelector"]["matchExpressions"]
    assert all(expression["key"] in one["metadata"]["labels"] for one in namespaces)


def test_without_teams_kueue_leaves_jobs_without_a_queue_alone() -> None:
    configuration = kueue_configuration(environment({}))

    assert configuration_problems(configuration, "config.kueue.x-k8s.io/v1beta2 Configuration") == []
    assert "manageJobsWithoutQueueName" not in configuration


def test_a_flavor_says_where_and_what_is_tolerated() -> None:
    taints = [
        {"key": "team", "value": "research", "effect": "NoSchedule"},
        {"key": "old", "effect": "PreferNoSchedule"},
    ]
    flavor = of_kind(made("kueue", node_groups__train__taints=taints), "ResourceFlavor")["train"]["spec"]

    assert flavor["nodeLabels"] == {"ultracluster/node-group": "train"}
    assert flavor["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "research", "effect": "NoSchedule"},
    ]


def test_what_nobody_is_guaranteed_is_there_for_everybody() -> None:
    env = made("kueue")

    assert nominal(of_kind(env, "Cohort")["teams"]) == {"train": 64 - 48}


def test_without_teams_there_is_one_queue_for_everybody() -> None:
    env = environment({})

    assert nominal(of_kind(env, "ClusterQueue")["everyone"]) == {"train": 0}
    assert nominal(of_kind(env, "Cohort")["teams"]) == {"train": 64}
    assert of_kind(env, "LocalQueue")["everyone"]["metadata"]["namespace"] == "default"


def test_options_of_a_team_reach_kueue() -> None:
    teams = {"research": {"quota": 8, "limit": 8, "lend": False, "weight": 3, "preempt_own": False}}
    queue = of_kind(made("kueue", teams=teams), "ClusterQueue")["research"]

    assert nominal(queue, "borrowingLimit") == {"train": 0}
    assert nominal(queue, "lendingLimit") == {"train": 0}
    assert queue["spec"]["fairSharing"] == {"weight": "3"}
    assert queue["spec"]["preemption"]["withinClusterQueue"] == "Never"
