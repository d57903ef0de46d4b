"""The pod of a model server: how large a part of a node it takes, and when it counts as well."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.model import Cluster, resolve
from ultracluster.serving.fit import serving_pool, share_of
from ultracluster.serving.pod import Server, memory_gib, pod_template, probes, share_resources


def cluster(base: str = "eks-p5en", **changes: Any) -> Cluster:
    return resolve(environment({key.replace("__", "."): one for key, one in changes.items()}, base=base))


def server(known: Cluster, gpus: int | None = None, **asked: Any) -> Server:
    pool = serving_pool(known, None)
    given: dict[str, Any] = {"engine": "vllm", "image": "a/b:1", "model": "/fsx/a", "replicas": 1, **asked}
    return Server(name="llama", pool=pool, share=share_of(pool, gpus), **given)


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_as_many_replicas_as_fit_by_gpus_fit_by_everything(gpus: int) -> None:
    known = cluster()
    one = share_resources(known, server(known, gpus, prefill=1))
    kind, times = serving_pool(known, None).instance_type, 8 // gpus

    assert int(one["cpu"]) * times <= kind.vcpu
    assert int(one["memory"].removesuffix("Gi")) * times <= kind.memory_gib
    assert int(one["vpc.amazonaws.com/efa"]) * times <= (kind.efa_interfaces or 0)
    assert int(one["hugepages-2Mi"].removesuffix("Mi")) * times <= 5120
    assert int(one["hugepages-2Mi"].removesuffix("Mi")) % 2 == 0


def test_tiered_storage_has_its_part_of_the_memory_first() -> None:
    assert memory_gib(cluster("hyperpod-eks-p5"), 1000) == 800
    assert memory_gib(cluster(), 1000) == 1000


def test_a_model_has_two_hours_to_load_and_then_seconds_to_answer() -> None:
    made = probes()

    assert made["startupProbe"]["periodSeconds"] * made["startupProbe"]["failureThreshold"] == 7200
    assert made["livenessProbe"]["periodSeconds"] * made["livenessProbe"]["failureThreshold"] < 300


def test_a_pod_writes_only_where_it_may() -> None:
    spec = pod_template(cluster(), server(cluster()))["spec"]
    mounts = {mount["name"]: mount for mount in spec["containers"][0]["volumeMounts"]}

    assert mounts["lustre"]["readOnly"], "models are read"
    assert not spec["automountServiceAccountToken"]
    assert {volume["name"] for volume in spec["volumes"]} == set(mounts)
