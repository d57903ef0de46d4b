"""Fixtures of tests of nodes: credentials that lead nowhere, and the command against an account."""

from nodes_support import keys, run, slurm

__all__ = ["keys", "run", "slurm"]
