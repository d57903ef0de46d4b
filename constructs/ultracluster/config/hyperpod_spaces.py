"""Spaces: notebooks and editors on the nodes of SageMaker HyperPod on EKS."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import OR_TOKEN, Many, Model
from ultracluster.config.nodes import GroupName

SpaceImage = Annotated[str, Field(pattern=r"^[a-z0-9][a-zA-Z0-9._:/@-]{1,400}$")]


class SpacesWebUi(Model):
    """People reach spaces with a web browser, each at a name of its own below `domain`."""

    domain: Annotated[
        str, Field(pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$", max_length=253)
    ]
    """Domain whose records are in Amazon Route 53, as `spaces.example.com`."""
    certificate_arn: Annotated[
        str,
        Field(pattern=r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-zA-Z0-9-]+$"),
        OR_TOKEN,
    ]
    """ARN of a certificate of AWS Certificate Manager for the domain and for all names right below it."""
    key_arn: Annotated[
        str, Field(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-zA-Z0-9-]+$"), OR_TOKEN
    ]
    """ARN of the KMS key by which people's tokens are signed."""
    scheme: Literal["internal", "internet-facing"] = "internal"
    """Where the load balancer has its addresses: in the VPC, or on the internet."""


class HyperPodSpaces(Model):
    """Notebooks and editors (JupyterLab, Code Editor) on nodes of one group: the add-on of SageMaker Spaces,
    with a template for each team that says what a space may have, and how many a team has."""

    group: GroupName
    """Compute group on whose nodes spaces run."""
    images: Annotated[Many[SpaceImage], Field(min_length=1, max_length=20)] = (
        "public.ecr.aws/sagemaker/sagemaker-distribution:3.4.2-cpu",
    )
    """Container images that people choose from; the first is the default."""
    cpu: Annotated[int, Field(ge=1, le=192)] = 2
    """Virtual processors of a space, at the most."""
    memory_gib: Annotated[int, Field(ge=1, le=2048)] = 8
    """Memory of a space in GiB, at the most."""
    gpus: Annotated[int, Field(ge=0, le=16)] = 0
    """GPUs of a space, at the most."""
    storage_gib: Annotated[int, Field(ge=1, le=16384)] = 10
    """GiB of the EBS volume that holds a space's home folder, at the most."""
    idle_minutes: Annotated[int, Field(ge=5, le=10080)] = 120
    """Minutes without activity until a space is stopped; its volume stays."""
    per_team: Annotated[int, Field(ge=1, le=500)] = 5
    """Spaces of a team, at the most; of all people together where there are no teams."""
    remote_ide: bool = False
    """People may connect an editor on their own computer (VS Code) through Systems Manager, which charges for
    each space that runs, by the hour, and switches the account to its advanced tier in this Region."""
    web_ui: SpacesWebUi | None = None
    """Reach spaces with a web browser, besides `kubectl port-forward`."""


__all__ = ["HyperPodSpaces", "SpacesWebUi"]
