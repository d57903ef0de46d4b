"""What an environment is billed for, as far as its file says."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from ultracluster.catalog import ultraservers
from ultracluster.catalog.eks_calendar import standard_support_ends
from ultracluster.catalog.pcs import pcs_size_for
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.lustre import LustreFacts
from ultracluster.config.orchestrator import ParallelCluster, Pcs
from ultracluster.config.storage import (
    FIRST_LUSTRE,
    IntelligentTieringLustre,
    Persistent1HddLustre,
    Persistent2SsdLustre,
)
from ultracluster.model import Cluster, Group
from ultracluster.model.devices import spaces_of
from ultracluster.model.endpoints import made_endpoints
from ultracluster.model.inference import inference_of
from ultracluster.model.node_price import price_key
from ultracluster.model.parent_zone import crosses_zones, parent_zone
from ultracluster.model.root_volume import (
    INCLUDED_IOPS,
    INCLUDED_MBPS,
    io2_tiers,
    root_iops,
    root_throughput,
)
from ultracluster.plan.billed_item import Item, standing
from ultracluster.plan.billed_observability import observability_items

HEAD_NODE_ALARMS = 5
"""Health, processor, memory, disk, heartbeat (aws-parallelcluster 3.16.1, templates/cluster_stack.py)."""


def billed(cluster: Cluster, today: dt.date | None = None) -> Iterator[Item]:
    """Everything that an environment is billed for, as far as the file says.

    Args:
        today: decides whether a Kubernetes release is in extended support; the current day by default.
    """
    for group in cluster.groups.values():
        if group.most_nodes:
            yield from _nodes(group)
    yield from _control_plane(cluster, today or dt.date.today())
    parts = (_all_lustre, _restricted_lustre, _open_zfs, _database, _network, _security, observability_items)
    for part in (*parts, _own_monitoring, _by_use):
        yield from part(cluster)


def _nodes(group: Group) -> Iterator[Item]:
    ours, count = not group.in_service, group.settings.count
    yield _instances(group)
    gib = group.settings.root_volume_gib if ours else group.second_volume_gib
    if gib is None:
        return
    yield Item(
        area="nodes",
        what=f"{group.name}: {'root' if ours else 'second'} volumes",
        key=("ebs.io2" if group.settings.root_volume_iops else "ebs.gp3") if ours else "hyperpod-volume",
        purchase="usage",
        unit="GiB",
        quantity=gib * count,
        greatest=gib * group.most_nodes,
    )
    if ours:
        yield from _speed(group)


def _speed(group: Group) -> Iterator[Item]:
    """What root volumes cost beyond the speed that is included."""
    throughput = root_throughput(group.settings, group.type)
    io2 = io2_tiers(group.settings.root_volume_iops or 0)
    of_gp3 = (
        ("MB/s", "ebs.gp3-throughput", "MB/s", throughput - INCLUDED_MBPS),
        ("IOPS", "ebs.gp3-iops", "IOPS", root_iops(throughput) - INCLUDED_IOPS),
    )
    of_io2 = (
        ("IOPS", "ebs.io2-iops", "IOPS", io2[0]),
        ("IOPS > 32k", "ebs.io2-iops-2", "IOPS", io2[1]),
        ("IOPS > 64k", "ebs.io2-iops-3", "IOPS", io2[2]),
    )
    for what, key, unit, more in of_io2 if any(io2) else of_gp3:
        if more:
            yield Item(
                area="nodes",
                what=f"{group.name}: root volumes, {what}",
                key=key,
                purchase="usage",
                unit=unit,
                quantity=more * group.settings.count,
                greatest=more * group.most_nodes,
            )


def _instances(group: Group) -> Item:
    kind, capacity = group.settings.instance_type, group.capacity.kind
    hyperpod = group.in_service
    item = Item(
        area="nodes",
        what=f"{group.name}: {kind}",
        key=price_key(group),
        purchase=capacity,
        unit="instance",
        quantity=group.settings.count,
        greatest=group.most_nodes,
        group=group.name,
    )
    match capacity:
        case "on-demand":
            others = ", ".join(group.settings.instance_types)
            return replace(item, note=f"or {others} where it cannot be had") if others else item
        case "spot":
            asks = "" if hyperpod else "; --live asks for its price"
            return replace(item, note=f"on demand is the most that Spot costs{asks}")
        case "reservation":
            lent = group.capacity.takes_back
            return replace(
                item,
                note="billed while nodes run; its owner pays for what stands idle"
                if lent
                else "billed whether or not nodes run in it",
            )
        case "training-plan":
            return replace(item, note=_PREPAID)
        case "capacity-block":
            return _in_ultraservers(replace(item, note=_PREPAID))
        case _ as never:
            assert_never(never)


_PREPAID = "paid upfront, used or not"


def _in_ultraservers(item: Item) -> Item:
    """Blocks of UltraServers are sold by the UltraServer."""
    kind = item.key.partition(".")[2]
    servers = [
        ultraserver
        for ultraserver in ultraservers().values()
        if ultraserver.member == kind and ultraserver.capacity_block_regions
    ]
    for server in sorted(servers, key=lambda one: one.instances, reverse=True):
        if item.quantity and item.quantity % server.instances == item.greatest % server.instances == 0:
            return replace(
                item,
                what=f"{item.what} in {server.name}",
                key=f"capacity-block.{server.name}",
                unit="UltraServer",
                quantity=item.quantity // server.instances,
                greatest=item.greatest // server.instances,
            )
    return item


def _control_plane(cluster: Cluster, today: dt.date) -> Iterator[Item]:
    kubernetes, settings = cluster.kubernetes, cluster.settings
    if kubernetes:
        version, tier = kubernetes.kubernetes_version, kubernetes.scaling_tier
        yield standing("control plane", f"EKS {version}", "eks.standard", "cluster")
        ends = standard_support_ends(version)
        if ends and ends <= today and kubernetes.support == "extended":
            yield standing("control plane", f"extended support of {version}", "eks.extended", "cluster")
        if tier != "standard":
            yield standing(
                "control plane", f"EKS provisioned control plane, {tier}", f"eks.tier.{tier}", "tier"
            )
        on = kubernetes.capabilities
        for name, enabled in (("argo-cd", on.argo_cd), ("ack", on.ack), ("kro", on.kro)):
            if enabled:
                what = f"EKS capability {name}"
                yield standing("control plane", what, f"eks.capability.{name}", "capability")
    if isinstance(settings, Pcs):
        nodes = sum(group.most_nodes for group in cluster.groups.values())
        size = settings.size or pcs_size_for(nodes).name
        yield _pcs(
            standing("control plane", f"PCS controller, {size}", f"pcs.controller.{size}", "controller")
        )
        node_fee = Item(
            area="control plane",
            what="PCS fee for each node",
            key="pcs.node",
            purchase="usage",
            unit="node",
            quantity=sum(group.settings.count for group in cluster.groups.values()),
            greatest=nodes,
        )
        yield _pcs(node_fee)
        if settings.accounting.mode == "standard":
            yield _pcs(standing("control plane", "PCS accounting", "pcs.accounting", "cluster"))


def _pcs(item: Item) -> Item:
    return replace(item, note="AWS PCS has no price list that we know: see aws.amazon.com/pcs/pricing")


def _all_lustre(cluster: Cluster) -> Iterator[Item]:
    for name, facts in cluster.lustres.items():
        for item in _lustre(facts):
            yield item if name == FIRST_LUSTRE else replace(item, what=f"{name}: {item.what}")


def _lustre(facts: LustreFacts) -> Iterator[Item]:
    lustre = facts.new
    if lustre is None:
        return
    key = f"lustre.{lustre.deployment}"
    if isinstance(lustre, IntelligentTieringLustre):
        speed = lustre.throughput_mbps
        yield standing(
            "storage", f"Lustre throughput, {lustre.deployment}", f"{key}.throughput", "MB/s", speed
        )
        yield standing("storage", "Lustre metadata IOPS", f"{key}.metadata", "IOPS", lustre.metadata_iops)
        if lustre.read_cache.mode == "sized":
            yield standing("storage", "Lustre read cache", f"{key}.cache", "GiB", lustre.read_cache.gib or 0)
        elif lustre.read_cache.mode == "proportional":
            # FSx decides its size; without one there is nothing to multiply
            yield standing("storage", "Lustre read cache, size by throughput", "", "cache")
        return
    tier = facts.throughput_mbps_per_tib
    speed, place = (f", {tier}/TiB", f".{tier}") if tier else ("", "")
    cache = "-cached" if isinstance(lustre, Persistent1HddLustre) and lustre.drive_cache == "read" else ""
    yield standing(
        "storage", f"Lustre {lustre.deployment}{speed}", f"{key}{place}{cache}", "GiB", lustre.capacity_gib
    )
    if isinstance(lustre, Persistent2SsdLustre) and isinstance(lustre.metadata_iops, int):
        yield replace(
            standing("storage", "Lustre metadata IOPS", f"{key}.metadata", "IOPS", lustre.metadata_iops),
            note="some of them may come with the capacity",
        )


def _restricted_lustre(cluster: Cluster) -> Iterator[Item]:
    """What HyperPod makes for restricted groups, and AWS bills here; its kind is not published."""
    own = {name: one.restricted.lustre for name, one in cluster.in_service.items() if one.restricted}
    settings = cluster.kubernetes
    shared = settings.restricted_lustre if isinstance(settings, HyperPodEks) else None
    for what, lustre in (*own.items(), *([("restricted groups", shared)] if shared and own else ())):
        if lustre:
            speed = lustre.throughput_mbps_per_tib
            item = standing(
                "storage",
                f"Lustre of {what}, {speed}/TiB",
                f"lustre.persistent-2-ssd.{speed}",
                "GiB",
                lustre.capacity_gib,
            )
            yield replace(item, note="counted as persistent-2-ssd; HyperPod makes it, also for 0 nodes")


def _open_zfs(cluster: Cluster) -> Iterator[Item]:
    home = cluster.environment.storage.openzfs
    if home is None or home.deployment == "existing":
        return
    key = f"openzfs.{home.deployment}"
    yield standing("storage", f"OpenZFS {home.deployment}", f"{key}.storage", "GiB", home.capacity_gib)
    yield standing("storage", "OpenZFS throughput", f"{key}.throughput", "MB/s", home.throughput_mbps)


def _database(cluster: Cluster) -> Iterator[Item]:
    database = cluster.environment.storage.accounting_database
    if database is None or database.kind == "existing":
        return
    zones = "-multi-az" if database.multi_az else ""
    two = ", 2 zones" if database.multi_az else ""
    yield standing(
        "storage",
        f"RDS MySQL db.{database.instance_class}{two}",
        f"rds.mysql{zones}.{database.instance_class}",
        "instance",
    )
    yield standing("storage", f"RDS storage, gp3{two}", f"rds.storage{zones}", "GiB", database.storage_gib)


def _network(cluster: Cluster) -> Iterator[Item]:
    if _makes_nat(cluster):
        yield standing("network", "NAT gateway", "nat", "gateway")
        yield standing("network", "public IPv4 of the NAT gateway", "ipv4", "address")
    interfaces = [endpoint for endpoint in made_endpoints(cluster) if endpoint.kind == "interface"]
    if interfaces:
        yield standing("network", "interface endpoints, one zone", "endpoint", "endpoint", len(interfaces))
    pools = cluster.with_role("login") if isinstance(cluster.settings, ParallelCluster) else {}
    if pools:
        item = standing("network", "load balancers of login pools", "nlb", "load balancer", len(pools))
        yield replace(item, note="ParallelCluster makes one for each pool, also for one without nodes")


def _makes_nat(cluster: Cluster) -> bool:
    return cluster.environment.network.egress == "nat" and cluster.environment.network.vpc is None


def _security(cluster: Cluster) -> Iterator[Item]:
    ours = (
        0 if cluster.environment.storage.key else 1 + cluster.traits.kubernetes
    )  # the control plane has one of its own
    keys = ours + (cluster.environment.network.vpc is None)  # flow logs
    if keys:
        yield standing("security", "KMS keys", "kms.key", "key", keys)
    database = cluster.environment.storage.accounting_database
    if database is not None and database.kind != "existing":
        secrets = 2 + cluster.traits.plain_password  # of the master user and of slurmdbd
        yield standing("security", "secrets of the database", "secret", "secret", secrets)


def _own_monitoring(cluster: Cluster) -> Iterator[Item]:
    """What ParallelCluster makes in CloudWatch by itself."""
    settings = cluster.settings
    if not isinstance(settings, ParallelCluster):
        return
    if settings.monitoring.dashboard:
        item = standing("observability", "ParallelCluster's dashboard", "cloudwatch.dashboard", "dashboard")
        yield replace(item, note="the first three of an account are free")
    if settings.monitoring.alarms:
        alarms = standing(
            "observability", "ParallelCluster's alarms", "cloudwatch.alarm", "alarm", HEAD_NODE_ALARMS
        )
        yield replace(alarms, note="and a composite alarm of them, which costs more; the first ten are free")


def _by_use(cluster: Cluster) -> Iterator[Item]:
    storage = cluster.environment.storage

    def use(what: str, key: str = "") -> Item:
        return Item(area="by use", what=what, key=key, purchase="usage", unit="GB")

    if _makes_nat(cluster):
        yield use("data through the NAT gateway", "nat.gb")
    if crosses_zones(cluster.environment.network):
        zone = parent_zone(cluster.environment.network)
        yield use(f"data between {cluster.environment.network.zone_id} and {zone}, in each direction")
    if any(endpoint.kind == "interface" for endpoint in made_endpoints(cluster)):
        yield use("data through interface endpoints", "endpoint.gb")
    if not storage.scripts_bucket or cluster.environment.all_data_repositories:
        yield use("S3: objects and requests")
    if isinstance(cluster.settings, ParallelCluster) and cluster.with_role("login"):
        yield use("data and connections through the load balancers of login pools", "nlb.capacity")
    lustres = cluster.lustres.values()
    if any(isinstance(lustre.settings, IntelligentTieringLustre) for lustre in lustres):
        yield use("Lustre: data in Intelligent-Tiering")
    home = storage.openzfs
    backups = [lustre.backups for lustre in lustres]
    backups.append(home.backups if home and home.deployment != "existing" else None)
    if any(backup and backup.retention_days for backup in backups):
        yield use("backups of file systems")
    if wanted := spaces_of(cluster):
        most = wanted.per_team * max(1, len(cluster.environment.teams))
        yield use(f"EBS volumes of up to {most} spaces, {wanted.storage_gib} GiB each", "ebs.gp3")
        if wanted.remote_ide:
            yield use(f"editors: up to {most} spaces as managed nodes of Systems Manager", "ssm.advanced")
    serving = inference_of(cluster)
    if serving and serving.load_balancer_controller:
        yield use("a load balancer for each endpoint or gateway of the inference operator")
    if serving and not serving.certificate_bucket:
        yield use("S3: certificates of endpoints")
    yield use("CloudWatch: logs and metrics")
    yield use("traffic to other zones, Regions and the internet")
