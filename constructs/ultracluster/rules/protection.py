"""Rules on: Keys, retention and the accounting database."""

from __future__ import annotations

from ultracluster.rules.engine import RuleSet

RULES = RuleSet("KMS", "Keys, retention and the accounting database")
