"""Rules on the environment as a whole."""

from ultracluster.rules.environment import access, arns, buckets, instance_types, place, tags

__all__ = ["access", "arns", "buckets", "instance_types", "place", "tags"]
