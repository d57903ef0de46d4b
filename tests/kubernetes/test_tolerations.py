"""Pods of add-ons, charts and manifests tolerate the taints of system groups."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any, cast

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template
from rules_support import changed, environment_data, loaded

import ultracluster.catalog
from ultracluster.catalog.eks import charts
from ultracluster.clusters.eks.addons import EksAddons
from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.config import Environment
from ultracluster.config.kubernetes import Eks
from ultracluster.kubernetes.charts import device_charts, job_charts
from ultracluster.kubernetes.karpenter import karpenter_charts
from ultracluster.kubernetes.mpi_operator import mpi_operator
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.tolerations import system_tolerations, with_tolerations
from ultracluster.model import resolve

pytestmark = pytest.mark.slow

TAINT = {"key": "dedicated", "value": "system", "effect": "NoSchedule"}
SOFT = {"key": "soft", "effect": "PreferNoSchedule"}
WANTED = {"key": "dedicated", "operator": "Equal", "value": "system", "effect": "NoSchedule"}
USUAL = {"key": "CriticalAddonsOnly", "operator": "Exists"}


def environment(scheduler: str = "kueue", **more: Any) -> Environment:
    changes = {
        "node_groups.system.taints": [TAINT, SOFT],
        "node_groups.burst": {"role": "compute", "instance_type": "g6e.12xlarge", "count": 0, "max_count": 8},
        "orchestrator.karpenter": {"groups": ["burst"]},
        "orchestrator.gpu_plugin": "gpu-operator",
        "orchestrator.scheduler": scheduler,
        "orchestrator.leader_worker_set": True,
        "orchestrator.kubeflow_trainer": True,
        "orchestrator.kuberay": True,
        **more,
    }
    return loaded(changed(environment_data("eks-p5en"), changes)).environment


def at(values: Any, key: str) -> Any:
    return reduce(lambda found, part: found[part], key.split("."), values)


@pytest.mark.parametrize("scheduler", ["kueue", "volcano", "kai"])
def test_every_chart_with_pods_on_system_nodes_tolerates_their_taints(scheduler: str) -> None:
    cluster = resolve(environment(scheduler))
    assert isinstance(cluster.settings, Eks)
    chart = scheduling(cluster).chart
    assert chart
    everything = [
        *device_charts(cluster),
        *job_charts(cluster),
        chart,
        *karpenter_charts(cluster, cluster.settings, queue="q"),
    ]

    assert {"gpu-operator", "jobset", "lws", "kubeflow-trainer", "kuberay-operator", "karpenter"} < {
        one.name for one in everything
    }
    for one in everything:
        for key in charts()[one.name].get("tolerations", ()):
            assert at(one.values, key) == [USUAL, WANTED], (one.name, key)


def test_every_chart_that_runs_once_says_where_its_tolerations_stand() -> None:
    file = Path(ultracluster.catalog.__file__).with_name("system_pods.json")
    once = json.loads(file.read_text(encoding="utf-8"))["once"]
    for name in charts().keys() & once.keys():
        assert charts()[name].get("tolerations"), name


def test_without_taints_nothing_is_set() -> None:
    made = loaded(environment_data("eks-p5en")).environment
    assert system_tolerations(resolve(made)) == []
    assert all("tolerations" not in json.dumps(one.values) for one in job_charts(resolve(made)))


def test_values_of_ones_own_come_on_top() -> None:
    own: Any = {"jobset": {"controller": {"tolerations": [{"operator": "Exists"}]}}}
    (jobset,) = [
        one
        for one in job_charts(resolve(environment("kueue", **{"orchestrator.chart_values": own})))
        if one.name == "jobset"
    ]
    assert at(jobset.values, "controller.tolerations") == [{"operator": "Exists"}]


def test_the_mpi_operator_tolerates_them_too() -> None:
    deployment = mpi_operator(tolerations=system_tolerations(resolve(environment())))[-1]
    assert deployment["spec"]["template"]["spec"]["tolerations"] == [USUAL, WANTED]
    assert "tolerations" not in mpi_operator()[-1]["spec"]["template"]["spec"]


def test_other_values_stay_as_they_are() -> None:
    values = {"controller": {"replicas": 2}}
    made = with_tolerations(values, ["controller.tolerations"], [USUAL])
    assert made == {"controller": {"replicas": 2, "tolerations": [USUAL]}}
    assert values == {"controller": {"replicas": 2}}


def test_addons_of_system_nodes_tolerate_them() -> None:
    stack = Stack(App(), "test")
    EksAddons(
        stack,
        "Addons",
        cluster=EksControlPlane.from_cluster_attributes(
            stack,
            "Plane",
            cluster_name="large",
            kubectl_handler_arn="arn:aws:lambda:us-east-2:111122223333:function:handler",
            kubernetes_version="1.36",
        ),
        key=cast("kms.IKey", kms.Key(stack, "Key")),
        file_systems=True,
        after=[],
        tolerations=system_tolerations(resolve(environment())),
    )
    made = Template.from_stack(stack).find_resources("AWS::EKS::Addon").values()
    values = {
        one["Properties"]["AddonName"]: json.loads(one["Properties"].get("ConfigurationValues", "{}"))
        for one in made
    }
    assert values["coredns"] == {"tolerations": [USUAL, WANTED]}
    for driver in ("aws-ebs-csi-driver", "aws-fsx-csi-driver"):
        assert values[driver] == {"controller": {"tolerations": [USUAL, WANTED]}}
    assert values["eks-node-monitoring-agent"] == {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}}
