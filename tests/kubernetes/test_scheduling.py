"""Schedulers and their queues: objects before the tables of their fields, quotas that add up."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from botocore.session import get_session
from botocore.validate import validate_parameters
from crd_fields import TABLE, configuration_problems, problems
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes_support import MEMBER, environment
from ruamel.yaml import YAML

from ultracluster.catalog.eks import charts, kubernetes_releases
from ultracluster.config import Environment
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.task_governance import compute_quotas, governance_script, scheduler_config
from ultracluster.kubernetes.teams import team_rights
from ultracluster.model import resolve
from ultracluster.model.team_shares import PRIORITIES, pools
from ultracluster.slurm.accounts import slurm_accounts

TEAMS: dict[str, Any] = {
    "research": {"quota": 32, "limit": {"train": 48}, "members": [MEMBER]},
    "product": {"quota": {"train": 16}, "members": [MEMBER]},
}
SCHEDULERS = ["kueue", "volcano", "kai"]
GB200 = {"role": "compute", "instance_type": "p6e-gb200.36xlarge", "count": 2}
PLAIN = {"role": "compute", "instance_type": "g5.xlarge", "count": 2}


def plain(text: str) -> Any:
    return YAML(typ="safe").load(text)


def made(scheduler: str, **changes: Any) -> Environment:
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    return environment({"orchestrator.scheduler": scheduler, "teams": TEAMS, **keys})


def of_kind(env: Environment, kind: str) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in scheduling(resolve(env)).objects if one["kind"] == kind}


# --- every object ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", kubernetes_releases())
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_object_has_the_fields_of_its_definition(scheduler: str, release: str) -> None:
    parts = scheduling(resolve(made(scheduler, node_groups__rack=GB200 if scheduler == "kueue" else PLAIN)))
    every = [*parts.namespaces, *parts.rights, *parts.objects]

    assert len(every) > 8
    for one in every:
        assert problems(one, kubernetes=release) == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_field_that_is_none_is_found(scheduler: str) -> None:
    for one in scheduling(resolve(made(scheduler))).objects:
        assert problems({**one, "sepc": {}}) or one["kind"] == "PriorityClass"
        if "spec" in one:
            assert problems({**one, "spec": {**one["spec"], "queeu": 1}})


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("ClusterQueue", ("spec", "cohortName"), "No_Name"),
        ("ClusterQueue", ("spec", "queueingStrategy"), "FIFO"),
        ("ClusterQueue", ("spec", "fairSharing"), {"weight": "much"}),
        ("Topology", ("spec",), {}),
        ("LocalQueue", ("metadata",), {"name": "research"}),
        ("WorkloadPriorityClass", ("value",), "10"),
    ],
)
def test_a_value_that_does_not_fit_is_found(kind: str, path: tuple[str, ...], value: Any) -> None:
    one = json.loads(json.dumps(next(iter(of_kind(made("kueue"), kind).values()))))
    target = one
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = value

    assert problems(one)


def test_tables_are_of_the_releases_that_are_installed() -> None:
    of = {"kueue": "kueue", "volcano": "volcano", "KAI-Scheduler": "kai-scheduler", "jobset": "jobset"}
    for key, row in TABLE.items():
        chart = charts()[of[row["source"].split("/")[1]]]
        assert row["version"].removeprefix("v") == chart["version"].removeprefix("v"), key


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_chart_is_pinned_and_given_values_that_it_has(scheduler: str) -> None:
    chart = scheduling(resolve(made(scheduler))).chart

    assert chart is not None
    assert sorted(chart.values) == charts()[chart.name]["keys"]
    assert chart.version == charts()[chart.name]["version"]


def test_copies_of_charts_and_own_values_are_used() -> None:
    registry = "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/charts"
    own = {"kueue": {"controllerManager": {"replicas": 2}}}
    changes = {"orchestrator__chart_repository": registry, "orchestrator__chart_values": own}
    chart = scheduling(resolve(made("kueue", **changes))).chart

    assert chart is not None
    assert chart.repository == f"{registry}/kueue"
    assert chart.values["controllerManager"] == {"replicas": 2}


def test_without_a_scheduler_nothing_is_made() -> None:
    parts = scheduling(resolve(environment({"orchestrator.scheduler": "none"})))

    assert parts.chart is None and not parts.objects and not parts.namespaces


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


def test_volcano_places_gangs_by_the_network_and_keeps_quotas() -> None:
    chart = scheduling(resolve(made("volcano"))).chart
    assert chart is not None
    custom = chart.values["custom"]
    scheduler = plain(custom["scheduler_config_override"])
    plugins = [one["name"] for tier in scheduler["tiers"] for one in tier["plugins"]]

    assert configuration_problems(scheduler, "volcano-scheduler.conf") == []
    assert configuration_problems(custom["controller_config_override"], "volcano-controller.conf") == []
    assert {"gang", "capacity", "network-topology-aware"} <= set(plugins)
    assert "proportion" not in plugins, "the two exclude each other"
    assert "reclaim" in scheduler["actions"]


# --- topology --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheduler", "kind"), [("kueue", "Topology"), ("kai", "Topology")])
def test_levels_are_the_layers_of_the_network_down_to_the_node(scheduler: str, kind: str) -> None:
    teams = {"research": {"quota": 8}}
    found = of_kind(made(scheduler, teams=teams, node_groups__plain=PLAIN), kind)
    labels = {name: [one["nodeLabel"] for one in item["spec"]["levels"]] for name, item in found.items()}
    layer = "topology.k8s.aws/network-node-layer-"

    assert labels == {
        "network": [f"{layer}1", f"{layer}2", f"{layer}3", "kubernetes.io/hostname"],
        "host": ["kubernetes.io/hostname"],  # g5.xlarge has no EFA
    }


def test_ultraservers_are_a_level_where_nodes_have_its_label() -> None:
    plan = {"kind": "training-plan", "arn": "arn:aws:sagemaker:us-east-2:111122223333:training-plan/rack"}
    hyperpod = environment({"node_groups.rack": {**GB200, "capacity": plan}}, base="hyperpod-eks-p5")
    label = "topology.k8s.aws/ultraserver-id"

    assert label in json.dumps(of_kind(hyperpod, "Topology")["ultraserver"])
    assert of_kind(hyperpod, "ResourceFlavor")["rack"]["spec"]["topologyName"] == "ultraserver"
    assert label not in json.dumps(of_kind(made("kueue", node_groups__rack=GB200), "Topology"))


def test_nodes_that_are_started_for_pods_have_no_topology() -> None:
    elastic = {**PLAIN, "count": 0, "max_count": 4}
    env = made("kueue", teams={}, node_groups__more=elastic, orchestrator__karpenter={"groups": ["more"]})
    flavors = of_kind(env, "ResourceFlavor")

    assert "topologyName" not in flavors["more"]["spec"] and flavors["train"]["spec"]["topologyName"]
    assert set(of_kind(env, "Topology")) == {"network"}
    assert all(problems(one) == [] for one in scheduling(resolve(env)).objects)


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


# --- quotas ----------------------------------------------------------------------------------------------


def nominal(queue: dict[str, Any], field: str = "nominalQuota") -> dict[str, int]:
    return {
        flavor["name"]: resource[field]
        for group in queue["spec"].get("resourceGroups", [])
        for flavor in group["flavors"]
        for resource in flavor["resources"]
        if field in resource
    }


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


def test_volcano_guarantees_everything_that_a_job_takes_of_a_node() -> None:
    teams = {"research": {"quota": 12, "limit": 16, "lend": False}}
    spec = of_kind(made("volcano", teams=teams), "Queue")["research"]["spec"]

    assert spec["deserved"] == {
        "nvidia.com/gpu": "12",
        "cpu": "288",  # of 192 a node
        "memory": "3072Gi",
        "vpc.amazonaws.com/efa": "24",
        "hugepages-2Mi": "7680Mi",
    }
    assert spec["guarantee"] == {"resource": {"nvidia.com/gpu": "12"}}
    assert spec["capability"] == {"nvidia.com/gpu": "16"}


def test_priorities_are_the_same_everywhere() -> None:
    for scheduler, kind in (("kueue", "WorkloadPriorityClass"), ("volcano", "PriorityClass")):
        classes = of_kind(made(scheduler), kind)
        assert {name: one["value"] for name, one in classes.items()} == PRIORITIES
    assert {one["Name"]: one["Weight"] for one in scheduler_config()["PriorityClasses"]} == PRIORITIES


AMOUNTS = st.integers(min_value=0, max_value=64)


@st.composite
def shared(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Teams whose quotas fit into the 64 GPUs of eks-p5en, and the 32 of hyperpod-eks-p5 or prod."""
    left = 32
    made: dict[str, dict[str, Any]] = {}
    for name in draw(st.lists(st.sampled_from(["a", "b1", "c-2", "vision", "nlp"]), min_size=1, unique=True)):
        quota = draw(st.integers(min_value=0, max_value=left))
        left -= quota
        by_group = draw(st.booleans())
        made[name] = {"quota": {"train": quota} if by_group else quota}
        if draw(st.booleans()):
            made[name]["limit"] = draw(st.integers(min_value=max(1, quota), max_value=32))
    return made


def _asked(teams: dict[str, dict[str, Any]]) -> dict[str, int]:
    return {
        name: team["quota"] if isinstance(team["quota"], int) else sum(team["quota"].values())
        for name, team in teams.items()
    }


def _given(scheduler: str, teams: dict[str, dict[str, Any]]) -> tuple[dict[str, int], int]:
    """Guaranteed accelerators of each team in what is rendered, and how many there are."""
    if scheduler == "task-governance":
        env = environment({"orchestrator.task_governance": True, "teams": teams}, base="hyperpod-eks-p5")
        found = {
            name: sum(one["Accelerators"] for one in request["ComputeQuotaConfig"]["ComputeQuotaResources"])
            for name, request in compute_quotas(resolve(env)).items()
        }
    elif scheduler == "slurm":
        env = environment({"teams": teams, "node_groups.train.count": 4}, base="prod")
        lines = re.findall(r"^account (\S+) (\d+) ", slurm_accounts(resolve(env)), re.MULTILINE)
        found = {name: int(share) for name, share in lines}
    else:
        env = environment({"orchestrator.scheduler": scheduler, "teams": teams})
        if scheduler == "kueue":
            queues = of_kind(env, "ClusterQueue")
            found = {name: sum(nominal(queues[name]).values()) for name in teams}
            spare = sum(nominal(of_kind(env, "Cohort")["teams"]).values())
            assert sum(found.values()) + spare == 64
        elif scheduler == "volcano":
            specs = {name: one["spec"] for name, one in of_kind(env, "Queue").items()}
            found = {
                name: int(spec.get("deserved", {}).get("nvidia.com/gpu", 0)) for name, spec in specs.items()
            }
        else:
            specs = {name: one["spec"] for name, one in of_kind(env, "Queue").items()}
            assert specs.pop("teams")["resources"]["gpu"]["quota"] == sum(_asked(teams).values())
            found = {name: spec["resources"]["gpu"]["quota"] for name, spec in specs.items()}
    return found, sum(pool.total for pool in pools(resolve(env)))


@pytest.mark.parametrize("scheduler", [*SCHEDULERS, "task-governance", "slurm"])
@given(teams=shared())
@settings(max_examples=25, deadline=None)
def test_quotas_are_what_was_asked_and_never_more_than_there_is(
    scheduler: str, teams: dict[str, dict[str, Any]]
) -> None:
    found, there = _given(scheduler, teams)

    assert found == _asked(teams)
    assert sum(found.values()) <= there


@given(quotas=st.lists(AMOUNTS, min_size=1, max_size=4), explicit=AMOUNTS)
@settings(max_examples=40, deadline=None)
def test_over_two_groups_no_group_gives_more_than_it_has(quotas: list[int], explicit: int) -> None:
    teams: dict[str, Any] = {f"team-{number}": {"quota": quota} for number, quota in enumerate(quotas)}
    teams["explicit"] = {"quota": {"more": min(explicit, 8)}}
    more = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 2}
    env = environment({"node_groups.more": more, "teams": teams})
    if sum(quotas) + min(explicit, 8) > 72:
        with pytest.raises(ValueError, match="not there"):
            scheduling(resolve(env))
        return
    queues = [nominal(one) for one in of_kind(env, "ClusterQueue").values()]
    spare = nominal(of_kind(env, "Cohort")["teams"])

    for group, there in (("train", 64), ("more", 8)):
        assert sum(queue[group] for queue in queues) + spare[group] == there
        assert spare[group] >= 0
    assert sum(sum(queue.values()) for queue in queues) == sum(quotas) + min(explicit, 8)


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


# --- HyperPod's task governance ---------------------------------------------------------------------------

GOVERNED: dict[str, Any] = {
    "orchestrator.task_governance": True,
    "orchestrator.scheduler": "none",
    "teams": {
        "research": {"quota": 16, "limit": 24, "weight": 5},
        "product": {"quota": 8, "limit": 8, "lend": False, "preempt_own": False},
        "guests": {},
    },
}


def test_the_service_s_own_model_takes_every_quota() -> None:
    env = environment(GOVERNED, base="hyperpod-eks-p5")
    service = get_session().get_service_model("sagemaker")
    arn = "arn:aws:sagemaker:us-east-2:111122223333:cluster/abcdefghijkl"
    shape = service.operation_model("CreateComputeQuota").input_shape
    for request in compute_quotas(resolve(env)).values():
        validate_parameters({**request, "ClusterArn": arn}, shape)
    policy = {"Name": "teams", "ClusterArn": arn, "SchedulerConfig": scheduler_config()}
    validate_parameters(policy, service.operation_model("CreateClusterSchedulerConfig").input_shape)
    strategies = service.shape_for("ResourceSharingStrategy").enum
    found = [one["ComputeQuotaConfig"] for one in compute_quotas(resolve(env)).values()]

    assert [one["ResourceSharingConfig"]["Strategy"] for one in found] == [
        "LendAndBorrow",
        "DontLend",
        "LendAndBorrow",
    ]
    assert {one["ResourceSharingConfig"]["Strategy"] for one in found} <= set(strategies)
    assert {one["PreemptTeamTasks"] for one in found} <= set(service.shape_for("PreemptTeamTasks").enum)
    assert found[0]["ResourceSharingConfig"]["AbsoluteBorrowLimits"] == [
        {"InstanceType": "ml.p5.48xlarge", "Accelerators": 8}
    ]
    types = service.shape_for("ClusterInstanceType").enum
    assert {one["InstanceType"] for each in found for one in each["ComputeQuotaResources"]} <= set(types)


def test_mig_instances_are_counted_as_the_service_names_them() -> None:
    changes = {
        "orchestrator.task_governance": True,
        "orchestrator.gpu_plugin": "gpu-operator",
        "node_groups.train.mig_profile": "1g.10gb",
        "teams": {"research": {"quota": 14}},
    }
    (resources,) = compute_quotas(resolve(environment(changes, base="hyperpod-eks-p5")))["research"][
        "ComputeQuotaConfig"
    ]["ComputeQuotaResources"]
    known = get_session().get_service_model("sagemaker").shape_for("MIGProfileType").enum

    assert resources["AcceleratorPartition"] == {"Type": "mig-1g.10gb", "Count": 14}
    assert resources["AcceleratorPartition"]["Type"] in known


def test_the_script_asks_for_what_the_commands_have(tmp_path: Path) -> None:
    file = tmp_path / "quotas.sh"
    file.write_text(governance_script(resolve(environment(GOVERNED, base="hyperpod-eks-p5"))))
    subprocess.run(["shellcheck", file], check=True)
    subprocess.run(["shfmt", "-d", "-i", "2", "-ci", file], check=True)
    service = get_session().get_service_model("sagemaker")
    text = file.read_text()

    for operation, command in (
        ("CreateComputeQuota", "create-compute-quota"),
        ("UpdateComputeQuota", "update-compute-quota"),
        ("ListComputeQuotas", "list-compute-quotas"),
        ("CreateClusterSchedulerConfig", "create-cluster-scheduler-config"),
        ("UpdateClusterSchedulerConfig", "update-cluster-scheduler-config"),
        ("ListClusterSchedulerConfigs", "list-cluster-scheduler-configs"),
    ):
        members = service.operation_model(operation).input_shape.members  # pyright: ignore[reportAttributeAccessIssue]
        options = {re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in members}
        used = re.search(rf"aws sagemaker {command}((?:[^\n]|(?<=\\)\n)*)", text)
        assert used
        own = set(re.findall(r"--([a-z-]+)", used[1])) - {"output", "query"}
        assert own <= options, own - options
    for summary, read in (
        ("ComputeQuotaSummary", {"ComputeQuotaId", "ComputeQuotaVersion", "Name"}),
        ("ClusterSchedulerConfigSummary", {"ClusterSchedulerConfigId", "ClusterSchedulerConfigVersion"}),
    ):
        assert read <= set(service.shape_for(summary).members)


@pytest.mark.parametrize("known", [False, True])
def test_the_script_makes_what_is_missing_and_updates_what_is_there(known: bool, tmp_path: Path) -> None:
    """With a stand-in for the AWS CLI that writes down what it is asked, and knows everything or nothing."""
    aws = tmp_path / "aws"
    found = "id-1\t7" if known else "None"
    aws.write_text(
        "#!/usr/bin/env bash\n"
        f'echo "$2" "${{@:3}}" >>{tmp_path}/asked\n'
        f"case $2 in describe-*) echo arn:cluster ;; list-*) printf '{found}\\n' ;; esac\n"
    )
    aws.chmod(0o755)
    text = governance_script(resolve(environment(GOVERNED, base="hyperpod-eks-p5")))
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["bash"], input=text, text=True, env=path, check=True)
    asked = (tmp_path / "asked").read_text().splitlines()
    verb = "update" if known else "create"

    made = [line.split()[0] for line in asked if not line.startswith(("describe-", "list-"))]
    assert made == [f"{verb}-cluster-scheduler-config", *[f"{verb}-compute-quota"] * 3]
    where = (
        "--compute-quota-id id-1 --target-version 7" if known else "--cluster-arn arn:cluster --name research"
    )
    assert any(line.startswith(f"{verb}-compute-quota {where}") for line in asked)
