"""Rules on ParallelCluster."""

ONLY = {"": frozenset({"parallelcluster"})}
"""Orchestrators that the rules of this folder are about."""
