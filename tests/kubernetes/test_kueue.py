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


def test_kueue_admits_rayjobs_where_kuberay_is() -> None:
    configuration = kueue_configuration(environment({"orchestrator.kuberay": True}))

    assert configuration_problems(configuration, "config.kueue.x-k8s.io/v1beta2 Configuration") == []
    frameworks = configuration["integrations"]["frameworks"]
    assert {"ray.io/rayjob", "ray.io/raycluster"} <= set(frameworks)
    without = kueue_configuration(environment({}))["integrations"]["frameworks"]
    assert set(frameworks) - set(without) == {"ray.io/rayjob", "ray.io/raycluster"}


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


def test_a_mixed_layout_is_one_kind_of_which_quotas_count_gpus() -> None:
    layout = {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}
    whole = {"role": "compute", "instance_type": "p5en.48xlarge", "count": 1}
    env = environment(
        {
            "orchestrator.gpu_plugin": "gpu-operator",
            "node_groups.train.count": 2,
            "node_groups.train.mig_layout": layout,
            "node_groups.small": {**whole, "mig_profile": "1g.18gb"},
            "node_groups.whole": whole,
            "teams": {
                "research": {"quota": {"train": 5}, "limit": {"train": 7, "small": 3}},
                "product": {"quota": {"small": 4}},
            },
        }
    )
    queue, cohort = of_kind(env, "ClusterQueue")["research"], of_kind(env, "Cohort")["teams"]
    (mixed, plain_gpus) = queue["spec"]["resourceGroups"]
    names = ["nvidia.com/mig-1g.18gb", "nvidia.com/mig-2g.35gb", "nvidia.com/mig-3g.71gb"]

    def amounts(of: dict[str, Any], field: str) -> dict[str, list[int]]:
        return {one["name"]: [resource[field] for resource in one["resources"]] for one in of["flavors"]}

    # a resource is in one group only, and each of its flavors has all of them
    assert (mixed["coveredResources"], plain_gpus["coveredResources"]) == (names, ["nvidia.com/gpu"])
    assert amounts(mixed, "nominalQuota") == {"train": [10, 5, 5], "small": [0, 0, 0]}
    assert amounts(mixed, "borrowingLimit") == {"train": [4, 2, 2], "small": [3, 0, 0]}
    spare = cohort["spec"]["resourceGroups"][0]
    assert amounts(spare, "nominalQuota") == {"train": [22, 11, 11], "small": [8 * 7 - 4, 0, 0]}
