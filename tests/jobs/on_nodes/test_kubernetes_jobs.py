"""Pods that would end with a node, as an API over TLS tells them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from kubernetes_service import kubernetes_node, open_api, serving

from ultracluster.account.nodes.node import Node
from ultracluster.jobs.on_nodes.kubernetes_jobs import jobs_on_kubernetes
from ultracluster.jobs.on_nodes.running_job import Job

pytestmark = pytest.mark.slow  # an API that listens

FIRST, SECOND = "i-00000000000000010", "i-00000000000000011"
NODES = [Node(FIRST, "gpu", "running"), Node(SECOND, "gpu", "running")]


def pod(name: str, owner: str = "", *, phase: str = "Running", gpus: int = 0) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"}
    kind, _, of = owner.partition("/")
    return {
        "metadata": {
            "name": name,
            "namespace": "research",
            "labels": {},
            **({"ownerReferences": [{"kind": kind, "name": of}]} if owner else {}),
        },
        "spec": {"containers": [{"resources": {"limits": limits}}]},
        "status": {"phase": phase},
    }


def test_pods_of_jobs_are_named_and_those_that_come_again_are_not(tmp_path: Path) -> None:
    label = {"training.kubeflow.org/job-name": "llama"}
    worker = pod("llama-worker-0", "PyTorchJob/llama")
    worker["metadata"]["labels"] = label
    other = {**worker, "metadata": {**worker["metadata"], "name": "llama-worker-1"}}
    by_node = {
        FIRST: [
            worker,
            pod("dns", "ReplicaSet/coredns"),
            pod("cni", "DaemonSet/aws-node"),
            pod("static", "Node/i-1"),
            pod("done", "Job/old", phase="Succeeded"),
            pod("server", "ReplicaSet/vllm-5f", gpus=8),
        ],
        f"hyperpod-{SECOND}": [other, pod("notebook")],
    }

    def pods(path: str, body: Any) -> dict[str, Any]:
        asked = parse_qs(urlparse(path).query)
        listed = by_node[asked["fieldSelector"][0].removeprefix("spec.nodeName=")]
        start = int(asked.get("continue", ["0"])[0])  # a page for each pod
        more = {"continue": str(start + 1)} if start + 1 < len(listed) else {}
        return {"items": listed[start : start + 1], "metadata": more}

    with serving(tmp_path) as api:
        names = (FIRST, f"hyperpod-{SECOND}", "i-x")
        api.objects["GET", "/api/v1/nodes"] = (200, {"items": [kubernetes_node(name) for name in names]})
        api.objects["GET", "/api/v1/pods"] = (200, pods)
        found = jobs_on_kubernetes(NODES, lambda: open_api(api))
        none = jobs_on_kubernetes([Node("i-00000000000000099", "gpu", "running")], lambda: open_api(api))

    assert found.unknown == ""
    assert found.jobs == (
        Job("research/llama", "research", "llama", (FIRST, SECOND)),
        Job("research/vllm-5f", "research", "vllm-5f", (FIRST,)),
        Job("research/notebook", "research", "notebook", (SECOND,)),
    )
    assert str(found.jobs[0]) == f"job research/llama of research on {FIRST}, {SECOND}"
    assert none.jobs == () and none.unknown == ""


def test_an_api_that_refuses_leaves_it_unknown(tmp_path: Path) -> None:
    with serving(tmp_path) as api:
        api.objects["GET", "/api/v1/nodes"] = (200, {"items": [kubernetes_node(FIRST)]})
        api.objects["GET", "/api/v1/pods"] = (403, {"message": "pods is forbidden"})
        found = jobs_on_kubernetes(NODES, lambda: open_api(api))

    assert found.jobs == () and "Kubernetes refuses with 403: pods is forbidden" in found.unknown
