"""Rules on the settings of HyperPod's extension, each broken and mended."""

from __future__ import annotations

from typing import Any

import pytest
from observability_cases import asks
from rules_table import Case, assert_breaks, assert_mended, found

from ultracluster.account.observability_extension import configuration_text
from ultracluster.rules.observability.extension import MOST_CHARACTERS
from ultracluster.rules.sets import OBS

SETTINGS = {"metricsProvider": {"nodeMetrics": {"level": "ADVANCED"}}}


def of_length(characters: int) -> dict[str, str]:
    """A configuration that has so many characters as the API gets it."""
    return {"a": "x" * (characters - len(configuration_text({"a": ""})))}


@pytest.mark.parametrize(
    "case",
    [
        Case(
            "OBS030", asks(kind="hyperpod", extension={}), "observability.extension", "on Slurm",
            "remove", asks(kind="hyperpod"), "hyperpod-eks-p5",
        ),
        Case(
            "OBS030", asks(extension={}), "observability.extension", "pcs takes no",
            "remove", asks(), "pcs-p6-b200",
        ),
        Case(
            "OBS031", asks(kind="hyperpod", extension={"configuration": of_length(MOST_CHARACTERS + 1)}),
            "observability.extension.configuration", "10,241", "fewer",
            asks(kind="hyperpod", extension={"configuration": of_length(MOST_CHARACTERS)}),
        ),
    ],
    ids=str,
)  # fmt: skip
def test_breaking_it_is_found_and_mending_it_is_enough(case: Case) -> None:
    assert_breaks(OBS, case)
    assert_mended(OBS, case)


@pytest.mark.parametrize("extension", [None, {}, {"version": "1.2.3"}, {"configuration": SETTINGS}])
def test_what_is_passed_on_unread_is_not_judged(extension: dict[str, Any] | None) -> None:
    assert found(OBS, asks(kind="hyperpod", extension=extension), "dev") == []
