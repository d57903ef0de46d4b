"""Which constructs make one deployable stack, and in what order."""

from ultracluster.stacks.environment import build

__all__ = ["build"]
