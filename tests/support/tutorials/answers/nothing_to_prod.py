"""The account of docs/tutorials/nothing-to-prod.md: before the plan is bought, in the shop, and deployed.

Answers have the shape of AWS's own model, or are moto's. They are no recording of a real account.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hyperpod_service import account as known_account
from hyperpod_service import answer, refusal
from judged_logs import beside
from moto import mock_aws
from nccl_logs import P5EN, Log
from preflight_account import World, furnish
from state_bucket import Bucket

from ultracluster.account import aws
from ultracluster.account import preflight as preflight_package
from ultracluster.account import wait as waiting
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait import GroupSeen, Look, NodeSeen, smoke_slurm
from ultracluster.account.wait.smoke import Smoke
from ultracluster.config import Environment, load

NOW = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
STARTS = datetime(2026, 12, 7, 11, 30, tzinfo=UTC)
FEE = 471_859.2
"""Of the offer that the page buys; invented."""
NAME = "frontier"
ARN = "arn:aws:sagemaker:us-east-2:123456789012:training-plan/frontier-train-20261207"
USAGE = "ml.p5en.48xlarge for cluster usage"


def node_id(number: int) -> str:
    return f"i-{number:017x}"


def environment_of(folder: Path) -> Environment:
    return load(folder / "environments" / f"{NAME}.yaml").environment


@contextmanager
def asked(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Moto, with credentials that open nothing."""
    patch.setenv("AWS_ACCESS_KEY_ID", "testing")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    patch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    patch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    patch.setattr(preflight_package, "WORKERS", 1)
    then = partial(preflight_package.preflight, now=lambda: NOW)  # the plan has an end, the page has none
    patch.setattr("ultracluster.cli.preflight.ask", then)
    with mock_aws():
        yield


@contextmanager
def before(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """A ready account, but for the quota of the nodes' type and the plan, which nobody has bought."""
    with asked(patch):
        world = World(environment_of(folder))
        furnish(world)
        world.quotas[USAGE]["Value"] = 0
        patch.setattr(aws, "Account", lambda **_: world.account)
        yield


@contextmanager
def bought(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same account when the quota was raised and the plan is there."""
    with asked(patch):
        world = World(environment_of(folder))
        furnish(world)
        summary = {
            "ReservedCapacityArn": f"{ARN}-1", "InstanceType": "ml.p5en.48xlarge", "TotalInstanceCount": 16,
            "Status": "Scheduled", "AvailabilityZone": "us-east-2a",
            "StartTime": STARTS, "EndTime": STARTS + timedelta(days=28),
        }  # fmt: skip
        world.plans[ARN.rpartition("/")[2]] = {
            "TrainingPlanArn": ARN, "TrainingPlanName": ARN.rpartition("/")[2], "Status": "Scheduled",
            "TotalInstanceCount": 16, "AvailableInstanceCount": 16, "InUseInstanceCount": 0,
            "TargetResources": ["hyperpod-cluster"], "ReservedCapacitySummaries": [summary],
            "StartTime": STARTS, "EndTime": STARTS + timedelta(days=28),
        }  # fmt: skip
        patch.setattr(aws, "Account", lambda **_: world.account)
        yield


@contextmanager
def shop(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two offers of sixteen nodes for four weeks, in two zones; what is bought gets `ARN`."""
    offers = [("tpo-a1b2c3", "us-east-2a", FEE), ("tpo-d4e5f6", "us-east-2c", FEE * 1.05)]

    def search(request: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {
                "TrainingPlanOfferingId": name, "TargetResources": ["hyperpod-cluster"],
                "DurationHours": 672, "UpfrontFee": f"{price:.2f}", "CurrencyCode": "USD",
                "ReservedCapacityOfferings": [
                    {
                        "InstanceType": request["InstanceType"], "InstanceCount": request["InstanceCount"],
                        "AvailabilityZone": zone, "StartTime": STARTS, "EndTime": STARTS + timedelta(days=28),
                    }
                ],
            }
            for name, zone, price in offers
        ]  # fmt: skip
        return {"TrainingPlanOfferings": rows}

    def nothing(request: dict[str, Any]) -> dict[str, Any]:
        raise refusal("ResourceNotFound", "no such plan", "DescribeTrainingPlan")

    with asked(patch):
        made = known_account("us-east-2", "123456789012")
        answer(made.client("sagemaker"), "SearchTrainingPlanOfferings", search)
        answer(made.client("sagemaker"), "DescribeTrainingPlan", nothing)
        answer(made.client("sagemaker"), "ListTrainingPlans", lambda _: {"TrainingPlanSummaries": []})
        once = made.client("sagemaker", once=True)
        answer(once, "CreateTrainingPlan", lambda request: {"TrainingPlanArn": ARN})
        patch.setattr(aws, "Account", lambda region=None, profile=None: made)
        yield


@contextmanager
def deployed(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nodes that come up: the controller first, then four of sixteen, then all."""
    types = {"controller": "m5.4xlarge", "login": "m5.2xlarge", "train": "p5en.48xlarge"}
    groups = {"controller": range(1, 2), "login": range(11, 13), "train": range(21, 37)}

    def look(train: int) -> Look:
        ready = {"controller": 1, "login": 2, "train": train}
        return Look(
            tuple(
                GroupSeen(name, len(numbers), tuple(
                    NodeSeen(node_id(number), name, "ready") if place < ready[name]
                    else NodeSeen(node_id(number), name, "starting", "Pending")
                    for place, number in enumerate(numbers)
                ))
                for name, numbers in groups.items()
            ),
            (),
        )  # fmt: skip

    nodes = tuple(
        Node(node_id(number), name, "Running", types[name], controller=name == "controller")
        for name, numbers in groups.items()
        for number in numbers
    )
    looks = [look(0), look(4), look(16)]
    source = SimpleNamespace(
        look=lambda: looks.pop(0) if len(looks) > 1 else looks[0],
        nodes=nodes, entrance=nodes[0], shell=object(), slurm_nodes=(),
    )  # fmt: skip
    passed = Smoke("train", "pass", "right results, over EFA", nodes=("ip-10-0-0-21", "ip-10-0-0-22"))
    wait, ticks = waiting.wait, iter(range(0, 10_000_000, 60))
    with asked(patch):
        made = known_account("us-east-2", "123456789012")
        patch.setattr(aws, "Account", lambda **_: made)
        patch.setattr(waiting, "source_of", lambda *_: source)
        patch.setattr(smoke_slurm, "run_on_slurm", lambda *_, **__: passed)
        patch.setattr(
            waiting, "wait",
            lambda *a, **k: wait(*a, **k, sleep=lambda _: None, clock=lambda: float(next(ticks))),
        )  # fmt: skip
        yield


@contextmanager
def measured(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Logs of nccl-tests on four nodes, composed from published lines."""
    (folder / "acceptance").mkdir(exist_ok=True)
    text = Log(nodes=4, figures=P5EN).text()
    (folder / "acceptance" / "all_reduce.log").write_text(text + beside(text))
    yield


@contextmanager
def people(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The bucket of the scripts, in which nothing of teams and users is written yet."""
    with asked(patch):
        bucket = Bucket(NAME, region="us-east-2", number="123456789012")
        patch.setattr(aws, "Account", lambda **_: bucket.account)
        yield
