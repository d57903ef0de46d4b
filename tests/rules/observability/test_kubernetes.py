"""Rules on metrics of Kubernetes clusters, each broken and mended, and what they leave alone."""

from __future__ import annotations

from typing import Any

import pytest
from observability_cases import asks
from rules_table import Case, found, table_tests

from ultracluster.rules.sets import OBS

MANAGED = asks(collector="managed")
OPEN = {"orchestrator.network_policies": False}
SELF = {"orchestrator.gpu_plugin": "none"}
CASES = [
    Case(
        "OBS050",
        asks(collector="managed", scrape_seconds=15) | OPEN,
        "observability.scrape_seconds",
        "below 30 seconds",
        "scrape_seconds: 30",
        MANAGED | OPEN,
        "eks-p5en",
    ),
    Case(
        "OBS051",
        MANAGED,
        "observability.collector",
        "no network policy can let it in",
        "collector: agent",
        MANAGED | OPEN,
        "eks-p5en",
    ),
]


test_breaks_and_is_mended, test_advice_works = table_tests(cases=CASES)


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
