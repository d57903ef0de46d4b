"""Rules on the environment as a whole."""

from ultracluster.rules.environment import (
    access,
    arns,
    buckets,
    governance,
    instance_types,
    place,
    prices,
    tags,
)

__all__ = ["access", "arns", "buckets", "governance", "instance_types", "place", "prices", "tags"]
