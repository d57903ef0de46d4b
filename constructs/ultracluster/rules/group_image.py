"""The image of a node group under each orchestrator: where the file names it, and the newest there is."""

from __future__ import annotations

from typing import assert_never

from ultracluster.catalog.images import Image, newest
from ultracluster.config.findings import YamlPath
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.orchestrator import HyperPodSlurm, Orchestrator, ParallelCluster, Pcs
from ultracluster.model import Cluster
from ultracluster.software.node_image import node_image


def place_of_image(cluster: Cluster, name: str) -> YamlPath:
    """Return the path of the image that a group boots."""
    settings, group = cluster.settings, cluster.groups[name]
    if group.settings.image:
        return ("node_groups", name, "image")
    match settings:
        case ParallelCluster():
            return ("orchestrator", "version")
        case Eks() | HyperPodEks():
            if settings.node_image_release and not group.in_service:
                return ("orchestrator", "node_image_release")
        case HyperPodSlurm() | Pcs():
            pass  # the group itself
        case _ as never:
            assert_never(never)
    return ("node_groups", name)


def newest_known(cluster: Cluster, name: str) -> Image | None:
    """The image that the group would boot if it named none; of PCS the newest of all."""
    settings, group = cluster.settings, cluster.groups[name]
    unnamed: Orchestrator
    match settings:
        case Pcs():
            return newest(family="pcs-ready-dlami", arch=group.type.architecture) if group.type else None
        case ParallelCluster():
            usual = ParallelCluster.model_fields["version"].default
            unnamed = settings.model_copy(update={"version": usual})
        case Eks() | HyperPodEks():
            unnamed = settings.model_copy(update={"node_image_release": None})
        case HyperPodSlurm():
            unnamed = settings
        case _ as never:
            assert_never(never)
    plain = group.settings.model_copy(update={"image": None, "image_release": None})
    groups = {**cluster.environment.node_groups, name: plain}
    changes = {"node_groups": groups, "orchestrator": unnamed}
    return node_image(cluster.environment.model_copy(update=changes), name).image
