"""Environments with rights that no shipped environment and no overlay of `environments/wishes/` has."""

from __future__ import annotations

from functools import cache
from typing import Any

from rules_support import changed, environment_data, loaded

from ultracluster.config import Environment

OF_OTHERS = {
    "workspace": {
        "arn": "arn:aws:aps:us-east-2:444455556666:workspace/ws-12345678-90ab-cdef-1234-567890abcdef",
        "role_arn": "arn:aws:iam::444455556666:role/metrics-writer",
    },
    "alerts": {"emails": ["oncall@example.com"]},
    "grafana": {"admins": ["12345678-90ab-cdef-1234-567890abcdef"]},
}
"""Metrics that go to the workspace of another account."""
BURST = {"role": "compute", "instance_type": "p5en.48xlarge", "count": 0, "max_count": 4}
FEATURES: dict[str, tuple[str, dict[str, Any]]] = {
    "eks-p5en and Karpenter": (
        "eks-p5en",
        {
            "orchestrator.karpenter": {"groups": ["burst"]},
            "node_groups.burst": BURST,
            "node_groups.train.capacity.starts": "2027-01-15T11:30:00Z",
            "observability": OF_OTHERS,
        },
    ),
    "hyperpod-eks-p5 and HyperPod's collector": (
        "hyperpod-eks-p5",
        {"observability": {"kind": "hyperpod", "alerts": OF_OTHERS["alerts"]}},
    ),
    "hyperpod-eks-p5 and folders of S3": (
        "hyperpod-eks-p5",
        {
            "orchestrator.mountpoint_s3": {
                "datasets": {"bucket": "example-datasets"},
                "results": {
                    "bucket": "example-results",
                    "prefix": "runs",
                    "write": True,
                    "key": {
                        "arn": "arn:aws:kms:us-east-2:111122223333:key/99999999-2222-4333-8444-555555555555"
                    },
                },
            },
            "network.egress": "closed",
        },
    ),
    **{
        f"{name} and metrics of others": (name, {"observability": OF_OTHERS})
        for name in ("parallelcluster-p5", "pcs-p6-b200", "prod")
    },
}
"""A shipped environment and its changes, by name."""


@cache
def feature(name: str) -> Environment:
    base, changes = FEATURES[name]
    return loaded(changed(environment_data(base), changes)).environment
