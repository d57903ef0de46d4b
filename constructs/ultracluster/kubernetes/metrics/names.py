"""Where what collects metrics stands, and on which port a training script offers its own."""

from __future__ import annotations

METRICS_NAMESPACE = "ultracluster-metrics"
"""Of what needs nothing of a node: the agent, kube-state-metrics."""
AGENT = "agent"
"""Service account of the agents, and the value of their label."""
APP_LABEL = "app.kubernetes.io/name"
TRAINING_PORT = 9475
"""Where a training script offers its own metrics (docs/training-metrics.md)."""

SERVING_PORT = 8000
"""Where a model server answers, its metrics among it."""
SERVES = "ultracluster/serves"
"""Annotation of the pods of model servers: the engine. It tells them from training scripts."""

__all__ = ["AGENT", "APP_LABEL", "METRICS_NAMESPACE", "SERVES", "SERVING_PORT", "TRAINING_PORT"]
