"""EKS: control plane, node groups, Karpenter, add-ons."""
