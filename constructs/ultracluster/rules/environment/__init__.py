"""Rules on the environment as a whole."""

from ultracluster.rules.environment import access, basics

__all__ = ["access", "basics"]
