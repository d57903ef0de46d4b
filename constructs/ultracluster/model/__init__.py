"""What an environment comes to, worked out once; everything above reads it instead of the YAML."""

from ultracluster.model.cluster import Cluster, Group, resolve
from ultracluster.model.orchestrators import TRAITS, Traits

__all__ = ["TRAITS", "Cluster", "Group", "Traits", "resolve"]
