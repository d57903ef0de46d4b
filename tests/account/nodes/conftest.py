"""Fixtures of tests of nodes: credentials that lead nowhere, and the command against an account."""

from account_fixtures import keys
from nodes_support import run, slurm

__all__ = ["keys", "run", "slurm"]
