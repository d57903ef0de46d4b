"""Jobs as objects of Kubernetes: those that we write, and checks of those that people write."""
