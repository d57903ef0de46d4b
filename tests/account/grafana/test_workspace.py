"""Which workspace is filled, what is said of one that cannot be, and how it reads metrics."""

from __future__ import annotations

import json

import pytest
from fake_grafana import Aws, Grafana
from grafana_fixtures import Run
from hyperpod_service import refusal


def test_a_foreign_workspace_is_read_through_its_role(fill: Run, there: Grafana) -> None:
    role = "arn:aws:iam::444455556666:role/metrics"
    arn = "arn:aws:aps:us-east-2:444455556666:workspace/ws-11111111-90ab-cdef-1234-567890abcdef"
    settings = {"workspace": {"arn": arn, "role_arn": role}, "grafana": {"workspace_id": "g-0123456789"}}
    result = fill("--yes", settings=settings)
    assert result.exit_code == 0, result.output
    source = there.sources["eks-p5en-uc-metrics"]
    assert source["jsonData"]["sigV4AssumeRoleArn"] == role
    assert source["jsonData"]["sigV4Region"] == "us-east-2"


def test_grafana_10_reads_by_its_own_prometheus(fill: Run, there: Grafana, side: Aws) -> None:
    side.workspace["grafanaVersion"] = "10.4"
    assert fill("--yes").exit_code == 0
    assert there.sources["eks-p5en-uc-metrics"]["type"] == "prometheus"
    assert '"type": "prometheus", "uid": "eks-p5en-uc-metrics"' in json.dumps(there.boards["eks-p5en-uc-job"])


REFUSED = {
    "not deployed": (lambda side: side.outputs.clear(), "has no output GrafanaId: deploy"),
    "gone": (
        lambda side: side.refuse.update(DescribeWorkspace=refusal("ResourceNotFoundException")),
        "there is no Grafana workspace",
    ),
    "updating": (lambda side: side.workspace.update(status="UPDATING"), "is UPDATING: wait"),
    "too old": (lambda side: side.workspace.update(grafanaVersion="9.4"), "the boards need 10.4 or newer"),
    "no right": (
        lambda side: side.refuse.update(
            CreateWorkspaceServiceAccountToken=refusal(
                "AccessDeniedException", "no", "CreateWorkspaceServiceAccountToken"
            )
        ), "access denied: CreateWorkspaceServiceAccountToken",
    ),
    "quota": (
        lambda side: side.refuse.update(
            CreateWorkspaceServiceAccountToken=refusal("ServiceQuotaExceededException", "100 tokens")
        ), "100 tokens",
    ),
    "a weak account": (
        lambda side: side.accounts.append(
            {"id": "3", "name": "ultracluster", "isDisabled": "false", "grafanaRole": "VIEWER"}
        ), "is disabled, or no administrator",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_filled_is_refused_before_anything_changes(
    name: str, fill: Run, there: Grafana, side: Aws
) -> None:
    prepare, said = REFUSED[name]
    prepare(side)
    result = fill("--yes")
    assert result.exit_code == 2 and said in result.stderr, result.output
    assert there.changes == [] and side.tokens == {}
