"""Requests to HyperPod: in chunks within the API's limits, each node asked for and answered once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from depth import examples
from hyperpod_service import HyperPod, account, answer, group, node
from hypothesis import given, settings
from hypothesis import strategies as st
from nodes_support import node_id

from ultracluster.account.nodes import hyperpod as hyperpod_nodes
from ultracluster.account.nodes import hyperpod_requests
from ultracluster.account.nodes.node import Node


@given(
    st.sets(st.integers(0x100, 0x2FF), min_size=1, max_size=130),
    st.sampled_from(["reboot", "replace", "delete"]),
    st.data(),
)
@settings(max_examples=examples(8), deadline=None)
def test_every_node_is_asked_for_once_and_answered_once(numbers: set[int], action: Any, data: Any) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.nodes = [node(number) for number in sorted(numbers)]
    waiting = data.draw(st.sets(st.sampled_from(sorted(numbers))))
    if action == "delete":  # only places without an instance go by their logical id
        for entry in service.nodes:
            if int(entry["InstanceId"][2:], 16) in waiting:
                entry["InstanceId"] = ""
    names = [entry["InstanceId"] or entry["NodeLogicalId"] for entry in service.nodes]
    service.failing = dict.fromkeys(data.draw(st.sets(st.sampled_from(names))), "busy")
    cluster = hyperpod_nodes.read_cluster(aws_account, "dev")
    nodes = hyperpod_nodes.list_nodes(aws_account, cluster)
    outcomes = hyperpod_requests.act(aws_account, action, cluster, nodes)
    asked = [
        one
        for _, call in service.asked
        for one in [*call.get("NodeIds", []), *call.get("NodeLogicalIds", [])]
    ]
    assert sorted(asked) == sorted(one.name for one in nodes)
    assert [outcome.node for outcome in outcomes] == [one.name for one in nodes]
    assert {outcome.node for outcome in outcomes if outcome.bad} == set(service.failing) & set(asked)
    limit = 99 if action == "delete" else 25
    assert all(
        len(ids) <= limit for _, call in service.asked for key, ids in call.items() if key != "ClusterName"
    )


def test_limits_are_those_of_the_api() -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    assert hyperpod_requests.limit(aws_account, "reboot", "NodeIds") == 25
    assert hyperpod_requests.limit(aws_account, "replace", "NodeLogicalIds") == 25
    assert hyperpod_requests.limit(aws_account, "delete", "NodeIds") == hyperpod_requests.DELETE_LIMIT
    model = service.client.meta.service_model.operation_model("BatchAddClusterNodes").input_shape
    step = model.members["NodesToAdd"].member.members["IncrementTargetCountBy"]
    assert step.metadata["max"] == hyperpod_requests.ADD_LIMIT
    shape = service.client.meta.service_model.shape_for("ClusterInstanceStatus")
    assert set(hyperpod_nodes.STATUSES) == set(shape.metadata["enum"])


def test_a_node_that_aws_does_not_mention_has_failed() -> None:
    aws_account = account()
    HyperPod(aws_account)
    cluster = hyperpod_nodes.read_cluster(aws_account, "dev")
    silent = account()
    answer(silent.client("sagemaker", once=True), "BatchRebootClusterNodes", lambda asked: {})
    outcome = hyperpod_requests.act(silent, "reboot", cluster, [Node(node_id(16), "gpu", "Running")])[0]
    assert outcome.result == "unknown" and "AWS did not say what became of it" in outcome.why


@pytest.mark.parametrize(
    ("words", "steps"), [(["--count", "3"], [3]), (["--to", "120"], [50, 50, 12]), (["--to", "8"], [])]
)
def test_add_in_steps(run: Callable[..., Any], words: list[str], steps: list[int]) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    result = run(aws_account, "add", "--group", "gpu", *words, "--yes", "--no-wait")
    assert result.exit_code == 0, result.output
    asked = [call for _, call in service.asked]
    assert [call["NodesToAdd"][0]["IncrementTargetCountBy"] for call in asked] == steps


def test_a_second_try_adds_nodes_once_and_a_second_wish_adds_them_again() -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    cluster = hyperpod_nodes.read_cluster(aws_account, "dev")
    for seconds in (0, 300, 900):
        hyperpod_requests.add(aws_account, cluster, "gpu", 120, now=lambda seconds=seconds: float(seconds))
    tokens = [call["ClientToken"] for _, call in service.asked]
    assert tokens[:3] == tokens[3:6] and len(set(tokens)) == 6


@pytest.mark.parametrize(
    ("changes", "words", "line"),
    [
        ({"NodeProvisioningMode": None}, ["--group", "gpu"], "raise `count` in the environment file"),
        ({}, ["--group", "gpus"], "no group gpus; there are controller, gpu"),
        ({}, ["--group", "controller"], "exactly one controller"),
        ({"ClusterStatus": "Updating"}, ["--group", "gpu"], "works when it is InService again"),
        (
            {"InstanceGroups": [group("gpu", 8, Status="Updating", MinCount=8)]},
            ["--group", "gpu"],
            "towards its minimum count",
        ),
    ],
)
def test_add_is_refused(
    run: Callable[..., Any], changes: dict[str, Any], words: list[str], line: str
) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.cluster = {
        key: value for key, value in {**service.cluster, **changes}.items() if value is not None
    }
    result = run(aws_account, "add", *words, "--count", "2", "--yes")
    assert result.exit_code == 1 and line in result.output and not service.asked


def test_add_failures_are_rows(run: Callable[..., Any]) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.failing["add"] = "InvalidInstanceGroupStatus"
    result = run(aws_account, "add", "--group", "gpu", "--count", "60", "--yes")
    assert result.exit_code == 1 and "InvalidInstanceGroupStatus" in result.output
    assert len(service.asked) == 1, "it went on after a failure"
    assert run(aws_account, "add", "--group", "gpu").exit_code == 2
