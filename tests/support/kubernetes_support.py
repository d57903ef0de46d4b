"""Environments with teams."""

from __future__ import annotations

from typing import Any

from rules_support import changed, environment_data, loaded

from ultracluster.config import Environment

MEMBER = "arn:aws:iam::111122223333:role/research"


def environment(changes: dict[str, Any], *, base: str = "eks-p5en") -> Environment:
    """A shipped environment with changes; its rules are not asked."""
    return loaded(changed(environment_data(base), changes)).environment
