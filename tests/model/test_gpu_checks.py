"""On which clusters ParallelCluster tests GPUs before jobs."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.model import resolve
from ultracluster.model.gpu_checks import checks_gpus


@pytest.mark.parametrize(
    ("base", "changes", "checked"),
    [
        ("parallelcluster-p5", {}, False),
        ("parallelcluster-p5", {"orchestrator.partitions.train.gpu_health_checks": True}, True),
        (
            "parallelcluster-p5",
            {"orchestrator.partitions.train.gpu_health_checks_by_group": {"more": True}},
            True,
        ),
        (
            "parallelcluster-p5",
            {
                "orchestrator.partitions.train.gpu_health_checks": True,
                "orchestrator.partitions.train.gpu_health_checks_by_group": {
                    "more": False,
                    "reserved": False,
                },
            },
            False,
        ),
        ("prod", {}, False),
    ],
)
def test_gpus_are_checked(base: str, changes: dict[str, Any], checked: bool) -> None:
    assert checks_gpus(resolve(loaded(changed(environment_data(base), changes)).environment)) is checked
