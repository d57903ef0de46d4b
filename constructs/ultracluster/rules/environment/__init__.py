"""Rules on the environment as a whole."""

from ultracluster.rules.environment import (
    access,
    arns,
    buckets,
    copies,
    governance,
    instance_types,
    metadata,
    place,
    prices,
    tags,
)

__all__ = [
    "access",
    "arns",
    "buckets",
    "copies",
    "governance",
    "instance_types",
    "metadata",
    "place",
    "prices",
    "tags",
]
