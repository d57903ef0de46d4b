"""What collects metrics in a Kubernetes cluster: objects, and what is asked of whom."""
