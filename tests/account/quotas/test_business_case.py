"""The text for AWS beside a request for more quota, and the warning that it may come too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cost_support import environment

from ultracluster.account.quotas.business_case import business_case
from ultracluster.account.quotas.requests import Request, State
from ultracluster.model import resolve

PURPOSE = (
    "  Purpose: synchronous training of foundation models; all nodes of a job work at once, in one "
    "Availability Zone. Model, framework and owner: <...>."
)
NOW = datetime(2026, 11, 28, tzinfo=UTC)


def request(state: State = "filed", **changes: Any) -> Request:
    row: dict[str, Any] = {
        "service": "sagemaker", "code": "L-1", "name": "ml.p5en.48xlarge for cluster usage", "current": 0,
        "asked": 16, "state": state, "scarce": True,
    }  # fmt: skip
    return Request(**row | changes)


def case(
    base: str = "prod",
    changes: dict[str, Any] | None = None,
    *requests: Request,
    starts: tuple[datetime, ...] = (),
) -> list[str]:
    return business_case(resolve(environment(base, changes)), requests or (request(),), starts, NOW)


def test_the_case_has_nodes_quotas_purpose_and_steps() -> None:
    assert case()[1:8] == [
        "  Environment prod in 111122223333, us-east-2 (use2-az2), hyperpod-slurm.",
        PURPOSE,
        "  Nodes: 16 x p5en.48xlarge (3,072 vCPUs, 128 x H200), training-plan.",
        "  Quotas: ml.p5en.48xlarge for cluster usage 0 -> 16.",
        "  Steps, each after the one before has passed its test of the fabric:",
        "    1. 8 x p5en.48xlarge (1,536 vCPUs, 64 x H200)",
        "    2. 16 x p5en.48xlarge (3,072 vCPUs, 128 x H200)",
    ]
    assert not any(line.startswith("  !") for line in case())


@pytest.mark.parametrize(
    ("nodes", "steps"), [(4, []), (8, []), (9, [8, 9]), (64, [8, 64]), (700, [8, 64, 512, 700])]
)
def test_steps_end_at_the_number_of_the_file(nodes: int, steps: list[int]) -> None:
    told = case("prod", {"node_groups.train.count": nodes})
    found = [int(line.split(". ")[1].split(" x ")[0]) for line in told if line.startswith("    ")]
    assert found == steps


def test_lead_time_is_said_not_to_be_of_aws() -> None:
    (line,) = [one for one in case() if one.startswith("lead time: ")]
    assert line.startswith("lead time: AWS publishes none") and "6 to 8 weeks" in line
    assert line.endswith("not confirmed by AWS")


@pytest.mark.parametrize(("days", "warned"), [(1, True), (12, True), (55, True), (56, False), (90, False)])
def test_capacity_that_begins_before_the_lead_time_has_passed_is_a_warning(days: int, warned: bool) -> None:
    told = case("prod", None, starts=(NOW + timedelta(days=200), NOW + timedelta(days=days)))
    assert any(f"in {days} day" in line for line in told) == warned


def test_the_start_of_the_file_counts() -> None:
    block = {"kind": "capacity-block", "id": "cr-0123456789abcdef0", "starts": "2026-12-10T11:30:00Z"}
    told = case("eks-p5en", {"node_groups.train.capacity": block})
    assert told[-1].startswith("  ! the capacity begins on 2026-12-10, in 12 days: sooner than 8 weeks.")


@pytest.mark.parametrize("one", [request("approved"), request(scarce=False, name="VPCs per Region")])
def test_there_is_no_case_where_no_quota_of_instances_is_short(one: Request) -> None:
    assert case("prod", None, one) == []
