"""Texts for Kubernetes: jobs, queues, teams, labels, values of charts. No CDK."""
