"""The operating-system users whom sessions log in as: people's, and the image's, who may sudo."""

from __future__ import annotations

from ultracluster.config.orchestrator import (
    Eks,
    HyperPodEks,
    HyperPodSlurm,
    Orchestrator,
    ParallelCluster,
    Pcs,
)

SESSION_USER = "ultracluster"
"""The user of people's sessions: made on every node, without sudo."""
IMAGE_USERS = ("ec2-user", "rocky", "ubuntu")
"""One of them is in each image of AWS's, and the others are not."""


def image_user(orchestrator: Orchestrator) -> str:
    """The user of the images that an orchestrator boots (release notes of the images; ParallelCluster User
    Guide, "Image", Os)."""
    match orchestrator:
        case HyperPodSlurm():
            return "ubuntu"
        case HyperPodEks() | Eks():  # Amazon Linux 2023
            return "ec2-user"
        case ParallelCluster():
            if orchestrator.os.startswith("rocky"):
                return "rocky"
            return "ubuntu" if orchestrator.os.startswith("ubuntu") else "ec2-user"
        case Pcs():  # its root device tells Amazon Linux from Ubuntu
            return "ec2-user" if orchestrator.root_device == "/dev/xvda" else "ubuntu"


def images_of(orchestrator: Orchestrator) -> str:
    """The images whose user that is, in words: by operating system where the orchestrator has several."""
    match orchestrator:
        case ParallelCluster():
            return f"ParallelCluster's images of {orchestrator.os}"
        case Pcs():
            return f"images with the root device {orchestrator.root_device}"
        case HyperPodSlurm() | HyperPodEks() | Eks():
            return f"the images of {orchestrator.kind}"
