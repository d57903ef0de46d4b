"""Rules on HyperPod."""
