"""What people ask of a model server, without the command: objects and notes, or the reason."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.model import resolve
from ultracluster.serving.request import ServingWishes, endpoint_request, plain_request

CLUSTER = resolve(environment({}))


def wishes(**more: Any) -> ServingWishes:
    return ServingWishes(
        **{"name": "llama", "model": "/fsx/llama", "image": "vllm/vllm-openai:v0.19.1", **more}
    )


def test_objects_come_with_where_they_are_reached() -> None:
    served = plain_request(CLUSTER, wishes(gpus=4))
    assert [one["kind"] for one in served.objects] == ["Service", "Deployment"]
    assert "http://llama:8000/v1" in served.notes[0]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"name": "A b"}, "the name 'A b' has characters"),
        ({"team": "a"}, "there is no team `a`: the environment has none"),
        ({"arguments": ("--port=1",)}, "the command writes --port itself"),
        ({"apart": "1:1", "replicas": 2}, "--disaggregate 1:2"),
    ],
)
def test_the_reason_is_said(more: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        plain_request(CLUSTER, wishes(**more))


def test_endpoints_are_of_hyperpod() -> None:
    with pytest.raises(ValueError, match="endpoints are HyperPod's on EKS, and this is eks"):
        endpoint_request(CLUSTER, wishes())
