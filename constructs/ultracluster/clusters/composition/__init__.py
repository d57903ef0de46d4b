"""What a training cluster is made of, part by part; `TrainingCluster` and the stacks put them together."""
