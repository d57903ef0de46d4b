"""Rules on a team's own node steps."""

from ultracluster.rules.steps import choice, files

__all__ = ["choice", "files"]
