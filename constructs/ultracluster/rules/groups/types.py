"""Rules on: node groups. What a group asks of its instance type and image."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config import Environment
from ultracluster.config.orchestrator import SLURM, OrchestratorKind
from ultracluster.config.remedy import anywhere, ask, drop, write
from ultracluster.model.types import alike, every_type_of, instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import GRP

DATE = "2026-11-21"
ONE_IMAGE = "EC2 User Guide, Amazon Machine Images: an image is for one architecture"
_OWN_TEMPLATES = frozenset[OrchestratorKind]({"pcs", "eks"})
"""Our launch templates say how many cores a node has, too, and so have to know the threads."""


@GRP.rule(
    30,
    "error",
    "An image is used on one processor architecture",
    source=f"{ONE_IMAGE}; aws-parallelcluster 3.16.1, InstanceTypeBaseAMICompatibleValidator",
    date=DATE,
    by_hand="aws ec2 describe-images --image-ids <ami> --query 'Images[].Architecture'",
)
def image_architecture(environment: Environment) -> Iterator[Breach]:
    first: dict[str, tuple[str, str]] = {}
    for name, group in environment.node_groups.items():
        known = instance_type_of(environment, group)
        if not group.image or not known or not known.architecture:
            continue
        other, architecture = first.setdefault(group.image, (name, known.architecture))
        if architecture != known.architecture:
            yield Breach(
                ("node_groups", name, "image"),
                f"{group.image} is the image of `{other}` ({architecture}), too, and {known.name} is "
                f"{known.architecture}: one of the two cannot start.",
                ask("fact", f"an image made for {known.architecture}"),
            )


@GRP.rule(
    38,
    "error",
    "An image's parameter is one that the nodes can start from, and is read by CloudFormation",
    source="CloudFormation User Guide, Get a plaintext value from Systems Manager Parameter Store; "
    "aws-parallelcluster 3.16.1 schema (CustomAmi)",
    date=DATE,
    by_hand="aws ssm get-parameter --name <parameter> --query Parameter.Value",
)
def image_parameter(environment: Environment) -> Iterator[Breach]:
    by_command = getattr(environment.orchestrator, "deploy_with", "") == "pcluster"
    for name, group in environment.node_groups.items():
        if group.image_parameter is None:
            continue
        known = instance_type_of(environment, group)
        other = {"x86_64": "arm64", "arm64": "x86_64"}.get(known.architecture if known else "")
        if known and other and f"/{other}/" in group.image_parameter:
            yield Breach(
                ("node_groups", name, "image"),
                f"{group.image} is for {other}, and {known.name} is {known.architecture}.",
                write(group.image_parameter.replace(f"/{other}/", f"/{known.architecture}/")),
            )
        if by_command:
            yield Breach(
                ("node_groups", name, "image"),
                f"{group.image} is a parameter, which CloudFormation reads, and the file of the pcluster "
                "command takes the id of an AMI only.",
                anywhere({("orchestrator", "deploy_with"): "cloudformation"}).noting(
                    f"or image: ami-..., which `aws ssm get-parameter --region {environment.region} "
                    f"--name {group.image} --query Parameter.Value` prints"
                ),
            )


@GRP.rule(
    39,
    "warning",
    "The image of a protected environment is one and the same",
    source="CloudFormation User Guide, Get a plaintext value from Systems Manager Parameter Store (version)",
    date=DATE,
)
def image_follows_parameter(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        parameter = group.image_parameter
        if environment.protect and parameter and ":" not in parameter:
            yield Breach(
                ("node_groups", name, "image"),
                f"{parameter} is read again by each deploy that changes anything of the group, a count, too: "
                "if there is a newer image by then, all nodes of the group are replaced.",
                ask("fact", f"the id of an AMI; of a parameter of your own a version, {parameter}:<version>"),
            )


@GRP.rule(
    31,
    "error",
    "The type has that many threads per core",
    source="EC2 User Guide, CPU cores and threads per CPU core per instance type",
    date=DATE,
    by_hand="aws ec2 describe-instance-types --instance-types <type> "
    "--query 'InstanceTypes[].VCpuInfo.ValidThreadsPerCore'",
)
def threads(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        for known in every_type_of(environment, group):
            if not group.threads_per_core or not known or group.threads_per_core in known.threads_per_core:
                continue
            allowed = " or ".join(map(str, known.threads_per_core))
            if not allowed and environment.orchestrator.kind not in _OWN_TEMPLATES:
                continue
            yield Breach(
                ("node_groups", name, "threads_per_core"),
                f"{group.threads_per_core} threads per core on {known.name}, "
                + (f"which takes {allowed}." if allowed else "whose numbers are unknown or cannot be set."),
                write(*known.threads_per_core) | drop() if allowed and not group.instance_types else drop(),
            )


@GRP.rule(
    32,
    "warning",
    "Controller and login nodes have no accelerators",
    source="awslabs/awsome-distributed-ai, 1.architectures: controllers and head nodes are CPU types",
    date=DATE,
    kinds=SLURM,
)
def plain_controller(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        known = instance_type_of(environment, group)
        if group.role in ("controller", "login") and known and known.accelerator:
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"{known.name} has {known.accelerator.count} x {known.accelerator.name}, which a "
                f"{group.role} node does not use and you pay for all day.",
                alike(known, known.architecture, group.role),
            )


@GRP.rule(
    33,
    "warning",
    "Login and compute nodes have one processor architecture",
    source=ONE_IMAGE,
    date=DATE,
    kinds=frozenset({"hyperpod-slurm", "pcs"}),  # ParallelCluster refuses a second one: PCL032
)
def one_architecture(environment: Environment) -> Iterator[Breach]:
    kinds: dict[str, str] = {}
    for role in ("compute", "login"):
        for name, group in environment.groups(role).items():
            known = instance_type_of(environment, group)
            if not known or not known.architecture:
                continue
            kinds.setdefault(known.architecture, name)
            first = next(iter(kinds))
            if known.architecture != first:
                yield Breach(
                    ("node_groups", name, "instance_type"),
                    f"{known.name} is {known.architecture}, and `{kinds[first]}` is {first}: programs, "
                    "Python environments and container images made on one do not run on the other.",
                    alike(known, first, role),
                )
