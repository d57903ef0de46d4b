"""What an environment is billed for, as far as its file says."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace

from ultracluster.catalog import ultraservers
from ultracluster.catalog.eks_calendar import standard_support_ends
from ultracluster.catalog.pcs import pcs_size_for
from ultracluster.config import Environment
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HYPERPOD, Pcs
from ultracluster.model.root_volume import INCLUDED_IOPS, INCLUDED_MBPS, root_iops, root_throughput
from ultracluster.model.types import instance_type_of
from ultracluster.plan.billed_item import Item, standing
from ultracluster.plan.billed_services import services


def billed(environment: Environment, today: dt.date | None = None) -> Iterator[Item]:
    """Everything that an environment is billed for, as far as the file says.

    Args:
        today: decides whether a Kubernetes release is in extended support; the current day by default.
    """
    yield from _nodes(environment)
    yield from _control_plane(environment, today or dt.date.today())
    yield from services(environment)


def _nodes(environment: Environment) -> Iterator[Item]:
    hyperpod = environment.orchestrator.kind in HYPERPOD
    for name, group in environment.node_groups.items():
        greatest = greatest_nodes(environment, group)
        if not greatest:
            continue
        ours = not hyperpod or group.role == "system"  # system groups are EC2 nodes that EKS manages
        yield _instances(environment, name, group, greatest, hyperpod=not ours)
        gib = group.root_volume_gib if ours else group.volume_gib
        yield Item(
            area="nodes",
            what=f"{name}: {'root' if ours else 'second'} volumes",
            key="ebs.gp3" if ours else "hyperpod-volume",
            purchase="usage",
            unit="GiB",
            quantity=gib * group.count,
            greatest=gib * greatest,
        )
        if ours:
            yield from _speed(environment, name, group, greatest)


def _speed(environment: Environment, name: str, group: NodeGroup, greatest: int) -> Iterator[Item]:
    """What root volumes cost beyond the speed that is included."""
    throughput = root_throughput(group, instance_type_of(environment, group))
    for what, key, unit, more in (
        ("MB/s", "ebs.gp3-throughput", "MB/s", throughput - INCLUDED_MBPS),
        ("IOPS", "ebs.gp3-iops", "IOPS", root_iops(throughput) - INCLUDED_IOPS),
    ):
        if more:
            yield Item(
                area="nodes",
                what=f"{name}: root volumes, {what}",
                key=key,
                purchase="usage",
                unit=unit,
                quantity=more * group.count,
                greatest=more * greatest,
            )


def greatest_nodes(environment: Environment, group: NodeGroup) -> int:
    """Nodes that a group may have at the most."""
    scaling = getattr(environment.orchestrator, "autoscaling", None)
    if scaling is not None and group.role == "compute" and group.count == 0:
        return int(scaling.max_nodes)  # HyperPod's Karpenter fills the empty groups
    return group.greatest


def _instances(
    environment: Environment, name: str, group: NodeGroup, greatest: int, *, hyperpod: bool
) -> Item:
    kind, capacity = group.instance_type, group.capacity.kind
    item = Item(
        area="nodes",
        what=f"{name}: {kind}",
        key=f"{'hyperpod' if hyperpod else 'ec2'}.{kind}",
        purchase=capacity,
        unit="instance",
        quantity=group.count,
        greatest=greatest,
        group=name,
    )
    if capacity == "spot":
        return replace(
            item,
            key=f"{'hyperpod-spot' if hyperpod else 'spot'}.{kind}",
            note="on demand is the most that Spot costs"
            + ("" if hyperpod else "; --live asks for its price"),
        )
    if capacity == "reservation":
        return replace(item, note="billed whether or not nodes run in it")
    if capacity == "training-plan":
        return replace(item, key=f"training-plan.{kind}", note=_PREPAID)
    if capacity == "capacity-block":
        return _in_ultraservers(environment, replace(item, key=f"capacity-block.{kind}", note=_PREPAID))
    if group.instance_types:
        return replace(item, note=f"or {', '.join(group.instance_types)} where it cannot be had")
    return item


_PREPAID = "paid upfront, used or not"


def _in_ultraservers(environment: Environment, item: Item) -> Item:
    """Blocks of UltraServers are sold by the UltraServer."""
    kind = item.key.partition(".")[2]
    sold = [one for one in ultraservers().values() if one.member == kind and one.capacity_block_regions]
    sold.sort(key=lambda one: one.instances, reverse=True)
    for one in sold:
        if item.quantity and item.quantity % one.instances == 0 and item.greatest % one.instances == 0:
            return replace(
                item,
                what=f"{item.what} in {one.name}",
                key=f"capacity-block.{one.name}",
                unit="UltraServer",
                quantity=item.quantity // one.instances,
                greatest=item.greatest // one.instances,
            )
    return item


def _control_plane(environment: Environment, today: dt.date) -> Iterator[Item]:
    orchestrator = environment.orchestrator
    if isinstance(orchestrator, Eks | HyperPodEks):
        version = orchestrator.kubernetes_version
        yield standing("control plane", f"EKS {version}", "eks.standard", "cluster")
        ends = standard_support_ends(version)
        if ends and ends <= today and orchestrator.support == "extended":
            yield standing("control plane", f"extended support of {version}", "eks.extended", "cluster")
        if orchestrator.scaling_tier != "standard":
            tier = orchestrator.scaling_tier
            yield standing(
                "control plane", f"EKS provisioned control plane, {tier}", f"eks.tier.{tier}", "tier"
            )
        for name in _capabilities(orchestrator):
            yield standing("control plane", f"EKS capability {name}", f"eks.capability.{name}", "capability")
    if isinstance(orchestrator, Pcs):
        nodes = sum(group.greatest for group in environment.node_groups.values())
        size = orchestrator.size or pcs_size_for(nodes).name
        yield _pcs(
            standing("control plane", f"PCS controller, {size}", f"pcs.controller.{size}", "controller")
        )
        node_fee = Item(
            area="control plane",
            what="PCS fee for each node",
            key="pcs.node",
            purchase="usage",
            unit="node",
            quantity=sum(group.count for group in environment.node_groups.values()),
            greatest=nodes,
        )
        yield _pcs(node_fee)
        if orchestrator.accounting.mode == "standard":
            yield _pcs(standing("control plane", "PCS accounting", "pcs.accounting", "cluster"))


def _pcs(item: Item) -> Item:
    return replace(item, note="AWS PCS has no price list that we know: see aws.amazon.com/pcs/pricing")


def _capabilities(orchestrator: Eks | HyperPodEks) -> list[str]:
    wanted = orchestrator.capabilities
    return [
        name for name, on in (("argo-cd", wanted.argo_cd), ("ack", wanted.ack), ("kro", wanted.kro)) if on
    ]
