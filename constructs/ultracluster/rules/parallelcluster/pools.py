"""Rules on: ParallelCluster. Login pools, and what its CloudWatch dashboard carries with it."""

from __future__ import annotations

import difflib
from ipaddress import IPv4Network

from ultracluster.catalog.address_ranges import public_addresses
from ultracluster.config.parallelcluster import ParallelCluster, ParallelClusterMonitoring
from ultracluster.config.remedy import ask, drop, rename, write
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import PCL
from ultracluster.rules.sources import PCLUSTER

DATE = "2026-11-23"


@PCL.error(87, f"{PCLUSTER}, schema (LoginNodes Pools): a group of role login is a pool", DATE)
def login_pool_group(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """Settings of login pools are about login groups."""
    pools = cluster.with_role("login")
    for name in settings.login_pools:
        if name not in pools:
            free = [pool for pool in pools if pool not in settings.login_pools]
            near = difflib.get_close_matches(name, free, n=1, cutoff=0.5)
            yield at("login_pools", name).breach(
                f"no group `{name}` has the role `login`: its settings would have no effect.",
                rename(near[0]) if near else drop(),
            )


@PCL.error(88, "AWS Security Hub controls, EC2.13: no security group allows 0.0.0.0/0 to port 22", DATE)
def login_pool_open(settings: ParallelCluster) -> Breaches:
    """Login pools are not open to the internet."""
    for name, networks in settings.ssh_pools.items():
        for number, network in enumerate(networks):
            public = public_addresses(IPv4Network(network))
            if int(network.rpartition("/")[2]) < 8 and public:
                yield at("login_pools", name, "ssh_networks", number).breach(
                    f"{network} holds {public} addresses of the internet: anybody there could try to log in.",
                    write("10.0.0.0/8").noting("or the networks of your company; Session Manager needs none"),
                )


@PCL.warning(
    89,
    "ParallelCluster User Guide, Amazon CloudWatch dashboard: without it the alarms on "
    "disk_used_percent and memory_used_percent are off, too",
    DATE,
)
def head_alarms_need_metrics(monitoring: ParallelClusterMonitoring) -> Breaches:
    """Alarms on memory and disk of the head node have their metrics."""
    if monitoring.alarms and not monitoring.dashboard:
        yield at("dashboard").breach(
            "without the dashboard ParallelCluster switches two of its alarms off: a head node whose disk is "
            "full stops the cluster, and nobody is told.",
            write(True).noting("or alarms: false, with `observability` watching the head node"),
        )


@PCL.warning(90, f"{PCLUSTER}, login_nodes_stack.py: each pool has a Network Load Balancer", DATE)
def login_pool_ingress(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """People have a way into a login pool's load balancer."""
    for name, pool in settings.login_pools.items():
        group = cluster.with_role("login").get(name)
        if group and not group.settings.count and pool.ssh_networks:
            yield at("login_pools", name, "ssh_networks").breach(
                f"`{name}` has no nodes (`count: 0`): its load balancer, which is billed, leads nowhere.",
                drop() | ask("decision", f"node_groups.{name}.count of 1 or more"),
            )
