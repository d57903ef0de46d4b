"""Rules on HyperPod."""

ON_EKS = ("kubernetes", "eks_groups", "inference", "resilience", "restricted", "spaces")
ONLY = dict.fromkeys(ON_EKS, frozenset({"hyperpod-eks"}))
"""Orchestrators that the rules of some modules are about."""
