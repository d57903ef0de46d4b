"""What an environment has in Grafana."""

from __future__ import annotations

from fake_grafana import Grafana
from grafana_fixtures import ADMIN, Run


def test_boards_without_metrics_of_ours_are_not_made(fill: Run, there: Grafana) -> None:
    result = fill("--yes", settings={"kind": "cloudwatch", "grafana": {"admins": [ADMIN]}})
    assert result.exit_code == 0, result.output
    assert "no boards: they read the metrics of kind prometheus" in result.stdout
    assert set(there.sources) == {"eks-p5en-uc-aws"} and not there.boards
