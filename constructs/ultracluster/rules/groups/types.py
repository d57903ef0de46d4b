"""Rules on node groups: what a group asks of its instance type and image."""

from __future__ import annotations

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.config.remedy import Remedy, anywhere, ask, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import GRP, SLURM, kinds_with
from ultracluster.rules.sources import PCLUSTER

DATE = "2026-11-21"
ONE_IMAGE = "EC2 User Guide, Amazon Machine Images: an image is for one architecture"


@GRP.error(
    30,
    f"{ONE_IMAGE}; {PCLUSTER}, InstanceTypeBaseAMICompatibleValidator",
    DATE,
    by_hand="aws ec2 describe-images --image-ids <ami> --query 'Images[].Architecture'",
)
def image_architecture(cluster: Cluster) -> Breaches:
    """Each image is used on one processor architecture only."""
    first: dict[str, tuple[str, str]] = {}
    for name, group in cluster.groups.items():
        kind, image = group.type, group.settings.image
        if not image or not kind or not kind.architecture:
            continue
        other, architecture = first.setdefault(image, (name, kind.architecture))
        if architecture != kind.architecture:
            yield at("node_groups", name, "image").breach(
                f"{image} is also the image of `{other}` ({architecture}), and {kind.name} is "
                f"{kind.architecture}: nodes of one of the two cannot start.",
                ask("fact", f"an image made for {kind.architecture}"),
            )


@GRP.error(
    38,
    "CloudFormation User Guide, Get a plaintext value from Systems Manager Parameter Store; "
    f"{PCLUSTER} schema (CustomAmi)",
    DATE,
    by_hand="aws ssm get-parameter --name <parameter> --query Parameter.Value",
)
def image_parameter(group: Group, cluster: Cluster) -> Breaches:
    """A parameter that names an image fits the architecture and is readable by CloudFormation."""
    parameter, kind = group.settings.image_parameter, group.type
    if parameter is None:
        return
    other = {"x86_64": "arm64", "arm64": "x86_64"}.get(kind.architecture if kind else "")
    if kind and other and f"/{other}/" in parameter:
        yield at("image").breach(
            f"{parameter} is for {other}, and {kind.name} is {kind.architecture}.",
            write(parameter.replace(f"/{other}/", f"/{kind.architecture}/")),
        )
    if not cluster.by_cloudformation:
        yield at("image").breach(
            f"{parameter} is a parameter, which only CloudFormation reads: the file of the pcluster command "
            "takes nothing but the id of an AMI.",
            anywhere({("orchestrator", "deploy_with"): "cloudformation"}).noting(
                f"or image: ami-..., which `aws ssm get-parameter --region {cluster.region} "
                f"--name {parameter} --query Parameter.Value` prints"
            ),
        )


@GRP.error(
    31,
    "EC2 User Guide, CPU cores and threads per CPU core per instance type",
    DATE,
    by_hand="aws ec2 describe-instance-types --instance-types <type> "
    "--query 'InstanceTypes[].VCpuInfo.ValidThreadsPerCore'",
)
def type_supports_threads(group: Group) -> Breaches:
    """The instance type supports `threads_per_core`."""
    threads_per_core = group.settings.threads_per_core
    for kind in filter(None, group.types):
        if not threads_per_core or threads_per_core in kind.threads_per_core:
            continue
        allowed = " or ".join(map(str, kind.threads_per_core))
        if not allowed and not group.from_template:
            continue  # our launch templates say how many cores a node has, too, and have to know the threads
        yield at("threads_per_core").breach(
            f"{threads_per_core} threads per core on {kind.name}, "
            + (f"which takes {allowed}." if allowed else "whose threads are unknown or cannot be set."),
            write(*kind.threads_per_core) | drop() if allowed and not group.further_types else drop(),
        )


@GRP.warning(
    32,
    "awslabs/awsome-distributed-ai, 1.architectures: controllers and head nodes are CPU types",
    DATE,
    kinds=SLURM,
)
def controller_without_accelerators(group: Group) -> Breaches:
    """Controller and login nodes have no accelerators."""
    kind = group.type
    if group.role in ("controller", "login") and kind and kind.accelerator:
        yield at("instance_type").breach(
            f"{kind.name} has {kind.accelerator.count} x {kind.accelerator.name}, which a "
            f"{group.role} node does not use and which you pay for all day.",
            alike(kind, kind.architecture, group.role),
        )


@GRP.warning(
    33,
    ONE_IMAGE,
    DATE,
    kinds=kinds_with(lambda traits: traits.slurm and not traits.validates),  # PCL032
)
def login_architecture(cluster: Cluster) -> Breaches:
    """Login and compute nodes have one processor architecture."""
    seen: dict[str, str] = {}
    for group in (*cluster.with_role("compute").values(), *cluster.with_role("login").values()):
        kind = group.type
        if not kind or not kind.architecture:
            continue
        seen.setdefault(kind.architecture, group.name)
        first = next(iter(seen))
        if kind.architecture != first:
            yield at("node_groups", group.name, "instance_type").breach(
                f"{kind.name} is {kind.architecture}, and `{seen[first]}` is {first}: programs, "
                "Python environments and container images made on one do not run on the other.",
                alike(kind, first, group.role),
            )


def alike(instance_type: InstanceType, architecture: str, role: str) -> Remedy:
    """A type of `architecture` and about this size for a node that runs no jobs.

    For compute there is no simple exchange.
    """
    if role == "compute":
        return ask("decision", f"a second environment for these nodes, or a type that is {architecture}")
    prefix = "m7g." if architecture == "arm64" else "m7i."
    sizes = [one for one in instance_types().values() if one.name.startswith(prefix)]
    return write(min(sizes, key=lambda one: (abs(one.vcpu - instance_type.vcpu), one.name)).name)
