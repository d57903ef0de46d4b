"""Schedulers and their queues: objects before the tables of their fields, quotas that add up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from crd_fields import TABLE, problems
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes_support import environment
from scheduling_support import GB200, PLAIN, SCHEDULERS, made, nominal, of_kind

from ultracluster.catalog.eks import charts, kubernetes_releases
from ultracluster.catalog.hyperpod_eks import hyperpod_addon_version
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.task_governance import compute_quotas, scheduler_config
from ultracluster.model import resolve
from ultracluster.model.state_documents import teams_document
from ultracluster.model.team_shares import PRIORITIES, pools

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
    of = {"KAI-Scheduler": "kai-scheduler", "kuberay": "kuberay-operator"}
    for key, row in TABLE.items():
        repository = row["source"].split("/")[1]
        if repository == "jupyter-k8s":  # of an add-on, whose release has the definitions of this one
            assert str(hyperpod_addon_version("amazon-sagemaker-spaces")).startswith(
                row["version"].rpartition(".")[0]
            )
            continue
        if row["source"].startswith(("aws/", "kubeflow/")):
            continue  # of an add-on, whose version AWS chooses; of an operator that others install
        chart = charts()[of.get(repository) or repository]
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


TREE: dict[str, Any] = {
    "vision": {"parent": "science", "quota": 24},
    "science": {"quota": 48, "limit": {"train": 56}, "weight": 3, "lend": False},
    "speech": {"parent": "science", "quota": {"train": 16}, "limit": {"train": 20}, "weight": 2},
    "words": {"parent": "speech", "quota": 9},
    "product": {"quota": 8},
}


def test_teams_in_teams_are_a_tree_of_cohorts() -> None:
    env = made("kueue", teams=TREE)
    assert not [one for one in scheduling(resolve(env)).objects if problems(one)]
    cohorts, queues = of_kind(env, "Cohort"), of_kind(env, "ClusterQueue")

    assert {name: one["spec"].get("parentName") for name, one in cohorts.items()} == {
        "teams": None, "science": "teams", "speech": "science",
    }  # fmt: skip
    assert {name: one["spec"]["cohortName"] for name, one in queues.items()} == {
        "science": "science", "vision": "science", "speech": "speech", "words": "speech", "product": "teams",
    }  # fmt: skip
    # each accelerator is somewhere once
    own = {name: nominal(one)["train"] for name, one in queues.items()}
    assert own == {"science": 8, "vision": 24, "speech": 7, "words": 9, "product": 8}
    assert nominal(cohorts["teams"]) == {"train": 64 - sum(own.values())}
    # limit, weight and what is kept are of all together
    assert nominal(cohorts["science"]) == {"train": 0}
    assert nominal(cohorts["science"], "borrowingLimit") == {"train": 8}
    assert nominal(cohorts["science"], "lendingLimit") == {"train": 0}
    assert cohorts["science"]["spec"]["fairSharing"] == {"weight": "3"}
    assert nominal(queues["science"], "borrowingLimit") == nominal(queues["science"], "lendingLimit") == {}
    assert nominal(cohorts["speech"], "borrowingLimit") == {"train": 4}


@pytest.mark.parametrize("scheduler", ["kai", "volcano"])
def test_teams_in_teams_are_queues_below_queues(scheduler: str) -> None:
    teams = {name: {key: one[key] for key in ("parent", "quota") if key in one} for name, one in TREE.items()}
    teams["words"]["quota"] = 5
    teams["letters"] = {"parent": "speech", "quota": 3}
    env = made(scheduler, teams=teams)
    assert not [one for one in scheduling(resolve(env)).objects if problems(one)]
    queues = {name: one["spec"] for name, one in of_kind(env, "Queue").items()}
    key = "parentQueue" if scheduler == "kai" else "parent"
    names = list(queues)

    assert all(names.index(one[key]) < names.index(name) for name, one in queues.items() if one.get(key))
    assert queues["words"][key] == "speech"
    if scheduler == "kai":
        assert queues["teams"]["resources"]["gpu"]["quota"] == 56
        assert queues["speech"]["resources"]["gpu"]["quota"] == 16
        return
    for name, spec in queues.items():
        below = [one["deserved"] for one in queues.values() if one.get("parent") == name]
        for resource, amount in spec["deserved"].items():
            assert sum(_number(one.get(resource, "0")) for one in below) <= _number(amount), (name, resource)
    chart = scheduling(resolve(env)).chart
    assert chart and "enableHierarchy: true" in chart.values["custom"]["scheduler_config_override"]


def _number(quantity: str) -> int:
    return int(quantity.removesuffix("Gi").removesuffix("Mi"))


def test_without_a_scheduler_nothing_is_made() -> None:
    parts = scheduling(resolve(environment({"orchestrator.scheduler": "none"})))

    assert parts.chart is None and not parts.objects and not parts.namespaces


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
        found = {one["name"]: one["shares"] for one in teams_document(resolve(env))["accounts"]}
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
@settings(max_examples=examples(6), deadline=None)
def test_quotas_are_what_was_asked_and_never_more_than_there_is(
    scheduler: str, teams: dict[str, dict[str, Any]]
) -> None:
    found, there = _given(scheduler, teams)

    assert found == _asked(teams)
    assert sum(found.values()) <= there


@given(quotas=st.lists(AMOUNTS, min_size=1, max_size=4), explicit=AMOUNTS)
@settings(max_examples=examples(8), deadline=None)
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
