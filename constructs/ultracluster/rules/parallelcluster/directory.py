"""Rules on: ParallelCluster. The directory that holds the users."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlparse

from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.config.parallelcluster import DirectoryService
from ultracluster.config.remedy import ask, drop, write
from ultracluster.rules.engine import Breach
from ultracluster.rules.parallelcluster.groups import DATE, PACKAGE
from ultracluster.rules.sets import PCL


@PCL.rule(
    80,
    "error",
    "domain_name is a domain or a distinguished name",
    source=f"{PACKAGE}, DomainNameValidator",
    date=DATE,
)
def domain_name(directory: DirectoryService) -> Iterator[Breach]:
    forms = (r"[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*", r"(DC|dc)=[a-zA-Z0-9_-]+(,(DC|dc)=[a-zA-Z0-9_-]+)*")
    if not any(re.fullmatch(form, directory.domain_name) for form in forms):
        yield Breach(
            ("domain_name",),
            f"`{directory.domain_name}` is neither a domain nor a distinguished name.",
            ask("fact", "corp.example.com, or DC=corp,DC=example,DC=com"),
        )


@PCL.rule(
    81,
    "warning",
    "The directory is reached over TLS with a verified certificate",
    source=f"{PACKAGE}, DomainAddrValidator and LdapTlsReqCertValidator",
    date=DATE,
)
def directory_over_tls(directory: DirectoryService) -> Iterator[Breach]:
    for address in directory.domain_address.split(","):
        scheme = urlparse(address.strip()).scheme
        if scheme != "ldaps":
            yield Breach(
                ("domain_address",),
                f"`{address.strip()}` "
                + (f"is reached over {scheme}: passwords cross the network in the clear." if scheme else
                   "does not name a protocol."),
                write(_over_tls(directory.domain_address)),
            )  # fmt: skip
    if directory.tls_require_certificate not in ("hard", "demand"):
        yield Breach(
            ("tls_require_certificate",),
            f"`{directory.tls_require_certificate}` accepts any certificate, so that anyone can answer as "
            "the directory.",
            write("hard").noting(
                "with tls_ca_certificate if the certificate is from an authority of your own"
            ),
        )


@PCL.rule(
    82,
    "error",
    "sssd_settings leave out what ParallelCluster sets itself",
    source=f"{PACKAGE}, AdditionalSssdConfigsValidator",
    date=DATE,
)
def sssd_settings(directory: DirectoryService) -> Iterator[Breach]:
    required = dict(parallelcluster().sssd)
    if directory.access_filter is not None:
        required["access_provider"] = "ldap"
    for key, value in directory.sssd_settings.items():
        if key in required and value != required[key]:
            yield Breach(
                ("sssd_settings", key),
                f"ParallelCluster accepts only `{required[key]}`"
                + (" together with access_filter" if key == "access_provider" else "")
                + f", not `{value}`.",
                write(required[key]) | drop(),
            )


@PCL.rule(
    83,
    "error",
    "The directory's password is in Secrets Manager",
    source=f"{PACKAGE}, PasswordSecretArnValidator",
    date=DATE,
)
def directory_secret(directory: DirectoryService) -> Iterator[Breach]:
    if directory.password_secret_arn.split(":")[2] != "secretsmanager":
        yield Breach(
            ("password_secret_arn",),
            f"{directory.password_secret_arn} is not the ARN of a secret.",
            ask("fact", "arn:aws:secretsmanager:...:secret:..., whose text is only the password"),
        )


def _over_tls(addresses: str) -> str:
    return ",".join(f"ldaps://{address.strip().split('://')[-1]}" for address in addresses.split(","))
