"""Nodes closed to new jobs and opened again, on a Kubernetes API over TLS; test_slurm.py has Slurm."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes_service import Api, kubernetes_node, open_api, serving

from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.shell import Answer
from ultracluster.jobs.on_nodes import cordon

pytestmark = pytest.mark.slow  # an API that listens

FIRST, SECOND, THIRD = (f"i-0000000000000001{number}" for number in range(3))
NODES = [Node(name, "gpu", "running") for name in (FIRST, SECOND, THIRD)]


class NoShell:
    def run(self, nodes: Any, script: str, *, seconds: int = 90) -> dict[str, Answer]:
        raise AssertionError("Kubernetes is asked by its API")


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Any:
    traits = SimpleNamespace(kubernetes=True, own_stack=False)
    return SimpleNamespace(account=None, wanted=SimpleNamespace(traits=traits, cluster_name="train"))


def _patched(api: Api) -> list[tuple[str, Any]]:
    return [(path.rpartition("/")[2], body) for method, path, body in api.asked if method == "PATCH"]


def test_only_nodes_that_took_jobs_are_closed_and_opened(
    tmp_path: Path, fleet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that a person has cordoned stays cordoned; one that was replaced is not known any more."""
    cordoned = kubernetes_node(SECOND)
    cordoned["spec"]["unschedulable"] = True
    with serving(tmp_path) as api:
        monkeypatch.setattr(cordon, "KubernetesApi", lambda account, name: open_api(api))
        listed = [kubernetes_node(FIRST), cordoned, kubernetes_node(THIRD), kubernetes_node("i-x")]
        api.objects["GET", "/api/v1/nodes"] = (200, {"items": listed})
        for name in (FIRST, THIRD):
            api.objects["PATCH", f"/api/v1/nodes/{name}"] = (200, {})
        closed = cordon.cordon_nodes(fleet, NODES, NoShell(), "replace")
        assert closed == cordon.Cordoned({FIRST: FIRST, THIRD: THIRD})
        del api.objects["PATCH", f"/api/v1/nodes/{THIRD}"]
        assert cordon.uncordon_nodes(fleet, closed, NoShell()) == ""
        patched = _patched(api)

    shut, open_ = {"spec": {"unschedulable": True}}, {"spec": {"unschedulable": None}}
    assert patched == [(FIRST, shut), (THIRD, shut), (FIRST, open_), (THIRD, open_)]


def test_nodes_that_cannot_be_closed_are_said(
    tmp_path: Path, fleet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path) as api:
        monkeypatch.setattr(cordon, "KubernetesApi", lambda account, name: open_api(api))
        api.objects["GET", "/api/v1/nodes"] = (200, {"items": [kubernetes_node(FIRST)]})
        api.objects["PATCH", f"/api/v1/nodes/{FIRST}"] = (403, {"message": "nodes is forbidden"})
        closed = cordon.cordon_nodes(fleet, NODES, NoShell(), "delete")
        stays = cordon.uncordon_nodes(fleet, cordon.Cordoned({FIRST: FIRST}), NoShell())

    assert closed.names == {} and "Kubernetes refuses with 403: nodes is forbidden" in closed.unknown
    assert "nodes is forbidden" in stays


def test_a_reboot_on_parallelcluster_drains_nothing(fleet: Any) -> None:
    """Its daemon terminates a node that is drained."""
    fleet.wanted.traits.own_stack = True
    assert cordon.cordon_nodes(fleet, NODES, NoShell(), "reboot") == cordon.Cordoned()
