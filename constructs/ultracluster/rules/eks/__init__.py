"""Rules on EKS."""

from ultracluster.rules.sets import KUBERNETES

ONLY = {"": KUBERNETES}
"""Orchestrators that the rules of this folder are about."""
