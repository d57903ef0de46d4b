"""The images that an environment's nodes would boot today, as the account's Region has them.

EKS's release and AMI of a date, and what a public parameter stands for. HyperPod and ParallelCluster choose
their image themselves when a node is made, so there is nothing to record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, code, explain
from ultracluster.catalog.eks import ami_type
from ultracluster.config import Environment
from ultracluster.config.instance_types import instance_type_of
from ultracluster.config.orchestrator import HyperPodEks
from ultracluster.software.node_image import full_image_release, image_release
from ultracluster.supply.locking import Locked

_AMI = re.compile(r"ami-[0-9a-f]{8,17}")
_EKS_FOLDER = re.compile(r"/aws/service/eks/optimized-ami/.+/amazon-eks-node-[^/]+")
"""What `_parameter` makes of a date; the `.../recommended/image_id` of a file is a parameter itself."""


def asks(environment: Environment) -> bool:
    """Whether the image of some group has to be resolved."""
    return any(_parameter(environment, group) for group in environment.node_groups)


def resolved_images(
    environment: Environment, account: Account | None, images: dict[str, Any], *, again: bool, day: str
) -> list[Locked]:
    """Fill `images`, by node group, with what is not there yet; with `again` all of it is asked again.

    Args:
        account: who is asked; without one every image that has to be resolved is one `failed` line.

    Returns:
        One line for each group whose image had to be resolved.
    """
    for group in [name for name in images if name not in environment.node_groups]:
        del images[group]
    results: list[Locked] = []
    for group in environment.node_groups:
        parameter = _parameter(environment, group)
        if parameter is None:
            images.pop(group, None)
            continue
        recorded: dict[str, Any] | None = images.get(group)
        if recorded and recorded.get("parameter") == parameter and not again:
            results.append(Locked(group, _name(recorded), "unchanged"))
            continue
        if account is None:
            lost = Locked(group, parameter, "failed", f"{parameter}: not asked, without an account")
            stays = Locked(
                group, parameter, "skipped", "not asked, without an account; what is recorded stays"
            )
            results.append(stays if recorded and recorded.get("parameter") == parameter else lost)
            continue
        try:
            resolved = dict(_resolved(account, parameter))
        except (*AWS_ERRORS, _NoImageError) as error:
            results.append(Locked(group, parameter, "failed", f"{parameter}: {_words(error)}"))
            continue
        same = recorded and all(recorded.get(key) == value for key, value in resolved.items())
        if recorded and same:
            results.append(Locked(group, _name(recorded), "unchanged"))
            continue
        images[group] = {**resolved, "parameter": parameter, "recorded": day}
        was = f"was {_name(recorded)}" if recorded else parameter
        results.append(Locked(group, _name(images[group]), "changed" if recorded else "locked", was))
    return results


def _parameter(environment: Environment, group: str) -> str | None:
    """The public parameter of a group's image; None where the file names the image, or there is none."""
    image = environment.node_groups[group].image
    if image:
        return image if image.startswith("/") else None
    plane, settings = environment.kubernetes, environment.node_groups[group]
    if plane is None or (isinstance(plane, HyperPodEks) and settings.role != "system"):
        return None
    kind = instance_type_of(environment, settings)
    type_ = ami_type(kind) if kind else None
    kubernetes = plane.kubernetes_version
    if type_ is None:
        return None
    release, by = image_release(environment, group)
    if by == "file" and full_image_release(environment, group):
        return None
    # https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html; of a date as Karpenter's alias
    # al2023@v<date> asks for it (aws/karpenter-provider-aws, pkg/providers/amifamily/al2023.go)
    arch = "arm64" if "ARM_64" in type_ else "x86_64"
    variant = type_.rpartition("_")[2].lower()
    name = f"amazon-eks-node-al2023-{arch}-{variant}-{kubernetes}-v{release.rpartition('-')[2]}"
    return f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{arch}/{variant}/{name}"


def _resolved(account: Account, parameter: str) -> Iterator[tuple[str, str]]:
    """`image`, and `release` where the parameter is EKS's."""
    ssm = account.client("ssm")

    def value(name: str) -> str:
        return str(ssm.get_parameter(Name=name)["Parameter"]["Value"])

    def image(name: str) -> str:
        answer = value(name)
        if not _AMI.fullmatch(answer):
            raise _NoImageError(f"it holds {answer[:60]!r}, which is no AMI id")
        return answer

    if _EKS_FOLDER.fullmatch(parameter):
        yield "image", image(f"{parameter}/image_id")
        yield "release", value(f"{parameter}/release_version")
    else:
        yield "image", image(parameter)


def _name(entry: dict[str, Any] | None) -> str:
    return str((entry or {}).get("release") or (entry or {}).get("image"))


def _words(error: Exception) -> str:
    if code(error) == "ParameterNotFound":
        return "this Region has no such parameter: name another image or date"
    return str(error) if isinstance(error, _NoImageError) else explain(error)


class _NoImageError(Exception):
    """A parameter that holds something else."""
