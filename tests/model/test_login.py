"""Commands that open a shell on a node."""

from __future__ import annotations

import shlex

from ultracluster.model.login import (
    find_hyperpod_node,
    find_instance,
    hyperpod_target,
    login_command,
    start_session,
)


def test_only_what_is_named_stands_in_the_command() -> None:
    assert start_session("i-1", region="us-east-1", profile="default") == [
        *("aws", "ssm", "start-session", "--region", "us-east-1", "--target", "i-1")
    ]
    full = start_session("i-1", region="us-east-1", document="D", parameters="{}", profile="prod")
    assert full[5:] == ["--document-name", "D", "--target", "i-1", "--parameters", "{}", "--profile", "prod"]


def test_a_shell_finds_the_node_in_the_command() -> None:
    found = find_hyperpod_node("dev", "gpu", region="us-east-1")
    line = login_command(hyperpod_target("abc", "gpu", found), region="us-east-1", document="D")
    assert line.startswith(
        "aws ssm start-session --region us-east-1 --document-name D --target sagemaker-cluster:abc_gpu-$(aws "
    )
    inner = shlex.split(found.removeprefix("$(").removesuffix(")"))
    assert inner[1:3] == ["sagemaker", "list-cluster-nodes"] and inner[-1] == "text"
    tagged = find_instance({"a:b": "c", "d": "e"}, region="us-east-1")
    assert "--filters Name=tag:a:b,Values=c Name=tag:d,Values=e Name=instance-state-name" in tagged
