"""Rules on the network and its addresses."""

from ultracluster.rules.network import perimeter, ranges, vpc

__all__ = ["perimeter", "ranges", "vpc"]
