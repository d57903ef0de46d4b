"""Groups whose image is resolved only when they are deployed: their next node may boot another one."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.model.cluster import Cluster
from ultracluster.software.locked_images import locked_parameter
from ultracluster.software.node_image import full_image_release


def unlocked_images(cluster: Cluster) -> Mapping[str, str]:
    """Images that are resolved at each deploy, by group: a parameter of SSM, or EKS's newest image.

    HyperPod and ParallelCluster choose images by their own release, which no template resolves: they count
    only where a group names a parameter. A version of a parameter (`/images/mine:3`) never changes.

    Raises:
        InvalidLockError: the lock is damaged.
    """
    environment = cluster.environment
    found: dict[str, str] = {}
    for name, group in cluster.groups.items():
        parameter = group.settings.image_parameter
        if parameter:
            if ":" not in parameter and locked_parameter(environment, name) != parameter:
                found[name] = parameter
        elif (
            cluster.kubernetes
            and not group.in_service
            and not group.settings.image
            and not group.by_karpenter  # its alias takes a date
            and full_image_release(environment, name) is None
        ):
            found[name] = f"EKS's newest image of {cluster.kubernetes.kubernetes_version}"
    return found
