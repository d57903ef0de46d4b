"""Rules on `health:`, what is done about faulty nodes."""

from __future__ import annotations

from typing import Any

import pytest
from project import ROOT
from rules_support import codes

from ultracluster.rules.slurm.health import check_names

ENFORCE = {"health": {"mode": "enforce"}}


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        ("dev", {}, set()),
        ("dev", ENFORCE, set()),
        ("dev", {"health": {"mode": "off"}}, set()),
        ("dev", {"health": {"ignore": ["xid", "lustre"]}}, set()),
        ("dev", {"health": {"ignore": ["xids"]}}, {"SLU041"}),
        ("dev", {"health": {"ignore": ["xid-109", "gpu_count-missing"]}}, set()),
        ("dev", {"health": {"ignore": ["xid-1090"]}}, {"SLU041"}),
        ("dev", {**ENFORCE, "orchestrator.node_recovery": "none"}, {"SLU042"}),
        ("dev", {"orchestrator.node_recovery": "none"}, set()),
        ("hyperpod-eks-p5", {}, set()),
        ("hyperpod-eks-p5", ENFORCE, {"SLU040"}),
        ("eks-p5en", {"health": {"mode": "off"}}, set()),
        ("parallelcluster-p5", {"health": {"mode": "enforce", "replace": False}}, {"SLU043"}),
        ("parallelcluster-p5", {"health": {"replace": False}}, set()),
        ("parallelcluster-p5", {"orchestrator.os": "rocky8"}, {"SLU045"}),
        ("parallelcluster-p5", {"orchestrator.os": "rocky9"}, set()),
        ("pcs-p6-b200", {"orchestrator.slurm_settings.healthcheckprogram": "/usr/sbin/nhc"}, {"SLU044"}),
        ("pcs-p6-b200", {"orchestrator.slurm_settings.Prolog": "/opt/ultracluster/prolog"}, set()),
        (
            "pcs-p6-b200",
            {"orchestrator.slurm_settings.Epilog": "/site/epilog", "health": {"mode": "off"}},
            set(),
        ),
    ],
)
def test_what_the_rules_say(base: str, changes: dict[str, Any], expected: set[str]) -> None:
    assert {code for code in codes(changes, base=base) if "SLU040" <= code <= "SLU059"} == expected


def test_the_checks_are_those_of_the_folder() -> None:
    files = {file.stem for file in (ROOT / "lifecycle_scripts" / "health").glob("*.sh")}
    assert set(check_names()) == files | {"kernel", "sxid", "xid"}
