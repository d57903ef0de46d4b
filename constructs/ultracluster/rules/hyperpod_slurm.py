"""Rules on: HyperPod with Slurm."""

from __future__ import annotations

from ultracluster.rules.engine import RuleSet

RULES = RuleSet("HPS", "HyperPod with Slurm")
