"""AWS ParallelCluster: its configuration file, and the construct that deploys it."""
