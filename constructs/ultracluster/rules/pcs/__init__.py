"""Rules on AWS PCS."""

ONLY = {"": frozenset({"pcs"})}
"""Orchestrators that the rules of this folder are about."""
