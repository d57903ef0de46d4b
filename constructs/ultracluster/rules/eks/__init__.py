"""Rules on EKS."""
