"""The cluster configuration of ParallelCluster, as `pcluster` and its custom resource read it."""
