"""Rules on: what the policies of VPC endpoints let through."""

from __future__ import annotations

from ultracluster.config.findings import YamlPath
from ultracluster.config.network import ExistingVpc, Network
from ultracluster.config.remedy import Remedy, ask, drop, relative
from ultracluster.model import Cluster
from ultracluster.model.endpoint_policy import LONGEST_POLICY, Place, endpoint_policy, length
from ultracluster.model.endpoints import made_endpoints, policy_kind
from ultracluster.model.perimeter import foreign_arns, foreign_registries, perimeter_of
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.network.vpc import OWN
from ultracluster.rules.sets import NET

_GUIDE = "AWS PrivateLink Guide, Control access to VPC endpoints using endpoint policies"
_SUPPORT = (
    "aws ec2 describe-vpc-endpoint-services --service-names com.amazonaws.<region>.<service> "
    "--query 'ServiceDetails[].VpcEndpointPolicySupported'"
)
_DATE = "2026-11-22"
_UNKNOWN = Place(account="0" * 12, region="ap-southeast-99")
"""Longer than any Region's name."""


@NET.warning(26, OWN, _DATE)
def perimeter_unused(network: Network, cluster: Cluster) -> Breaches:
    """Buckets are let through only where VPC endpoints are made."""
    if made_endpoints(cluster):
        return
    for key in ("buckets", "readable_buckets"):
        if getattr(network.perimeter, key):
            yield at("perimeter", key).breach(
                "no VPC endpoint is made, so no policy lets anything through: those of endpoints that exist "
                "are their owner's.",
                drop(),
            )


@NET.error(27, _GUIDE, _DATE)
def policy_length(network: Network, cluster: Cluster) -> Breaches:
    """The policy of a VPC endpoint has at most 20,480 characters."""
    perimeter = perimeter_of(cluster)
    for endpoint in made_endpoints(cluster):
        policy = endpoint_policy(endpoint.service, perimeter, _UNKNOWN)
        if policy and (size := length(policy)) > LONGEST_POLICY:
            longest = max(("accounts", "buckets", "readable_buckets"), key=lambda key: _size(network, key))
            yield at("perimeter", longest).breach(
                f"the policy of the endpoint for {endpoint.service} would have about {size:,} characters; "
                f"EC2 takes {LONGEST_POLICY:,}.",
                ask("decision", "fewer names; an organization stands for all accounts and buckets of it"),
            )


@NET.error(28, "aws-samples/data-perimeter-policy-examples: ecr.api_endpoint_policy.json", _DATE)
def registries_pass(cluster: Cluster) -> Breaches:
    """In a closed network, registries of other accounts are let through."""
    if not _confined(cluster):
        return
    for path, account in foreign_registries(cluster.environment):
        yield at(*path).breach(
            f"a registry of account {account} is named, and the policies of the endpoints for Amazon ECR let "
            "only this account's own pass: its images and charts could not be pulled.",
            _trust(cluster, path, account),
        )


@NET.warning(29, _GUIDE, _DATE)
def arns_pass(cluster: Cluster) -> Breaches:
    """In a closed network, keys and secrets of other accounts are let through."""
    if not _confined(cluster):
        return
    for path, arn in foreign_arns(cluster.environment):
        service, account = arn.split(":")[2], arn.split(":")[4]
        yield at(*path).breach(
            f"it is of account {account}, and the policy of the endpoint for {service} lets only this "
            "account's own pass: nodes that ask for it themselves would be refused.",
            _trust(cluster, path, account),
        )


@NET.warning(
    30, "the catalogue: endpoints.json, which names a source for each service", _DATE, by_hand=_SUPPORT
)
def extra_endpoint_policies(network: Network, cluster: Cluster) -> Breaches:
    """In a closed network, each extra endpoint has a policy."""
    if not _confined(cluster):
        return
    for index, service in enumerate(network.extra_endpoints):
        if policy_kind(service) is None:
            yield at("extra_endpoints", index).breach(
                f"it is not known here that AWS takes a policy for `{service}`, so its endpoint gets none: "
                "whoever has credentials on a node reaches that service in every account.",
                drop().noting("or acknowledge this, if no data of yours can leave through it"),
            )


@NET.warning(31, OWN, _DATE)
def endpoint_networks_unused(network: Network) -> Breaches:
    """endpoint_networks are given only where they open the way to endpoints made elsewhere."""
    if not network.vpc or not network.vpc.endpoint_networks:
        return
    if why := _why_unused(network, network.vpc):
        yield at("vpc", "endpoint_networks").breach(f"no rule is made for them: {why}.", drop())


def _why_unused(network: Network, vpc: ExistingVpc) -> str:
    if network.egress != "closed":
        return "with egress `nat` nodes reach every address on TCP 443"
    if vpc.create_endpoints:
        return "the endpoints are made in this VPC, and nodes reach their security group"
    if network.security_group:
        return f"the rules of {network.security_group.id} are its owner's"
    return ""


def _confined(cluster: Cluster) -> bool:
    """Whether the network is closed and its endpoints have policies of ours."""
    return cluster.environment.network.egress == "closed" and bool(made_endpoints(cluster))


def _size(network: Network, key: str) -> int:
    return sum(map(len, getattr(network.perimeter, key)))


def _trust(cluster: Cluster, path: YamlPath, account: str) -> Remedy:
    accounts = [*cluster.environment.network.perimeter.accounts, account]
    return relative({("network", "perimeter", "accounts"): accounts}, up=len(path)).noting(
        "or network.perimeter.organization, if it is of yours"
    )
