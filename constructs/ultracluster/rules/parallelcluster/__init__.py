"""Rules on ParallelCluster."""
