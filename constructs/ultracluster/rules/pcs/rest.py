"""Rules on: AWS PCS. Slurm's REST API, and the network type of the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config.network import Network
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import DROP, anywhere, drop, write
from ultracluster.rules.engine import Breach
from ultracluster.rules.pcs.groups import GUIDE
from ultracluster.rules.sets import PCS

REST = f"{GUIDE}, Slurm REST API in AWS PCS"
DATE = "2026-11-23"


@PCS.rule(94, "error", "The REST API and CLI filters are not used together", source=REST, date=DATE)
def rest_with_filters(settings: Pcs) -> Iterator[Breach]:
    key = next((name for name in settings.slurm_settings if name.lower() == "clifilterplugins"), "")
    if settings.rest and key:
        yield Breach(
            ("rest",),
            f"AWS documents the REST API as not compatible with CLI filters, and slurm_settings has {key}.",
            write(False) | anywhere({("orchestrator", "slurm_settings", key): DROP}),
        )


@PCS.rule(
    95,
    "warning",
    "The REST API answers questions about accounting",
    source=f"{GUIDE}, Slurm REST API frequently asked questions in AWS PCS",
    date=DATE,
)
def rest_without_accounting(settings: Pcs) -> Iterator[Breach]:
    if settings.rest and settings.accounting.mode == "none":
        yield Breach(
            ("rest",),
            "without accounting the whole of /slurmdb is refused: no history, accounts or QOS over REST.",
            anywhere({("orchestrator", "accounting"): {"mode": "standard"}}) | drop(),
        )


@PCS.rule(
    96,
    "error",
    "The subnet of an IPv6 cluster has an IPv6 block",
    source=f"{GUIDE}, AWS PCS VPC and subnet requirements and considerations",
    date=DATE,
)
def ipv6_block(network: Network, settings: Pcs) -> Iterator[Breach]:
    if settings.network_type == "ipv6" and network.vpc and not network.subnet:
        yield Breach(
            ("subnet",),
            "with IPv6 all subnets of a PCS cluster have an IPv6 block, and that of a VPC which exists is "
            "its owner's to divide: a node subnet that is made here would have none.",
            anywhere({("orchestrator", "network_type"): "ipv4"}).noting(
                "or name a dual-stack subnet that assigns IPv6 addresses, as network.subnet"
            ),
        )
