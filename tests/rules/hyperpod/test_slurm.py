"""Rules on HyperPod with Slurm, each broken and mended."""

from __future__ import annotations

from rules_table import Case, table_tests

from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.rules import check

CLASSIC = {"orchestrator.provisioning": "classic", "orchestrator.slurm_config_strategy": "merge"}


DATABASE = {"kind": "rds-mysql", "second_zone_id": "usw2-az1"}

GROUP_CASES = []

TYPE_CASES = [
    Case(
        "HPS054",
        {
            "node_groups.controller.patching": {"kind": "when-idle"},
            "storage.accounting_database": DATABASE,
        },
        "node_groups.controller.patching",
        "hand edits of slurm.conf",
        "/opt/slurm/etc",
        {"node_groups.controller.patching": ...},
    ),
]

CLUSTER_CASES = [
    Case(
        "HPS062",
        {**CLASSIC, "storage.accounting_database": DATABASE},
        "storage.accounting_database",
        "only accepts one with continuous provisioning",
        "provisioning: continuous",
        {"orchestrator.provisioning": "continuous"},
    ),
]

CASES = [*GROUP_CASES, *TYPE_CASES, *CLUSTER_CASES]


test_breaks_and_is_mended, test_advice_works = table_tests(cases=CASES)


def test_settings_are_judged_without_a_file() -> None:
    findings = check(HyperPodSlurm(kind="hyperpod-slurm", provisioning="classic"))

    assert {(one.code, one.path) for one in findings} == {
        ("HPS061", ("slurm_config_strategy",)),
        ("HPS069", ("provisioning",)),
        ("HYP066", ("provisioning",)),
    }
