"""Rules on HyperPod, with Slurm and on EKS: types, health checks, images, patching."""

from __future__ import annotations

import difflib
import re

from ultracluster.catalog import InstanceType, Region, instance_types, nearest_instance_types
from ultracluster.config.nodes import ScheduledPatching
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, beside, drop, whole, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.hyperpod.groups import GROUP_API, HyperPod, continuous, typed
from ultracluster.rules.remedies import moved_to
from ultracluster.rules.sets import HYP
from ultracluster.rules.sources import BOTOCORE, CFN_LINT

CUSTOM_AMI = "SageMaker Developer Guide, Build a custom AMI; SageMaker API reference, ImageId"
DEEP_CHECKS = "SageMaker Developer Guide, Deep health checks (two pages: on EKS, with Slurm)"
PATCHING = "SageMaker Developer Guide, Update the SageMaker HyperPod platform software of a cluster"
QUOTA_SEEN_GIB = 1024


@HYP.error(40, f"{GROUP_API} (InstanceType; {BOTOCORE})")
def type_in_hyperpod(group: Group) -> Breaches:
    """HyperPod has the instance type."""
    if not group.in_service:
        return
    for place, kind in typed(group):
        if kind.hyperpod is False:
            yield at(*place).breach(
                f"HyperPod's API refuses {kind.hyperpod_name}, although EC2 has {kind.name}.", _listed(kind)
            )


@HYP.warning(
    97,
    f"{GROUP_API} (InstanceType; {BOTOCORE})",
    "2026-11-27",
    by_hand="aws service-quotas list-service-quotas --service-code sagemaker --region <region> "
    "--query \"Quotas[?QuotaName=='ml.<type> for cluster usage'].Value\"",
)
def type_in_hyperpod_unknown(group: Group) -> Breaches:
    """The catalogue says whether HyperPod has the instance type."""
    if not group.in_service:
        return
    for place, kind in typed(group):
        if kind.hyperpod is None and not kind.declared:
            yield at(*place).breach(
                f"it is unknown whether HyperPod has {kind.hyperpod_name}: the row of {kind.name} in "
                "catalog/instances.json has no key `hyperpod`, and a quota of that name would settle it.",
                _listed(kind).noting("or the key `hyperpod` in its row, once AWS lists the type"),
            )


def _listed(kind: InstanceType) -> Remedy:
    """The nearest type of HyperPod's list."""
    alike = [
        one.name
        for one in instance_types().values()
        if one.hyperpod and bool(one.accelerator) == bool(kind.accelerator)
    ]
    near = nearest_instance_types(kind.name, candidates=alike, count=1)
    return write(near[0]) if near else ask("fact", "a type of HyperPod's list")


@HYP.warning(
    41,
    f"{CFN_LINT}, derived from AWS price lists: a missing Region proves nothing",
    by_hand="aws service-quotas list-service-quotas --service-code sagemaker --region <region> "
    "--query \"Quotas[?QuotaName=='ml.<type> for cluster usage'].Value\"",
)
def type_in_region(group: Group, home: Region, cluster: Cluster) -> Breaches:
    """HyperPod offers the instance type in the Region."""
    if home.hyperpod is False or not group.in_service:
        return  # ENV002 reports it for all groups
    for place, kind in typed(group):
        if kind.hyperpod_regions and home.name not in kind.hyperpod_regions:
            near = difflib.get_close_matches(home.name, kind.hyperpod_regions, n=1, cutoff=0)[0]
            yield at(*place).breach(
                f"no price is published for {kind.hyperpod_name} in {home.name}, so it "
                f"is probably not offered there. Known: {', '.join(kind.hyperpod_regions)}.",
                moved_to(cluster, near).noting("or another type"),
            )


@HYP.warning(47, DEEP_CHECKS)
def deep_checks_need_accelerators(group: Group) -> Breaches:
    """Only accelerated compute groups have deep health checks."""
    kind = group.type
    if not group.in_service or not group.settings.deep_health_checks or kind is None:
        return
    # of several types one is enough: those without accelerators are skipped
    if group.role != "compute" or not any(one.accelerator for one in group.known_types):
        why = (
            f"{kind.name} has no accelerators"
            if group.role == "compute"
            else f"`{group.name}` is a {group.role} group"
        )
        yield at("deep_health_checks").breach(
            f"the checks load accelerators and EFA for about two hours, and {why}.", drop()
        )
    elif group.traits.slurm and kind.accelerator and kind.accelerator.manufacturer != "NVIDIA":
        yield at("deep_health_checks").breach(
            f"with Slurm the guide lists checks of GPUs only, and {kind.name} has "
            f"{kind.accelerator.name}: HyperPod refuses them, or runs none. On EKS it also "
            "checks Trainium.",
            drop(),
        )


@HYP.warning(48, DEEP_CHECKS, "2026-11-22")
def connectivity_needs_two(group: Group) -> Breaches:
    """Connectivity checks have at least two nodes."""
    checks, count = group.settings.deep_health_checks, group.settings.count
    if group.in_service and "instance-connectivity" in checks and count < 2:
        rest = [check for check in checks if check != "instance-connectivity"]
        yield at("deep_health_checks", checks.index("instance-connectivity")).breach(
            f"instance-connectivity tests nodes against each other, and the group has {count}: "
            "there is nothing to test until it grows.",
            anywhere({("node_groups", group.name, "count"): 2}) | (drop() if rest else whole(DROP)),
        )


@HYP.warning(
    49,
    CUSTOM_AMI,
    by_hand="aws ec2 describe-images --image-ids <ami> --query "
    "'Images[].[OwnerId,State,BlockDeviceMappings[].Ebs.[SnapshotId,Encrypted]]'",
)
def custom_image(group: Group, cluster: Cluster) -> Breaches:
    """A custom image is built as HyperPod requires."""
    if not group.in_service or not group.settings.image:
        return
    base = "HyperPod's Slurm image of July 2026 or later"
    if kubernetes := cluster.kubernetes:
        release = kubernetes.kubernetes_version
        base = f"HyperPod's EKS image of August 2025 or later for Kubernetes {release}"
    yield at("image").breach(
        f"{group.settings.image} must be made from {base}, be of the same account and have a root snapshot "
        "only. On encryption AWS contradicts itself: unencrypted (API) or with the key of the root "
        "volume (guide). AWS's support policy for images does not cover it.",
        drop().noting("HyperPod's own image is then used; or look and acknowledge this"),
    )


@HYP.error(58, f"{GROUP_API} (ImageId, ImageReleaseVersion)")
def image_or_release(group: Group) -> Breaches:
    """A group names a custom image or a release of HyperPod's image, not both."""
    image, release = group.settings.image, group.settings.image_release
    if group.in_service and image and release:
        yield at("image_release").breach(
            f"{release} is a release of HyperPod's image, and {image} is another image: name only one.",
            drop() | beside(image=DROP),
        )


@HYP.warning(
    59,
    f"CloudFormation, AWS::SageMaker::Cluster ImageReleaseVersion (EKS only); {GROUP_API} (no limit)",
    by_hand="aws sagemaker describe-cluster --cluster-name <cluster> --query "
    "'InstanceGroups[].[InstanceGroupName,CurrentImageReleaseVersion]'",
    kinds=frozenset({"hyperpod-slurm"}),
)
def release_with_slurm(group: Group) -> Breaches:
    """CloudFormation accepts a release of HyperPod's image with Slurm."""
    if release := group.settings.image_release:
        yield at("image_release").breach(
            f"{release} with Slurm: the API takes it, and CloudFormation's page says that it "
            "is for EKS only. A later change updates the group's software, which wipes root volumes.",
            drop().noting("which takes the newest; or try it with one group and acknowledge this"),
        )


@HYP.warning(50, "SageMaker API reference, ImageId: new groups inherit the image of the oldest group")
def image_inherited(cluster: Cluster, hyperpod: HyperPod) -> Breaches:
    """With continuous provisioning all groups have a custom image, or none has."""
    groups = cluster.in_service
    if hyperpod.provisioning != "continuous" or not any(one.settings.image for one in groups.values()):
        return
    for name, group in groups.items():
        if not group.settings.image:
            yield at("node_groups", name).breach(
                "other groups have a custom image and this one has none: with continuous "
                "provisioning a group that is added later inherits the image of the oldest one.",
                ask("decision", "image: ami-... here, too, or on no group"),
            )


@HYP.warning(51, f"{PATCHING}; {GROUP_API} (AutoPatchConfig, ScheduledUpdateConfig)")
def patching_custom_image(group: Group) -> Breaches:
    """Only groups with HyperPod's own image are patched."""
    if group.in_service and group.settings.patching and group.settings.image:
        yield at("patching").breach(
            "patching puts HyperPod's newer image on the nodes; what it does with "
            f"{group.settings.image} is not published. It may replace that image and all that is in it.",
            drop().noting("change image when you have built a new one"),
        )


@HYP.warning(
    52,
    "Service Quotas, Maximum size of EBS volume in GB for a SageMaker HyperPod cluster "
    "instance (1024 seen in one account; the command below reads yours)",
    by_hand="aws service-quotas get-service-quota --service-code sagemaker "
    "--quota-code L-E13DF72A --region <region>",
)
def volume_quota(group: Group) -> Breaches:
    """The second volume is within the usual quota."""
    size = group.second_volume_gib
    if size and size > QUOTA_SEEN_GIB:
        yield at("volume_gib").breach(
            f"{size} GiB per node; the quota for a HyperPod volume was seen at "
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


@HYP.error(53, "CloudFormation, AWS::SageMaker::Cluster ScheduledUpdateConfig (ScheduleExpression)")
def patching_schedule(patching: ScheduledPatching) -> Breaches:
    """CloudFormation accepts the patching schedule."""
    if problem := _cron_problem(patching.schedule):
        yield at("schedule").breach(
            f"`{patching.schedule}`: {problem}. Each of the six fields is one value.",
            write("cron(0 3 ? * SUN *)").noting("Sundays at 03:00 UTC"),
        )


def _cron_problem(expression: str) -> str:
    fields = expression.removeprefix("cron(").removesuffix(")").split(" ")
    if len(fields) != len(_CRON):
        return f"{len(fields)} fields instead of six"
    for text, (field, pattern) in zip(fields, _CRON, strict=True):
        if not re.fullmatch(pattern, text):
            return f"`{text}` is not a {field}"
    return ""


@HYP.warning(
    66,
    "SageMaker Developer Guide, Customer managed AWS KMS key encryption for SageMaker HyperPod",
    by_hand="aws sagemaker describe-cluster --cluster-name <name> "
    "--query 'InstanceGroups[].InstanceStorageConfigs'",
)
def classic_volume_key(hyperpod: HyperPod) -> Breaches:
    """Node volumes are encrypted with the environment's key."""
    if hyperpod.provisioning == "classic":
        yield at("provisioning").breach(
            "with classic provisioning HyperPod takes no customer-managed key: root and second volumes are "
            "encrypted with a key of AWS's.",
            continuous(hyperpod),
        )
