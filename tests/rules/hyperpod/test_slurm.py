"""Rules on HyperPod with Slurm, each broken and mended."""

from __future__ import annotations

from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.rules import check


def test_settings_are_judged_without_a_file() -> None:
    findings = check(HyperPodSlurm(kind="hyperpod-slurm", provisioning="classic"))

    assert {(one.code, one.path) for one in findings} == {
        ("HPS061", ("slurm_config_strategy",)),
        ("HPS069", ("provisioning",)),
        ("HYP066", ("provisioning",)),
    }
