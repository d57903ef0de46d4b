"""What `observability:` comes to: who collects, and what nodes are told."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_schema import faults
from rules_support import environment_data, loaded

from ultracluster.model import Cluster, resolve
from ultracluster.model.cluster_json import script_configuration
from ultracluster.model.endpoints import made_endpoints
from ultracluster.model.node_price import usd_per_hour
from ultracluster.model.observability import (
    collects,
    collects_on_nodes,
    metrics_settings,
    nodes_write,
    uses_addon,
    uses_extension,
    workspace_region,
    writes_metrics,
)
from ultracluster.model.perimeter import foreign_arns
from ultracluster.model.quota_needs import needs

WORKSPACE = "arn:aws:aps:eu-west-1:222233334444:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
WRITER = "arn:aws:iam::222233334444:role/writer"


def cluster(base: str, **observability: Any) -> Cluster:
    return resolve(loaded({**environment_data(base), "observability": observability}).environment)


@pytest.mark.parametrize("base", ["dev", "parallelcluster-p5", "pcs-p6-b200"])
def test_nodes_of_slurm_are_told_in_the_form_that_they_read(base: str) -> None:
    made = cluster(base, workspace={"arn": WORKSPACE, "role_arn": WRITER}, scrape_seconds=60)
    for group in made.groups:
        told = script_configuration(made, group)
        assert faults(told) == []
        metrics: Any = told["metrics"]
        assert metrics["labels"] == {"cluster": made.cluster_name, "node_group": group}
        assert (metrics["region"], metrics["role_arn"], metrics["scrape_seconds"]) == (
            "eu-west-1",
            WRITER,
            60,
        )
    assert faults(script_configuration(made)) == []


@pytest.mark.parametrize(
    ("base", "asks"),
    [("dev", "controller"), ("parallelcluster-p5", "controller"), ("pcs-p6-b200", "login")],
)
def test_slurm_is_asked_where_it_runs_or_where_people_log_in(base: str, asks: str) -> None:
    made = cluster(base)
    told = {one.role: metrics_settings(made, name).get("slurm") for name, one in made.groups.items()}
    assert [role for role, asked in told.items() if asked] == [asks]


@pytest.mark.parametrize("base", ["hyperpod-eks-p5", "eks-p5en"])
def test_on_kubernetes_pods_collect_and_nodes_are_told_nothing(base: str) -> None:
    made = cluster(base)
    assert (collects(made), collects_on_nodes(made)) == (True, False)
    assert metrics_settings(made) == {}


def test_without_a_word_nothing_is_told_or_written() -> None:
    made = resolve(loaded(environment_data("dev")).environment)
    assert "metrics" not in script_configuration(made)
    assert not (collects(made) or writes_metrics(made) or nodes_write(made))


@pytest.mark.parametrize(
    ("base", "addon", "extension", "nodes"),
    [("dev", False, True, True), ("hyperpod-eks-p5", True, False, False)],
)
def test_hyperpod_s_own_collection_is_never_beside_ours(
    base: str, *, addon: bool, extension: bool, nodes: bool
) -> None:
    made = cluster(base, kind="hyperpod")
    assert (uses_addon(made), uses_extension(made), nodes_write(made)) == (addon, extension, nodes)
    assert writes_metrics(made)
    assert not collects(made)


def test_a_budget_of_series_is_passed_on() -> None:
    made = cluster("dev", budget_series_per_node=2500)
    assert metrics_settings(made)["max_series_per_node"] == 2500
    assert workspace_region(made) == made.region


def test_a_node_is_told_its_price_or_nothing() -> None:
    made = cluster("pcs-p6-b200")
    told = {name: metrics_settings(made, name).get("usd_per_hour") for name in made.groups}
    assert told == {
        name: None if price is None else round(price, 6)
        for name, price in ((one.name, usd_per_hour(made, one)) for one in made.groups.values())
    }
    assert any(told.values()) and 0 not in told.values()
    assert "usd_per_hour" not in metrics_settings(made), "a file that several groups read"


@pytest.mark.parametrize(
    ("base", "wanted", "made"),
    [
        ("dev", {}, True),
        ("eks-p5en", {}, True),
        ("hyperpod-eks-p5", {"kind": "hyperpod"}, True),
        ("dev", {"kind": "cloudwatch"}, False),
    ],
)
def test_a_closed_network_has_the_endpoint_that_metrics_go_through(
    base: str, wanted: dict[str, Any], *, made: bool
) -> None:
    data = {**environment_data(base), "observability": wanted}
    data["network"] = {**data["network"], "egress": "closed"}
    services = {one.service for one in made_endpoints(resolve(loaded(data).environment))}
    assert ("aps-workspaces" in services) == made


def test_a_perimeter_has_to_name_the_account_of_the_workspace() -> None:
    wanted = {"workspace": {"arn": WORKSPACE, "role_arn": WRITER}}
    data = {**environment_data("dev"), "account": "111122223333", "observability": wanted}
    place = ("observability", "workspace")
    assert list(foreign_arns(loaded(data).environment)) == [
        ((*place, "arn"), WORKSPACE),
        ((*place, "role_arn"), WRITER),
    ]
    data["network"] = {**data["network"], "perimeter": {"accounts": ["222233334444"]}}
    assert list(foreign_arns(loaded(data).environment)) == []


@pytest.mark.parametrize(
    ("wanted", "quotas"),
    [
        ({}, {"aps": 1}),
        ({"grafana": {}}, {"aps": 1, "grafana": 1}),
        ({"workspace": {"arn": WORKSPACE}}, {}),
    ],
)
def test_what_is_made_counts_against_quotas(wanted: dict[str, Any], quotas: dict[str, int]) -> None:
    found = {need.quota.service: need.amount for need in needs(cluster("dev", **wanted))}
    assert {name: found[name] for name in ("aps", "grafana") if name in found} == quotas
