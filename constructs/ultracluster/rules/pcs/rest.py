"""Rules on: AWS PCS. Slurm's REST API, and the network type of the cluster."""

from __future__ import annotations

from ultracluster.config.network import Network
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import DROP, anywhere, drop, write
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import PCS
from ultracluster.rules.sources import PCS_GUIDE

REST = f"{PCS_GUIDE}, Slurm REST API in AWS PCS"
DATE = "2026-11-23"


@PCS.error(94, REST, DATE)
def rest_excludes_filters(settings: Pcs) -> Breaches:
    """The REST API and CLI filters are not used together."""
    key = next((name for name in settings.slurm_settings if name.lower() == "clifilterplugins"), "")
    if settings.rest and key:
        yield at("rest").breach(
            f"AWS documents the REST API as not compatible with CLI filters, and slurm_settings has {key}.",
            write(False) | anywhere({("orchestrator", "slurm_settings", key): DROP}),
        )


@PCS.warning(95, f"{PCS_GUIDE}, Slurm REST API frequently asked questions in AWS PCS", DATE)
def rest_accounting(settings: Pcs) -> Breaches:
    """The REST API answers questions about accounting."""
    if settings.rest and settings.accounting.mode == "none":
        yield at("rest").breach(
            "without accounting the whole of /slurmdb is refused: no history, accounts or QOS over REST.",
            anywhere({("orchestrator", "accounting"): {"mode": "standard"}}) | drop(),
        )


@PCS.error(96, f"{PCS_GUIDE}, AWS PCS VPC and subnet requirements and considerations", DATE)
def ipv6_block(network: Network, settings: Pcs) -> Breaches:
    """The subnet of an IPv6 cluster has an IPv6 block."""
    if settings.network_type == "ipv6" and network.vpc and not network.subnet:
        yield at("subnet").breach(
            "with IPv6 all subnets of a PCS cluster have an IPv6 block, and that of a VPC which exists is "
            "its owner's to divide: a node subnet that is made here would have none.",
            anywhere({("orchestrator", "network_type"): "ipv4"}).noting(
                "or name a dual-stack subnet that assigns IPv6 addresses, as network.subnet"
            ),
        )
