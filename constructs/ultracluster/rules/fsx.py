"""Rules on: FSx for Lustre and OpenZFS."""

from __future__ import annotations

from ultracluster.rules.engine import RuleSet

RULES = RuleSet("FSX", "FSx for Lustre and OpenZFS")
