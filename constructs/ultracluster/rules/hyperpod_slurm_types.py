"""Rules on: HyperPod with Slurm. What a group asks of its instance type, image and volumes."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import instance_types
from ultracluster.config import Environment
from ultracluster.rules.engine import Breach
from ultracluster.rules.hyperpod_slurm_groups import RULES
from ultracluster.rules.hyperpod_types import PATCHING
from ultracluster.rules.types import instance_type_of

CUSTOM_AMI = "SageMaker Developer Guide, Build a custom AMI; SageMaker API reference, ImageId"


@RULES.rule(
    43,
    "warning",
    "Controller and login nodes have no accelerators",
    source="awslabs/awsome-distributed-ai, 5.sagemaker-hyperpod: its controllers are CPU types",
)
def plain_controller(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        known = instance_type_of(environment, group)
        if group.role in ("controller", "login") and known and known.accelerator:
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"{known.name} has {known.accelerator.count} x {known.accelerator.name}, which a "
                f"{group.role} node does not use and you pay for all day.",
                "m5.4xlarge" if group.role == "controller" else "m5.2xlarge",
            )


@RULES.rule(
    44,
    "warning",
    "Login and compute nodes have one processor architecture",
    source="EC2 User Guide, Amazon Machine Images: an image is for one architecture",
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
                    f"{known.name} is {known.architecture}, and `{kinds[first]}` is {first}: "
                    "programs, Python environments and container images made on one do not run on "
                    "the other.",
                    _same_size(known.vcpu, first, role),
                )


@RULES.rule(
    49,
    "warning",
    "A custom image is one that HyperPod takes",
    source=CUSTOM_AMI,
    by_hand="aws ec2 describe-images --image-ids <ami> --query "
    "'Images[].[OwnerId,State,BlockDeviceMappings[].Ebs.[SnapshotId,Encrypted]]'",
)
def custom_image(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.image:
            yield Breach(
                ("node_groups", name, "image"),
                f"{group.image} must be made from HyperPod's Slurm image of July 2026 or later, be "
                "of the same account and have a root snapshot only. On encryption AWS contradicts "
                "itself: unencrypted (API) or with the key of the root volume (guide). AWS's "
                "support policy for images does not cover it.",
                "remove image to use HyperPod's own, or look and acknowledge this",
            )


@RULES.rule(
    54,
    "warning",
    "The controller is patched by hand",
    source=f"{PATCHING}: root volumes are replaced",
)
def patching_controller(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("controller").items():
        if group.patching:
            more = (
                ""
                if environment.storage.accounting_database
                else " Accounting is on that volume, too, as there is no accounting_database."
            )
            yield Breach(
                ("node_groups", name, "patching"),
                "patching replaces the root volume of the controller: the queue's state and hand "
                f"edits of slurm.conf are gone unless someone saved them before.{more}",
                "remove patching here; save /opt/slurm/etc and update the software by hand",
            )


def _same_size(vcpu: int, architecture: str, role: str) -> str:
    """A type of `architecture` for a login node; for compute there is no simple exchange."""
    if role != "login":
        return f"a second environment for these nodes, or a type that is {architecture}"
    prefix = "m7g." if architecture == "arm64" else "m7i."
    sizes = [one for one in instance_types().values() if one.name.startswith(prefix)]
    return min(sizes, key=lambda one: (abs(one.vcpu - vcpu), one.name)).name
