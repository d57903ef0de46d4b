"""Rules on: EFA."""

from __future__ import annotations

from ultracluster.rules.engine import RuleSet

RULES = RuleSet("EFA", "EFA")
