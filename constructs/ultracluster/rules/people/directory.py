"""Rules on: a directory that people's accounts come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ultracluster.config.directory import Directory
from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import DROP, anywhere, ask, beside, drop, write
from ultracluster.model import Cluster
from ultracluster.model.directory import directory_home
from ultracluster.model.people import named_groups
from ultracluster.rules.engine import Breach
from ultracluster.rules.people.accounts import DATE
from ultracluster.rules.sets import KUBERNETES, PCL, SLURM, USR

PARALLELCLUSTER = PCL.kinds or frozenset()
OURS = SLURM - PARALLELCLUSTER
_LDAP = "sssd-ldap manual"
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


@USR.rule(
    30,
    "error",
    "A directory on nodes is for Slurm",
    source="Kubernetes documentation, Authenticating: people come through the API, as IAM roles on EKS",
    date=DATE,
    kinds=KUBERNETES,
)
def on_kubernetes(cluster: Cluster) -> Iterator[Breach]:
    if cluster.environment.directory:
        yield Breach(
            ("directory",),
            f"{cluster.traits.kind} has no accounts on nodes: people use its API with their IAM roles.",
            drop().noting("IAM Identity Center connects a directory with IAM roles (docs/kubernetes.md)"),
        )


@USR.rule(
    31,
    "error",
    "ParallelCluster sets its nodes' directory up itself",
    source="ParallelCluster User Guide, DirectoryService",
    date=DATE,
    kinds=PARALLELCLUSTER,
)
def on_parallelcluster(cluster: Cluster, directory: Directory) -> Iterator[Breach]:
    settings: Any = cluster.settings
    own = settings.directory_service is not None
    yield Breach(
        ("directory",),
        "ParallelCluster writes sssd.conf on its nodes, and would write over ours.",
        drop().noting("orchestrator.directory_service has it already")
        if own
        else anywhere(
            {("directory",): DROP, ("orchestrator", "directory_service"): _for_parallelcluster(directory)}
        ),
    )


@USR.rule(
    32,
    "error",
    "Nothing crosses the network to a directory in the clear",
    source=f"{_LDAP}: ldap_uri, ldap_id_use_start_tls; RFC 4511, 4.14 (StartTLS on TLS is refused)",
    date=DATE,
)
def in_the_clear(directory: Directory) -> Iterator[Breach]:
    for number, uri in enumerate(directory.uris):
        if directory.start_tls and uri.startswith("ldaps://"):
            yield Breach(
                ("start_tls",),
                f"`{uri}` begins with TLS, and servers refuse to begin it once more.",
                drop(),
            )
            return
        if not directory.start_tls and uri.startswith("ldap://"):
            yield Breach(
                ("uris", number),
                f"`{uri}` is not encrypted: the password of {directory.bind_dn}, and those of people, would "
                "cross the network in the clear.",
                write(_over_tls(uri)).noting("or start_tls: true, if the server takes StartTLS on this port"),
            )


@USR.rule(
    33,
    "error",
    "Nodes may reach the servers of a directory",
    source="Amazon VPC User Guide, Security group rules: what no rule lets out stays in; ours lets out 80 "
    "and 443",
    date=DATE,
    kinds=OURS,
)
def out_of_reach(directory: Directory, cluster: Cluster) -> Iterator[Breach]:
    made_here = cluster.environment.network.security_group is None
    if made_here and not directory.server_networks and not set(directory.ports) <= {80, 443}:
        ports = " and ".join(map(str, directory.ports))
        yield Breach(
            ("server_networks",),
            f"the nodes' security group, which is made here, lets nothing out to port {ports}.",
            ask("fact", "the networks of the servers, e.g. [10.20.0.0/24]"),
        )


@USR.rule(
    34,
    "warning",
    "Images bring SSSD where nodes cannot install it",
    source="lifecycle_scripts/steps/directory.sh; of which images bring SSSD no list is published",
    date=DATE,
    kinds=OURS,
)
def not_in_the_image(directory: Directory, cluster: Cluster) -> Iterator[Breach]:
    environment = cluster.environment
    # Amazon Linux has its packages in S3
    if environment.network.egress == "closed" and environment.admin_user == "ubuntu":
        yield Breach(
            (),
            "without a way to the internet Ubuntu cannot install SSSD, and the release's mirror does not "
            "have it: nodes whose image lacks it join without people's accounts.",
            ask("action", "put sssd-ldap, libnss-sss and libpam-sss into the image, and acknowledge this"),
        )


@USR.rule(
    35,
    "error",
    "Ids of a directory come from where it has them",
    source=f"{_LDAP}: ID MAPPING is for objectSid of Active Directory; min_id and max_id",
    date=DATE,
)
def ids_from_nowhere(directory: Directory) -> Iterator[Breach]:
    if directory.kind == "ldap" and directory.ids == "from-sid":
        yield Breach(
            ("ids",),
            "only Active Directory has SIDs.",
            write("posix") | beside(kind="microsoft-ad"),
        )
    low, high = directory.id_range
    if directory.id_source == "posix" and low > high:
        yield Breach(
            ("highest_id",),
            f"no id is both {low} or above and {high} or below: nodes would know nobody of the directory.",
            drop(),
        )


@USR.rule(
    36,
    "warning",
    "Homes of a directory's users are on a shared file system",
    source="Slurm documentation, Quick Start Administrator Guide: jobs start in the folder they came from",
    date=DATE,
    kinds=OURS,
)
def homes_on_each_node(directory: Directory, cluster: Cluster) -> Iterator[Breach]:
    storage, lustre = cluster.environment.storage, cluster.lustre
    mounts = [storage.openzfs.mount_path] if storage.openzfs else []
    mounts += [lustre.mount_path] if lustre else []
    home = directory_home(cluster, directory)
    if not any(home.startswith(f"{mount}/") for mount in mounts):
        where = " and ".join(mounts) or "there is none"
        yield Breach(
            ("home",) if directory.home else (),
            f"{home} is on no shared file system ({where}): each node has homes of its own, without the "
            "keys with which users get from node to node.",
            drop() if directory.home and mounts else ask("decision", "storage.openzfs for homes"),
        )


@USR.rule(
    37,
    "error",
    "Users of the file and of the directory have different ids",
    source="files on shared file systems belong to numbers (NFS, RFC 7530 with AUTH_SYS)",
    date=DATE,
    kinds=OURS,
)
def ids_of_both(directory: Directory, cluster: Cluster) -> Iterator[Breach]:
    low, high = directory.id_range
    users = cluster.environment.users
    places: list[tuple[YamlPath, int]] = [
        ((name, field), number)
        for name, user in users.items()
        for field in ("uid", "gid")
        if (number := getattr(user, field)) is not None
    ]
    places += [(place, gid) for place, _, gid in named_groups(users)]
    for place, number in places:
        if low <= number <= high:
            yield Breach(
                (),
                f"`users.{'.'.join(map(str, place))}` is {number}, and so may be somebody of the directory, "
                f"whose ids are {low} to {high} here: each would own the other's files.",
                ask("decision", _apart(directory, number)),
            )


@USR.rule(
    38,
    "error",
    "Nodes run the scripts that set a directory up",
    source="lifecycle_scripts/steps/directory.sh",
    date=DATE,
    kinds=OURS,
)
def no_scripts(directory: Directory, cluster: Cluster) -> Iterator[Breach]:
    if not cluster.runs_scripts:
        yield Breach(
            (),
            "orchestrator.lifecycle is `none`: nothing on the nodes asks the directory.",
            drop().noting("or let nodes run the scripts: remove orchestrator.lifecycle"),
        )


@USR.rule(
    39,
    "error",
    "The password of a directory's reader is root's",
    source="EC2 User Guide, Instance metadata: whoever reaches it has the credentials of the node's role",
    date=DATE,
    kinds=OURS,
)
def password_for_all(directory: Directory, cluster: Cluster) -> Iterator[Breach]:
    if cluster.environment.access.node_metadata == "everyone":
        yield Breach(
            (),
            "access.node_metadata is `everyone`: every user, and every job, may read the password from "
            f"Secrets Manager with the node's role, and ask as {directory.bind_dn}.",
            anywhere({("access", "node_metadata"): DROP}),
        )


@USR.rule(40, "error", "An access filter is a whole LDAP filter", source="RFC 4515, section 3", date=DATE)
def broken_filter(directory: Directory) -> Iterator[Breach]:
    text = directory.access_filter or ""
    depth = 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and at < len(text) - 1:
            break
    else:
        if depth == 0:
            return
    yield Breach(
        ("access_filter",),
        f"`{text}` does not end with the parenthesis that belongs to the first: SSSD would let nobody in.",
        ask("fact", "one filter in parentheses; of several, all of which must hold: (&(...)(...))"),
    )


@USR.rule(
    41,
    "error",
    "A directory's certificates are whole, and no key is among them",
    source="RFC 7468, section 5",
    date=DATE,
)
def broken_certificates(directory: Directory) -> Iterator[Breach]:
    text = (directory.ca_certificate or "").strip()
    if not text or re.fullmatch(r"(/[A-Za-z0-9._-]+)+", text):
        return
    if "PRIVATE KEY" in text:
        why = "it holds a private key, which would be on every node for all to read."
    elif not text.startswith(_BEGIN) or not text.endswith(_END) or text.count(_BEGIN) != text.count(_END):
        why = "it is neither certificates as PEM text nor a path: TLS would fail on every node."
    else:
        return
    yield Breach(
        ("ca_certificate",),
        why,
        ask("fact", f"the text of the authority's certificate, from {_BEGIN} to {_END}"),
    )


@USR.rule(
    42,
    "warning",
    "People reach the nodes of their jobs only",
    source="Slurm documentation, pam_slurm_adopt",
    date=DATE,
    kinds=SLURM,
)
def ssh_for_all(cluster: Cluster) -> Iterator[Breach]:
    environment = cluster.environment
    if environment.access.node_ssh == "open" and (environment.users or environment.directory):
        yield Breach(
            ("access", "node_ssh"),
            "every user reaches every node by SSH, and what is started there is of no job: it takes GPUs and "
            "memory from the job that has them, and stays when that ends.",
            drop(),
        )


@USR.rule(43, "error", "A directory has a server", source=f"{_LDAP}: ldap_uri", date=DATE)
def no_server(directory: Directory) -> Iterator[Breach]:
    if not directory.uris:
        yield Breach(
            ("uris",),
            "no server is named: SSSD would look for one in DNS, and take whoever answers there.",
            ask("fact", "[ldaps://ldap.example.com]"),
        )


def _over_tls(uri: str) -> str:
    host, _, port = uri.removeprefix("ldap://").partition(":")
    return f"ldaps://{host}" + (f":{port}" if port not in ("", "389") else "")


def _apart(directory: Directory, number: int) -> str:
    if directory.id_source == "posix" and number < 60_000:
        return f"an id below {directory.lowest_id} for the user, or a higher directory.lowest_id"
    return "another id for the user"


def _for_parallelcluster(directory: Directory) -> dict[str, object]:
    parts = re.findall(r"(?:^|,)\s*dc=([A-Za-z0-9_-]+)", directory.search_base, flags=re.IGNORECASE)
    certificates = directory.ca_certificate
    return {
        "domain_name": ".".join(parts) or directory.search_base,
        "domain_address": ",".join(
            _over_tls(uri) if uri.startswith("ldap:") else uri for uri in directory.uris
        ),
        "password_secret_arn": directory.password_secret_arn,
        "read_only_user": directory.bind_dn,
        **({"password_key_arn": directory.password_key_arn} if directory.password_key_arn else {}),
        **({"access_filter": directory.access_filter} if directory.access_filter else {}),
        **({"tls_ca_certificate": certificates} if certificates and certificates.startswith("/") else {}),
        **({"server_networks": list(directory.server_networks)} if directory.server_networks else {}),
    }
