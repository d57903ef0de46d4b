"""Rules on: ParallelCluster. The directory that holds the users."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlparse

from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.config import Environment
from ultracluster.config.parallelcluster import DirectoryService
from ultracluster.config.remedy import ask, drop, write
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.parallelcluster.groups import DATE
from ultracluster.rules.sets import PCL
from ultracluster.rules.sources import PCLUSTER


@PCL.error(80, f"{PCLUSTER}, DomainNameValidator", DATE)
def domain_name(directory: DirectoryService) -> Breaches:
    """domain_name is a domain or a distinguished name."""
    forms = (r"[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*", r"(DC|dc)=[a-zA-Z0-9_-]+(,(DC|dc)=[a-zA-Z0-9_-]+)*")
    if not any(re.fullmatch(form, directory.domain_name) for form in forms):
        yield at("domain_name").breach(
            f"`{directory.domain_name}` is neither a domain nor a distinguished name.",
            ask("fact", "corp.example.com, or DC=corp,DC=example,DC=com"),
        )


@PCL.warning(81, f"{PCLUSTER}, DomainAddrValidator and LdapTlsReqCertValidator", DATE)
def directory_over_tls(directory: DirectoryService) -> Breaches:
    """The directory is reached over TLS with a verified certificate."""
    for address in directory.domain_address.split(","):
        scheme = urlparse(address.strip()).scheme
        if scheme != "ldaps":
            yield at("domain_address").breach(f"`{address.strip()}` "
                + (f"is reached over {scheme}: passwords cross the network in the clear." if scheme else
                   "does not name a protocol."),
                write(_over_tls(directory.domain_address)))  # fmt: skip
    if directory.tls_require_certificate not in ("hard", "demand"):
        yield at("tls_require_certificate").breach(
            f"`{directory.tls_require_certificate}` accepts any certificate, so that anyone can answer as "
            "the directory.",
            write("hard").noting(
                "with tls_ca_certificate if the certificate is from an authority of your own"
            ),
        )


@PCL.error(82, f"{PCLUSTER}, AdditionalSssdConfigsValidator", DATE)
def sssd_settings(directory: DirectoryService) -> Breaches:
    """sssd_settings leave out what ParallelCluster sets itself."""
    required = dict(parallelcluster().sssd)
    if directory.access_filter is not None:
        required["access_provider"] = "ldap"
    for key, value in directory.sssd_settings.items():
        if key in required and value != required[key]:
            yield at("sssd_settings", key).breach(
                f"ParallelCluster accepts only `{required[key]}`"
                + (" together with access_filter" if key == "access_provider" else "")
                + f", not `{value}`.",
                write(required[key]) | drop(),
            )


@PCL.error(83, f"{PCLUSTER}, PasswordSecretArnValidator", DATE)
def directory_secret(directory: DirectoryService) -> Breaches:
    """The directory's password is in Secrets Manager."""
    if directory.password_secret_arn.split(":")[2] != "secretsmanager":
        yield at("password_secret_arn").breach(
            f"{directory.password_secret_arn} is not the ARN of a secret.",
            ask("fact", "arn:aws:secretsmanager:...:secret:..., whose text is only the password"),
        )


@PCL.error(94, f"{PCLUSTER}, DomainAddrValidator (supported are ldaps and ldap; it only warns)", "2026-11-23")
def directory_protocol(directory: DirectoryService) -> Breaches:
    """The directory is asked by LDAP."""
    for scheme, host, _ in directory.addresses:
        if scheme not in ("ldaps", "ldap"):
            yield at("domain_address").breach(
                f"`{scheme}://{host}` is no address of LDAP, which is all that sssd is set up for.",
                write(_over_tls(directory.domain_address)),
            )
            return


@PCL.error(
    95,
    f"{PCLUSTER}, PasswordSecretArnValidator (DescribeSecret in the cluster's Region)",
    "2026-11-23",
)
def directory_secret_region(directory: DirectoryService, environment: Environment) -> Breaches:
    """The directory's password is in the cluster's Region."""
    for field in ("password_secret_arn", "password_key_arn"):
        arn = str(getattr(directory, field) or "")
        parts = arn.split(":")
        if len(parts) > 4 and parts[2] in ("secretsmanager", "kms") and parts[3] != environment.region:
            yield at(field).breach(
                f"it is in {parts[3]}, and the head node asks {environment.region}, which does not have it.",
                ask(
                    "fact",
                    f"a replica of it in {environment.region} (Secrets Manager: replicate to a Region)",
                ),
            )


@PCL.warning(
    96,
    "ParallelCluster User Guide, DirectoryService, DomainAddr: with certificate verification the URIs "
    "must be hostnames",
    "2026-11-23",
)
def directory_certificate_name(directory: DirectoryService) -> Breaches:
    """Certificates are checked against names, not addresses."""
    checked = directory.tls_require_certificate in ("hard", "demand")
    numbers = [host for scheme, host, _ in directory.addresses if scheme == "ldaps" and _is_number(host)]
    if checked and numbers:
        yield at("domain_address").breach(
            f"{numbers[0]} is in no certificate that an authority signs for a directory: logins would fail.",
            ask("fact", "the names of the servers, as in their certificates: ldaps://ldap1.corp.example.com"),
        )


@PCL.error(
    97,
    "Amazon VPC User Guide, Security group rules: what no rule lets out stays in; ours lets out 80 and 443",
    "2026-11-23",
)
def directory_reachable(directory: DirectoryService, environment: Environment) -> Breaches:
    """Nodes may reach the servers of the directory."""
    made_here = environment.network.security_group is None
    if made_here and not directory.server_networks and not set(directory.ports) <= {80, 443}:
        ports = " and ".join(map(str, directory.ports))
        yield at("server_networks").breach(
            f"the nodes' security group, which is made here, lets nothing out to port {ports}.",
            ask("fact", "the networks of the servers, e.g. [10.20.0.0/24]"),
        )


@PCL.warning(98, "sssd-ldap manual, ldap_auth_disable_tls_never_use_in_production", "2026-11-23")
def directory_encrypted(directory: DirectoryService) -> Breaches:
    """Passwords do not cross the network in the clear."""
    for key, value in directory.sssd_settings.items():
        if key.lower() == "ldap_auth_disable_tls_never_use_in_production" and str(value).lower() == "true":
            yield at("sssd_settings", key).breach(
                "whoever is on the way reads the passwords of everybody who logs in.",
                drop().noting("with ldaps:// in domain_address"),
            )


def _is_number(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _over_tls(addresses: str) -> str:
    return ",".join(f"ldaps://{address.strip().split('://')[-1]}" for address in addresses.split(","))
