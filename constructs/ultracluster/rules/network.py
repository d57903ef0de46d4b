"""Rules on: Network and IP budget."""

from __future__ import annotations

from ultracluster.rules.engine import RuleSet

RULES = RuleSet("NET", "Network and IP budget")
