"""Rules on metrics of Kubernetes clusters, each broken and mended, and what they leave alone."""

from __future__ import annotations

from typing import Any

import pytest
from observability_cases import asks
from rules_table import found

from ultracluster.rules.sets import OBS

SELF = {"orchestrator.gpu_plugin": "none"}


@pytest.mark.parametrize(
    ("changes", "base"),
    [
        (asks(scrape_seconds=15), "eks-p5en"),
        (asks() | SELF, "eks-trn2"),
        (asks(kind="cloudwatch") | SELF, "eks-p5en"),
        (asks(), "hyperpod-eks-p5"),
    ],
)
def test_what_works_is_left_alone(changes: dict[str, Any], base: str) -> None:
    # some tie folders to S3 without a log: test_told
    assert [one for one in found(OBS, changes, base) if one.code != "OBS033"] == []
