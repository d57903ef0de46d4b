"""Which way jobs are asked: sessions to HyperPod's Slurm, Run Command elsewhere, the API on Kubernetes."""

from __future__ import annotations

from hyperpod_service import HyperPod, account, answer, refusal
from nodes_support import DEV, other

from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.sessions_shell import Sessions
from ultracluster.account.wait.shell import RunCommand
from ultracluster.config import load
from ultracluster.jobs import on_nodes as jobs
from ultracluster.model import resolve


def test_each_kind_of_cluster_is_asked_its_own_way() -> None:
    aws_account = account()
    HyperPod(aws_account)
    assert isinstance(jobs.shell_of(Fleet(aws_account, resolve(load(DEV).environment))), Sessions)
    answer(aws_account.client("ec2"), "DescribeInstances", lambda asked: {"Reservations": []})
    assert isinstance(jobs.shell_of(Fleet(aws_account, resolve(other("parallelcluster")))), RunCommand)

    def nobody(asked: dict[str, object]) -> dict[str, object]:
        raise refusal("AccessDeniedException", "not yours")

    answer(aws_account.client("eks"), "DescribeCluster", nobody)
    kubernetes = Fleet(aws_account, resolve(other("eks")))
    running = jobs.jobs_on(kubernetes, [Node("i-1", "gpu", "running")])
    assert running.jobs == () and "DescribeCluster" in running.unknown


def test_a_place_without_an_instance_runs_nothing() -> None:
    aws_account = account()
    HyperPod(aws_account)
    fleet = Fleet(aws_account, resolve(load(DEV).environment))
    assert jobs.jobs_on(fleet, [Node("", "gpu", "Pending", logical_id="gpu-24")]) == jobs.Running()
