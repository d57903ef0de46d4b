"""A directory of people: accounts on Slurm nodes from LDAP or Microsoft Active Directory, through SSSD."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import IN_LINES, SEEN, Cidr, Line, Many, Model
from ultracluster.config.storage import KeyArn

LOWEST_ID = 5000
"""Above what images, ParallelCluster and the session's user have."""
SID_RANGE = (200_000, 2_000_200_000)
"""In which SSSD puts the ids that it works out of SIDs (sssd-ldap(5), ldap_idmap_range_min and _max)."""

DirectoryUri = Annotated[
    str, Field(pattern=r"^ldaps?://[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(:[1-9][0-9]{0,4})?$")
]
SecretArn = Annotated[
    str,
    Field(
        pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:"
        r"[A-Za-z0-9/_+=.@!-]+-[A-Za-z0-9]{6}$",
        examples=["arn:aws:secretsmanager:us-east-1:111122223333:secret:reader-AbCdEf"],
    ),
]
"""Whole, with the six characters at its end, which IAM compares, too. No token: nodes read it in a file whose
digest is known before anything is deployed."""


class Directory(Model):
    """People's accounts on the nodes of a Slurm cluster, from a directory that exists: SSSD asks it on every
    node over TLS. No node joins a domain. For ParallelCluster: `orchestrator.directory_service`."""

    kind: Literal["ldap", "microsoft-ad"]
    """What answers: an LDAP server, or Microsoft Active Directory (AWS Managed Microsoft AD, or your own)."""
    uris: Annotated[
        Many[DirectoryUri],
        Field(max_length=8, examples=[["ldaps://ldap1.example.com"]]),
    ]
    """Its servers by the names in their certificates, in the order in which they are asked:
    `ldaps://host[:port]`, or `ldap://host[:port]` together with `start_tls`."""
    start_tls: bool = False
    """Begin in the clear on port 389 and turn to TLS before anything is asked (StartTLS)."""
    ca_certificate: Annotated[str, Field(min_length=1, max_length=65_536), IN_LINES] | None = None
    """Who signed the servers' certificates: certificates as PEM text, one after the other, or the path of
    such a file in the image. By default the authorities that the image trusts."""
    search_base: Annotated[Line, Field(min_length=3, examples=["dc=example,dc=com"])]
    """Distinguished name below which users and groups are."""
    bind_dn: Annotated[Line, Field(min_length=1, examples=["cn=reader,dc=example,dc=com"])]
    """Whom the nodes ask as: a user who may read, and nothing else. A distinguished name, or in Active
    Directory also `reader@corp.example.com`."""
    password_secret_arn: SecretArn
    """Secret in Secrets Manager with that user's password: its text, or JSON with the key `password`. The
    nodes' roles may read it and no other; on a node only root may read the file that has it."""
    password_key_arn: KeyArn | None = None
    """KMS key of the secret, where it is not the account's `aws/secretsmanager`."""
    ids: Literal["posix", "from-sid"] | None = None
    """Where user and group ids come from: attributes of the directory (uidNumber, gidNumber), or worked out
    of the SIDs of Active Directory, the same on every node. By default `posix` for ldap and `from-sid` for
    microsoft-ad."""
    lowest_id: Annotated[int, Field(ge=1000, le=2_147_483_647)] = LOWEST_ID
    """With `ids: posix`: users and groups below it are not on the nodes; images and ParallelCluster have
    theirs there."""
    highest_id: Annotated[int, Field(ge=1000, le=2_147_483_647)] | None = None
    """With `ids: posix`: users and groups above it are not on the nodes; no bound by default."""
    membership: Literal["member", "member-uid"] = "member"
    """How groups of an LDAP server name their members: by distinguished name (RFC 2307bis), or by user name
    in memberUid (RFC 2307)."""
    access_filter: (
        Annotated[
            str,
            Field(
                pattern=rf"^\({SEEN}+\)$",
                max_length=4096,
                examples=["(memberOf=cn=hpc,dc=example,dc=com)"],
            ),
        ]
        | None
    ) = None
    """LDAP filter of the users that may log in; all of the directory by default, less accounts that it says
    are disabled or expired."""
    home: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._-]+)*/%u$", max_length=255)] | None = None
    """Home directories, `%u` is the user's name: on a shared file system, so that they are the same on every
    node. By default where those of `users` are: `/home/%u` on OpenZFS, else `home/%u` below Lustre."""
    shell: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._-]+)+$")] = "/bin/bash"
    """Of users for whom the directory has none, or one that a node does not have."""
    server_networks: Many[Cidr] = ()
    """IPv4 networks of the servers: nodes may reach the ports of `uris` there. Not needed with an existing
    security group that lets them."""

    @property
    def id_source(self) -> Literal["posix", "from-sid"]:
        """`ids`, or its default for the kind."""
        return self.ids or ("from-sid" if self.kind == "microsoft-ad" else "posix")

    @property
    def id_range(self) -> tuple[int, int]:
        """The lowest and highest id that its users and groups can have on nodes."""
        if self.id_source == "from-sid":
            return SID_RANGE
        return self.lowest_id, self.highest_id or 2**32 - 2

    @property
    def ports(self) -> tuple[int, ...]:
        """TCP ports of its servers."""
        return tuple(dict.fromkeys(_port(uri) for uri in self.uris))


def _port(uri: str) -> int:
    scheme, _, rest = uri.partition("://")
    _, _, port = rest.partition(":")
    return int(port) if port else (636 if scheme == "ldaps" else 389)


__all__ = ["LOWEST_ID", "SID_RANGE", "Directory"]
