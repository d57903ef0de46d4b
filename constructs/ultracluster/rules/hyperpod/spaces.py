"""Rules on HyperPod on EKS: spaces, which are people's notebooks and editors."""

from __future__ import annotations

import difflib

from ultracluster.config.hyperpod_spaces import HyperPodSpaces
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.remedy import anywhere, ask, drop, write
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import HPE

DATE = "2026-11-23"
INSTALL = "SageMaker Developer Guide, Install SageMaker AI Spaces Add-on"
CUSTOMIZE = "SageMaker Developer Guide, Customize add-on (Spaces)"
PERMISSIONS = "SageMaker Developer Guide, Set up permissions (Spaces)"
_REMOTE_GIB = 8
_USER = 1000
"""`sagemaker-user` of SageMaker Distribution."""
_RESERVED_GIB = 2
"""Of a node, for Kubernetes and what runs on every node."""


@HPE.error(110, f"{INSTALL}: at least one worker node", DATE)
def spaces_group(spaces: HyperPodSpaces, cluster: Cluster) -> Breaches:
    """Spaces run on nodes of a compute group."""
    compute = {
        name: group
        for name, group in cluster.with_role("compute").items()
        if group.most_nodes and not group.restricted
    }
    if spaces.group in compute:
        return
    known = cluster.groups.get(spaces.group)
    if known is None:
        why = f"there is no node group `{spaces.group}`"
    elif known.role != "compute":
        why = f"`{spaces.group}` has the role {known.role}, and spaces run on HyperPod's nodes"
    elif known.restricted:
        why = f"`{spaces.group}` is restricted, and only AWS's own images for Nova run there"
    else:
        why = f"`{spaces.group}` has no nodes"
    near = difflib.get_close_matches(spaces.group, list(compute), n=1) or list(compute)[:1]
    yield at("group").breach(
        f"{why}: spaces would wait forever.",
        write(near[0]) if near else ask("decision", "a compute group for spaces"),
    )


@HPE.error(111, f"{CUSTOMIZE}: a space is a pod; Kubernetes documentation, Reserve Compute Resources", DATE)
def space_fits_node(spaces: HyperPodSpaces, cluster: Cluster) -> Breaches:
    """A space fits on a node of its group."""
    group = cluster.with_role("compute").get(spaces.group)
    known = group.type if group else None
    if known is None:
        return
    gpus = known.accelerator.count if known.accelerator and known.accelerator.manufacturer == "NVIDIA" else 0
    there = {
        "cpu": known.vcpu and known.vcpu - 1,
        "memory_gib": known.memory_gib and int(known.memory_gib) - _RESERVED_GIB,
        "gpus": gpus if known.accelerator is None or gpus else None,
    }
    for field, most in there.items():
        asked = getattr(spaces, field)
        if most is not None and asked > max(0, most):
            yield at(field).breach(
                f"nodes of `{spaces.group}` ({known.name}) have at most {max(0, most)} for pods, and a space "
                f"asks for {asked}: none would start.",
                write(most) if most > 0 or field == "gpus" else ask("decision", "a larger type"),
            )


@HPE.error(
    112,
    "AWS's images for spaces are in Amazon ECR Public, which no VPC endpoint reaches (Amazon ECR User "
    "Guide, Amazon ECR interface VPC endpoints)",
    DATE,
)
def space_images(spaces: HyperPodSpaces, cluster: Cluster) -> Breaches:
    """Images of spaces can be pulled."""
    if cluster.environment.network.egress != "closed":
        return
    public = [image for image in spaces.images if image.startswith("public.ecr.aws/")]
    if public:
        yield at("images").breach(
            f"egress is `closed`, and {', '.join(public)} is in a public registry that it does not reach.",
            ask("fact", "images: [<account>.dkr.ecr.<region>.amazonaws.com/<copy>:<tag>]"),
        )


@HPE.warning(113, f"{INSTALL}: additional dependencies for WebUI access", DATE)
def web_ui_dependencies(spaces: HyperPodSpaces) -> Breaches:
    """Web browsers reach spaces through parts that you install."""
    if spaces.web_ui:
        yield at("web_ui").breach(
            "the AWS Load Balancer Controller and ExternalDNS make the load balancer and names of spaces: "
            "neither is installed here.",
            drop().noting("or acknowledge that you install them, and that Route 53 has the domain"),
        )


@HPE.warning(114, f"{INSTALL}: Customizing ALB Attributes; its own default is internet-facing", DATE)
def web_ui_on_internet(spaces: HyperPodSpaces) -> Breaches:
    """Spaces are not on the internet."""
    if spaces.web_ui and spaces.web_ui.scheme == "internet-facing":
        yield at("web_ui", "scheme").breach(
            "the load balancer has public addresses: only people's tokens keep the internet out of terminals "
            "on your nodes.",
            write("internal").noting("or acknowledge who may reach it"),
        )


@HPE.error(
    115,
    f"{CUSTOMIZE}: Instance requirements; jupyter-infra/jupyter-k8s-aws b6adb6f, "
    "workspace-memory-policy.yaml, which refuses less",
    DATE,
)
def remote_ide_memory(spaces: HyperPodSpaces) -> Breaches:
    """A space that editors connect to has 8 GiB of memory."""
    if spaces.remote_ide and spaces.memory_gib < _REMOTE_GIB:
        yield at("memory_gib").breach(
            f"{spaces.memory_gib} GiB: with `remote_ide` the add-on refuses every space with less than "
            f"{_REMOTE_GIB}.",
            write(_REMOTE_GIB),
        )


@HPE.warning(
    116,
    "jupyter-infra/jupyter-k8s-aws b6adb6f, hyperpod-access-strategy.yaml: the agent beside a space "
    "has no security context; AWS does not publish that of its own build",
    DATE,
    by_hand="kubectl get events -n <team>  # after the first space",
)
def pod_security_of_spaces(spaces: HyperPodSpaces, cluster: Cluster) -> Breaches:
    """A team's pods may be what the add-on makes of a space."""
    if not spaces.remote_ide:
        return
    strict = [name for name, team in cluster.environment.teams.items() if team.pod_security == "restricted"]
    if strict:
        yield at("remote_ide").breach(
            f"pods of {', '.join(strict)} are `restricted`, and the agent that the add-on puts beside each "
            "space is not, by its published chart: Kubernetes would refuse the space.",
            anywhere({("teams", name, "pod_security"): "baseline" for name in strict}).noting(
                "or acknowledge this once a space has started"
            ),
        )


@HPE.warning(
    117,
    "SageMaker Developer Guide, Task governance for Interactive Spaces on HyperPod; "
    "kubernetes/kueue.py: our Kueue counts jobs",
    DATE,
)
def space_gpus_counted(spaces: HyperPodSpaces, hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """GPUs of spaces are counted with those of jobs."""
    if spaces.gpus and not hyperpod.task_governance and cluster.environment.teams:
        yield at("gpus").breach(
            "the scheduler of jobs does not know of GPUs that spaces have: jobs that it admits may wait for "
            "them.",
            write(0).noting("or a group that no team's jobs use, and acknowledge this"),
        )


@HPE.error(
    118, "AWS Certificate Manager User Guide, Regions; AWS KMS Developer Guide, Keys in other Regions", DATE
)
def web_ui_region(spaces: HyperPodSpaces, cluster: Cluster) -> Breaches:
    """Certificate and key of the web pages are in the cluster's Region."""
    web = spaces.web_ui
    for field, arn in (("certificate_arn", web.certificate_arn), ("key_arn", web.key_arn)) if web else ():
        place = arn.split(":")[3] if arn.startswith("arn:") else cluster.region
        if place != cluster.region:
            yield at("web_ui", field).breach(
                f"it is in {place}, and a load balancer in {cluster.region} takes only what is there.",
                ask("fact", f"one in {cluster.region}"),
            )


@HPE.warning(119, f"{CUSTOMIZE}: sagemaker-user, fsGroup 1000", DATE)
def space_users(spaces: HyperPodSpaces, cluster: Cluster) -> Breaches:
    """Spaces run as the user of their image."""
    teams = cluster.environment.teams.items()
    others = {name: team.uid for name, team in teams if team.uid not in (None, _USER)}
    distribution = [image for image in spaces.images if "sagemaker-distribution" in image]
    if others and distribution:
        team, uid = next(iter(others.items()))
        yield at("images").breach(
            f"team `{team}` runs as user {uid}, and the home folder in {distribution[0]} is of user {_USER}: "
            "its start script may fail.",
            ask("action", "start a space of that team, or take an image whose files belong to no user"),
        )
