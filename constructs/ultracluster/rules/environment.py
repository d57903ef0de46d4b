"""Rules on: The environment as a whole."""

from __future__ import annotations

from ultracluster.rules.engine import RuleSet

RULES = RuleSet("ENV", "The environment as a whole")
