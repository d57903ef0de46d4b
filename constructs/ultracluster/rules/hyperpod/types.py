"""Rules that HyperPod has with Slurm and on EKS alike: types, health checks, images, patching."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from ultracluster.catalog import instance_types, nearest_instance_types, region
from ultracluster.config import Environment
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.nodes import ScheduledPatching
from ultracluster.config.remedy import DROP, anywhere, ask, beside, drop, whole, write
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import continuous, moved_to
from ultracluster.rules.hyperpod.groups import GROUP_API, hyperpod_groups, provisioning, typed_groups
from ultracluster.rules.sets import HYP

__all__ = ["DEEP_CHECKS", "PATCHING"]

CUSTOM_AMI = "SageMaker Developer Guide, Build a custom AMI; SageMaker API reference, ImageId"


DEEP_CHECKS = "SageMaker Developer Guide, Deep health checks (two pages: on EKS, with Slurm)"


PATCHING = "SageMaker Developer Guide, Update the SageMaker HyperPod platform software of a cluster"


QUOTA_SEEN_GIB = 1024


@HYP.rule(
    40,
    "error",
    "HyperPod knows the instance type",
    source=f"{GROUP_API} (InstanceType; botocore 1.44.5)",
)
def type_in_hyperpod(environment: Environment) -> Iterator[Breach]:
    offered = [known for known in instance_types().values() if known.hyperpod]
    for path, _, known in typed_groups(environment):
        if known.hyperpod or known.declared:
            continue
        alike = [one.name for one in offered if bool(one.accelerator) == bool(known.accelerator)]
        near = nearest_instance_types(known.name, candidates=alike, count=1)
        yield Breach(
            path,
            f"EC2 has {known.name}, HyperPod's API refuses {known.hyperpod_name}.",
            write(near[0]) if near else ask("fact", "a type of HyperPod's list"),
        )


@HYP.rule(
    41,
    "warning",
    "HyperPod offers the type in the Region",
    source="cfn-lint 1.58.0, derived from AWS price lists: a missing Region proves nothing",
    by_hand="aws service-quotas list-service-quotas --service-code sagemaker --region <region> "
    "--query \"Quotas[?QuotaName=='ml.<type> for cluster usage'].Value\"",
)
def type_in_region(environment: Environment) -> Iterator[Breach]:
    here = region(environment.region)
    if here and here.hyperpod is False:
        return  # ENV002 says it for all groups
    for path, _, known in typed_groups(environment):
        if known.hyperpod_regions and environment.region not in known.hyperpod_regions:
            yield Breach(
                path,
                f"no price is published for {known.hyperpod_name} in {environment.region}, so it "
                f"is probably not offered there. Known: {', '.join(known.hyperpod_regions)}.",
                moved_to(environment, _nearest(environment.region, known.hyperpod_regions)).noting(
                    "or another type"
                ),
            )


@HYP.rule(
    47,
    "warning",
    "Deep health checks are for accelerated compute groups",
    source=DEEP_CHECKS,
)
def deep_checks_need_accelerators(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        known = instance_type_of(environment, group)
        if not group.deep_health_checks or known is None:
            continue
        if group.role != "compute" or not known.accelerator:
            why = (
                f"{known.name} has no accelerators"
                if group.role == "compute"
                else f"`{name}` is a {group.role} group"
            )
            yield Breach(
                ("node_groups", name, "deep_health_checks"),
                f"the checks load accelerators and EFA for about two hours, and {why}.",
                drop(),
            )
        elif environment.orchestrator.kind == "hyperpod-slurm" and known.accelerator.manufacturer != "NVIDIA":
            yield Breach(
                ("node_groups", name, "deep_health_checks"),
                f"with Slurm the guide lists checks of GPUs only, and {known.name} has "
                f"{known.accelerator.name}: HyperPod refuses them, or none is run. On EKS it checks "
                "Trainium, too.",
                drop(),
            )


@HYP.rule(
    48, "warning", "Checks of connectivity have two nodes or more", source=DEEP_CHECKS, date="2026-11-22"
)
def connectivity_needs_two(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        checks = group.deep_health_checks
        if "instance-connectivity" in checks and group.count < 2:
            rest = [check for check in checks if check != "instance-connectivity"]
            yield Breach(
                ("node_groups", name, "deep_health_checks", checks.index("instance-connectivity")),
                f"instance-connectivity tests nodes against each other, and the group has {group.count}: "
                "there is nothing to test until it grows.",
                anywhere({("node_groups", name, "count"): 2}) | (drop() if rest else whole(DROP)),
            )


@HYP.rule(
    49,
    "warning",
    "A custom image is one that HyperPod takes",
    source=CUSTOM_AMI,
    by_hand="aws ec2 describe-images --image-ids <ami> --query "
    "'Images[].[OwnerId,State,BlockDeviceMappings[].Ebs.[SnapshotId,Encrypted]]'",
)
def custom_image(environment: Environment) -> Iterator[Breach]:
    orchestrator = environment.orchestrator
    image = "HyperPod's Slurm image of July 2026 or later"
    if isinstance(orchestrator, HyperPodEks):
        release = orchestrator.kubernetes_version
        image = f"HyperPod's EKS image of August 2025 or later for Kubernetes {release}"
    for name, group in hyperpod_groups(environment).items():
        if group.image:
            yield Breach(
                ("node_groups", name, "image"),
                f"{group.image} must be made from {image}, be of the same account and have a root snapshot "
                "only. On encryption AWS contradicts itself: unencrypted (API) or with the key of the root "
                "volume (guide). AWS's support policy for images does not cover it.",
                drop().noting("HyperPod's own image is then used; or look and acknowledge this"),
            )


@HYP.rule(
    58,
    "error",
    "A group has an image of one's own or a release of HyperPod's",
    source=f"{GROUP_API} (ImageId, ImageReleaseVersion)",
)
def image_or_release(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        if group.image and group.image_release:
            yield Breach(
                ("node_groups", name, "image_release"),
                f"{group.image_release} is a release of HyperPod's image, {group.image} another image.",
                drop() | beside(image=DROP),
            )


@HYP.rule(
    59,
    "warning",
    "CloudFormation takes a release of HyperPod's image with Slurm",
    source=f"CloudFormation, AWS::SageMaker::Cluster ImageReleaseVersion (EKS only); {GROUP_API} (no limit)",
    by_hand="aws sagemaker describe-cluster --cluster-name <cluster> --query "
    "'InstanceGroups[].[InstanceGroupName,CurrentImageReleaseVersion]'",
    kinds=frozenset({"hyperpod-slurm"}),
)
def release_with_slurm(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.image_release:
            yield Breach(
                ("node_groups", name, "image_release"),
                f"{group.image_release} with Slurm: the API takes it, and CloudFormation's page says that it "
                "is for EKS only. A later change updates the group's software, which wipes root volumes.",
                drop().noting("which takes the newest; or try it with one group and acknowledge this"),
            )


@HYP.rule(
    50,
    "warning",
    "With continuous provisioning all groups have an image of their own, or none",
    source="SageMaker API reference, ImageId: new groups inherit the image of the oldest group",
)
def image_inherited(environment: Environment) -> Iterator[Breach]:
    groups = hyperpod_groups(environment)
    if provisioning(environment) != "continuous":
        return
    if not any(group.image for group in groups.values()):
        return
    for name, group in groups.items():
        if not group.image:
            yield Breach(
                ("node_groups", name),
                "other groups have a custom image and this one has none: with continuous "
                "provisioning a group that is added later inherits the image of the oldest one.",
                ask("decision", "image: ami-... here, too, or on no group"),
            )


@HYP.rule(
    51,
    "warning",
    "Patching is for HyperPod's own image",
    source=f"{PATCHING}; {GROUP_API} (AutoPatchConfig, ScheduledUpdateConfig)",
)
def patching_custom_image(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        if group.patching and group.image:
            yield Breach(
                ("node_groups", name, "patching"),
                "patching puts HyperPod's newer image on the nodes; what it does with "
                f"{group.image} is not published. It may be replaced, and what you built into it "
                "with it.",
                drop().noting("change image when you have built a new one"),
            )


@HYP.rule(
    52,
    "warning",
    "The second volume is within the usual quota",
    source="Service Quotas, Maximum size of EBS volume in GB for a SageMaker HyperPod cluster "
    "instance (1024 seen in one account; the command below reads yours)",
    by_hand="aws service-quotas get-service-quota --service-code sagemaker "
    "--quota-code L-E13DF72A --region <region>",
)
def volume_quota(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        if group.volume_gib > QUOTA_SEEN_GIB:
            yield Breach(
                ("node_groups", name, "volume_gib"),
                f"{group.volume_gib} GiB per node; the quota for a HyperPod volume was seen at "
                f"{QUOTA_SEEN_GIB}. Above it creation fails.",
                write(QUOTA_SEEN_GIB).noting("or ask for a larger quota first"),
            )


_CRON = (
    ("minutes", r"[0-5]?\d"),
    ("hours", r"[01]?\d|2[0-3]"),
    ("day of month", r"0?[1-9]|[12]\d|3[01]|\?"),
    ("month", r"0?[1-9]|1[0-2]|\*(/([1-9]|1[0-2]))?"),
    ("day of week", r"MON|TUE|WED|THU|FRI|SAT|SUN|[1-7](L|#[1-5])?|\?|L"),
    ("year", r"20[2-9]\d|\*"),
)
"""What CloudFormation's schema lets each field be: single values, no lists and no ranges."""


@HYP.rule(
    53,
    "error",
    "A patching schedule is one that CloudFormation takes",
    source="CloudFormation, AWS::SageMaker::Cluster ScheduledUpdateConfig (ScheduleExpression)",
)
def patching_schedule(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        if not isinstance(group.patching, ScheduledPatching):
            continue
        if problem := _cron_problem(group.patching.schedule):
            yield Breach(
                ("node_groups", name, "patching", "schedule"),
                f"`{group.patching.schedule}`: {problem}. Each of the six fields is one value.",
                write("cron(0 3 ? * SUN *)").noting("Sundays at 03:00 UTC"),
            )


def _nearest(name: str, regions: tuple[str, ...]) -> str:
    """The Region whose name is most like this one: eu-west-1 for eu-west-3."""
    return difflib.get_close_matches(name, regions, n=1, cutoff=0)[0]


def _cron_problem(expression: str) -> str:
    fields = expression.removeprefix("cron(").removesuffix(")").split(" ")
    if len(fields) != len(_CRON):
        return f"{len(fields)} fields instead of six"
    for text, (field, pattern) in zip(fields, _CRON, strict=True):
        if not re.fullmatch(pattern, text):
            return f"`{text}` is no {field} there"
    return ""


@HYP.rule(
    66,
    "warning",
    "Node volumes are encrypted with the environment's key",
    source="SageMaker Developer Guide, Customer managed AWS KMS key encryption for SageMaker HyperPod",
    by_hand="aws sagemaker describe-cluster --cluster-name <name> "
    "--query 'InstanceGroups[].InstanceStorageConfigs'",
)
def classic_has_no_key(environment: Environment) -> Iterator[Breach]:
    if provisioning(environment) == "classic":
        yield Breach(
            ("orchestrator", "provisioning"),
            "with classic provisioning HyperPod takes no customer-managed key: root and second volumes are "
            "encrypted with a key of AWS's.",
            continuous(environment),
        )
