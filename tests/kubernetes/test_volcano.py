"""Volcano: gangs placed by the network, and quotas that it keeps."""

from __future__ import annotations

from crd_fields import configuration_problems
from scheduling_support import made, of_kind, plain

from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.model import resolve


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
