"""Rules on io2 root volumes."""

from __future__ import annotations

import math

from ultracluster.config.remedy import DROP, ask, beside, either, write
from ultracluster.model import Cluster, Group
from ultracluster.model.root_volume import IO2_IOPS_PER_GIB
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import GRP

_DATE = "2026-11-23"
_GUIDE = "Amazon EBS User Guide, Provisioned IOPS SSD (io2) Block Express volumes"
_LARGEST_GIB = 16_384
"""Of `root_volume_gib`."""
_QUOTA_IOPS, _QUOTA_TIB = 100_000, 20


@GRP.error(73, _GUIDE, _DATE)
def io2_ratio(group: Group) -> Breaches:
    """An io2 volume has at most 1,000 I/O operations a second for each GiB."""
    iops, gib = group.settings.root_volume_iops, group.settings.root_volume_gib
    if iops is None or group.in_service or iops <= gib * IO2_IOPS_PER_GIB:
        return
    larger = math.ceil(iops / IO2_IOPS_PER_GIB)
    fewer = write(gib * IO2_IOPS_PER_GIB)
    yield at("root_volume_iops").breach(
        f"{iops} I/O operations a second on {gib} GiB: EBS makes io2 volumes with at most "
        f"{gib * IO2_IOPS_PER_GIB} of that size.",
        either(fewer, beside(root_volume_gib=larger)) if larger <= _LARGEST_GIB else fewer,
    )


@GRP.error(
    74,
    f"{_GUIDE}: throughput follows from the I/O operations, 0.256 MiB/s each; EC2 API reference, "
    "EbsBlockDevice (Throughput is valid only for gp3)",
    _DATE,
)
def io2_throughput(group: Group) -> Breaches:
    """Only a gp3 root volume has a throughput of its own."""
    settings = group.settings
    if settings.root_volume_iops is None or settings.root_volume_throughput_mbps is None:
        return
    yield at("root_volume_throughput_mbps").breach(
        f"root_volume_iops makes an io2 volume, which moves {_mbps(settings.root_volume_iops):,.0f} MiB/s at "
        "the most; EC2 refuses a throughput beside it.",
        write(DROP) | beside(root_volume_iops=DROP),
    )


@GRP.warning(
    75,
    "Service Quotas, ebs: L-8D977E7E and L-09BD8365 (public records of ListServiceQuotas)",
    _DATE,
    by_hand="aws service-quotas get-service-quota --service-code ebs --quota-code L-8D977E7E "
    "--region <region>",
)
def io2_quota(cluster: Cluster) -> Breaches:
    """All io2 volumes fit the account's default quotas."""
    groups = {name: one for name, one in cluster.in_account.items() if one.settings.root_volume_iops}
    iops = sum(group.most_nodes * (group.settings.root_volume_iops or 0) for group in groups.values())
    tib = sum(group.most_nodes * group.settings.root_volume_gib for group in groups.values()) / 1024
    if iops > _QUOTA_IOPS or tib > _QUOTA_TIB:
        name = max(groups, key=lambda name: groups[name].most_nodes)
        yield at("node_groups", name, "root_volume_iops").breach(
            f"io2 root volumes of all groups have {iops:,} I/O operations a second and {tib:,.1f} TiB: an "
            f"account begins with {_QUOTA_IOPS:,} and {_QUOTA_TIB} TiB in a Region, and EC2 launches no node "
            "beyond.",
            ask("action", "have quotas L-8D977E7E and L-09BD8365 raised first, or take less"),
        )


def _mbps(iops: int) -> float:
    return min(4000, iops * 0.256)
