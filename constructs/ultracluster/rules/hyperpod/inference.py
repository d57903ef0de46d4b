"""Rules on HyperPod's inference operator: what it requires of nodes, add-ons, roles, storage and network."""

from __future__ import annotations

from ultracluster.catalog.hyperpod_eks import (
    addon_order,
    disaggregated_types,
    inference_needs,
    inference_role_prefix,
    inference_since,
)
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, drop, relative, write
from ultracluster.model import Cluster, Group
from ultracluster.model.inference import ADDON, addon_version, inference_has
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import HPE

GUIDE = "SageMaker Developer Guide, Setting up your HyperPod clusters for model deployment"
CACHES = "SageMaker Developer Guide, KV caching and intelligent routing"
APART = "SageMaker Developer Guide, Disaggregated Prefill and Decode for HyperPod inference"
GATEWAY = "SageMaker Developer Guide, Inference Gateway for Amazon SageMaker HyperPod Inference"
CHART = "aws/sagemaker-hyperpod-cli 011ca92, charts/inference-operator"
_PREFIX = "hyperpod-tls"
_DATE = "2026-11-23"


@HPE.error(90, f"{CHART}, values.yaml (affinity): its images are for amd64 only", _DATE)
def operator_needs_x86_node(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """The inference operator has an x86 node to run on."""
    groups = [group for group in cluster.groups.values() if group.most_nodes]
    if hyperpod.inference is None or any(group.type is None for group in groups):
        return
    if not any(group.type and group.type.architecture == "x86_64" for group in groups):
        yield at("inference").breach(
            "its images are for x86_64 only, and every group of the cluster is arm64: its pods would wait "
            "forever.",
            ask("decision", "a group with role: system of an x86_64 type"),
        )


@HPE.error(91, GUIDE, _DATE)
def addon_floors(hyperpod: HyperPodEks) -> Breaches:
    """Add-ons are no older than the inference operator requires."""
    if hyperpod.inference is None:
        return
    for name, least in inference_needs().items():
        for written, version in hyperpod.addon_versions.items():
            if written == name and addon_order(version) < addon_order(least):
                yield at("addon_versions", name).breach(
                    f"the inference operator is not installed beside {name} {version}: it requires {least} "
                    "or newer.",
                    drop() | write(least),
                )


@HPE.error(92, f"{CHART}, templates/_validateRequiredValues.tpl (isAddOn)", _DATE)
def role_name(hyperpod: HyperPodEks) -> Breaches:
    """The role of the inference operator has the name that the add-on accepts."""
    wanted, prefix = hyperpod.inference, inference_role_prefix()
    arn = str(wanted.execution_role_arn) if wanted and wanted.execution_role_arn else None
    if arn and arn.startswith("arn:") and not arn.rpartition("/")[2].startswith(prefix):
        yield at("inference", "execution_role_arn").breach(
            f"the add-on refuses a role whose name does not begin with {prefix}.",
            drop().noting("the role is then made here"),
        )


@HPE.warning(93, f"{GUIDE}: a custom bucket name that does not start with hyperpod-tls-", _DATE)
def certificate_bucket(hyperpod: HyperPodEks) -> Breaches:
    """A role made elsewhere may use the bucket of certificates."""
    wanted = hyperpod.inference
    bucket = wanted.certificate_bucket if wanted else None
    if wanted and bucket and wanted.execution_role_arn and not str(bucket).startswith(_PREFIX):
        yield at("inference", "certificate_bucket").breach(
            f"AWS's policy AmazonSageMakerHyperPodInferenceAccess lets a role use {_PREFIX}* only: without a "
            "policy of its own for this bucket no endpoint gets a certificate.",
            relative({("execution_role_arn",): DROP}, up=1).noting(
                "the role is then made here for this bucket; or acknowledge that yours has such a policy"
            ),
        )


@HPE.error(94, GATEWAY, _DATE)
def gateway_version(hyperpod: HyperPodEks) -> Breaches:
    """The gateway is a part of the inference add-on's version."""
    wanted = hyperpod.inference
    if wanted and wanted.gateway and not inference_has(hyperpod, "gateway"):
        yield at("inference", "gateway").breach(
            f"version {addon_version(hyperpod, ADDON)} of the add-on has no gateway: it comes with "
            f"{inference_since('gateway')}.",
            _newer() | write(False),
        )


@HPE.error(95, f"{CACHES} (l2CacheBackend: tieredstorage)", _DATE)
def shared_cache_needs_storage(hyperpod: HyperPodEks) -> Breaches:
    """A cache that nodes share has HyperPod's tiered storage below it."""
    wanted = hyperpod.inference
    if wanted and wanted.kv_cache == "tiered" and not hyperpod.tiered_checkpoints_percent:
        yield at("inference", "kv_cache").breach(
            "`tiered` keeps keys and values in HyperPod's tiered storage, and the cluster has none: no "
            "replica would find what another has computed.",
            relative({("tiered_checkpoints_percent",): 20}, up=2) | write("node"),
        )


@HPE.error(96, APART, _DATE)
def disaggregation_supported(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """Prefill and decode are apart only where the operator can hand caches over."""
    wanted = hyperpod.inference
    if wanted is None or not wanted.disaggregated_groups:
        return
    place = ("inference", "disaggregated_groups")
    if not inference_has(hyperpod, "disaggregation"):
        yield at(*place).breach(
            f"version {addon_version(hyperpod, ADDON)} of the add-on serves both on one node: it takes them "
            f"apart from {inference_since('disaggregation')} on.",
            _newer() | drop(),
        )
    groups = cluster.with_role("compute")
    nodes = 0
    for index, name in enumerate(wanted.disaggregated_groups):
        group = groups.get(name)
        if group is None:
            yield at(*place, index).breach(f"there is no compute group `{name}`.", _other(cluster))
            continue
        nodes += group.most_nodes
        if group.type and group.type.name not in disaggregated_types():
            yield at(*place, index).breach(
                f"{group.type.name} of `{name}` is not one of the types that may: the cache goes from GPU to "
                "GPU over EFA.",
                _other(cluster).noting(f"the types that may: {', '.join(disaggregated_types())}"),
            )
    if nodes == 1:
        yield at(*place).breach(
            "prefill and decode have nodes of their own, and these groups have one node together.",
            drop().noting("or another node"),
        )


@HPE.warning(
    97,
    f"{GUIDE} (Create the ALB Controller role: tags of subnets)",
    by_hand="aws ec2 describe-subnets --filters Name=vpc-id,Values=<vpc> Name=tag-key,Values="
    "kubernetes.io/role/internal-elb --query 'Subnets[].[SubnetId,AvailabilityZoneId]'",
    date=_DATE,
)
def subnets_tagged_for_load_balancers(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """Load balancers find their subnets in a VPC made elsewhere."""
    wanted = hyperpod.inference
    if wanted and wanted.load_balancer_controller and hyperpod.control_plane_subnet_ids:
        yield at("inference").breach(
            "load balancers of endpoints are put into two zones, in subnets with the tag "
            "kubernetes.io/role/internal-elb, which only subnets that are made here have.",
            ask("action", "tag private subnets of two zones, and acknowledge this"),
        )


@HPE.warning(
    98,
    "SageMaker Developer Guide, Deploy models from Amazon S3, Amazon FSx, or Hugging Face Hub using kubectl",
    _DATE,
)
def model_source(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """There is something that models can be read from."""
    wanted = hyperpod.inference
    if wanted is None or wanted.model_buckets or cluster.environment.storage.lustre:
        return
    if cluster.environment.network.egress == "closed":
        yield at("inference").breach(
            "no bucket of models, no Lustre file system, and no way to Hugging Face (`egress: closed`): an "
            "endpoint has nothing to serve.",
            ask("fact", "model_buckets: names of buckets that hold models"),
        )


@HPE.warning(99, f"{CACHES}; Managed tiered checkpointing: what is cached is not encrypted", _DATE)
def teams_share_cache(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """Teams do not share a cache of prompts unknowingly."""
    wanted = hyperpod.inference
    if wanted and wanted.kv_cache == "tiered" and len(cluster.environment.teams) > 1:
        yield at("inference", "kv_cache").breach(
            "the cache that nodes share keeps endpoints of different teams apart by nothing, and does not "
            "encrypt what their prompts left in it.",
            write("node").noting("or acknowledge that teams may see each other's prompts"),
        )


@HPE.warning(
    100,
    "AWS Certificate Manager User Guide, which names endpoints of a VPC for ACME only, and none "
    "for the API; SageMaker Developer Guide, HyperPod inference",
    by_hand="aws ec2 describe-vpc-endpoint-services --query \"ServiceNames[?ends_with(@, '.acm')]\"",
    date=_DATE,
)
def operator_reaches_acm(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """The operator reaches AWS Certificate Manager."""
    network = cluster.environment.network
    if hyperpod.inference and network.egress == "closed" and "acm" not in network.extra_endpoints:
        yield at("inference").breach(
            "the operator imports the certificates of endpoints into AWS Certificate Manager, which `egress: "
            "closed` does not reach: no endpoint of the VPC for it is known.",
            anywhere({("network", "egress"): "nat"}).noting(
                "or network.extra_endpoints: [acm], where the Region has it"
            ),
        )


def _newer() -> Remedy:
    """Ours, instead of the version that is written."""
    return relative({("addon_versions", ADDON): DROP}, up=2)


def _other(cluster: Cluster) -> Remedy:
    fitting = [name for name, group in cluster.with_role("compute").items() if _may(group)]
    return write(fitting[0]) if fitting else drop()


def _may(group: Group) -> bool:
    return bool(group.type and group.type.name in disaggregated_types())
