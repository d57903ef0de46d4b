"""Rules on: a directory that people's accounts come from."""

from __future__ import annotations

import re
from typing import Any

from ultracluster.config.directory import Directory
from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import DROP, anywhere, ask, beside, drop, write
from ultracluster.model import Cluster
from ultracluster.model.directory import directory_home
from ultracluster.model.people import named_groups
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.people.accounts import DATE
from ultracluster.rules.sets import KUBERNETES, PCL, SLURM, USR

PCLUSTER = PCL.kinds or frozenset()
OURS = SLURM - PCLUSTER
_LDAP = "sssd-ldap manual"
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


@USR.error(
    30,
    "Kubernetes documentation, Authenticating: people come through the API, as IAM roles on EKS",
    DATE,
    kinds=KUBERNETES,
)
def directory_needs_slurm(cluster: Cluster) -> Breaches:
    """A directory on nodes is for Slurm."""
    if cluster.environment.directory:
        yield at("directory").breach(
            f"{cluster.traits.kind} has no accounts on nodes: people use its API with their IAM roles.",
            drop().noting("IAM Identity Center connects a directory with IAM roles (docs/kubernetes.md)"),
        )


@USR.error(31, "ParallelCluster User Guide, DirectoryService", DATE, kinds=PCLUSTER)
def directory_of_parallelcluster(cluster: Cluster, directory: Directory) -> Breaches:
    """ParallelCluster sets its nodes' directory up itself."""
    settings: Any = cluster.settings
    own = settings.directory_service is not None
    yield at("directory").breach(
        "ParallelCluster writes sssd.conf on its nodes, and would write over ours.",
        drop().noting("orchestrator.directory_service has it already")
        if own
        else anywhere(
            {("directory",): DROP, ("orchestrator", "directory_service"): _for_parallelcluster(directory)}
        ),
    )


@USR.error(32, f"{_LDAP}: ldap_uri, ldap_id_use_start_tls; RFC 4511, 4.14 (StartTLS on TLS is refused)", DATE)
def directory_encrypted(directory: Directory) -> Breaches:
    """Nothing crosses the network to a directory in the clear."""
    for number, uri in enumerate(directory.uris):
        if directory.start_tls and uri.startswith("ldaps://"):
            yield at("start_tls").breach(
                f"`{uri}` begins with TLS, and servers refuse to begin it once more.", drop()
            )
            return
        if not directory.start_tls and uri.startswith("ldap://"):
            yield at("uris", number).breach(
                f"`{uri}` is not encrypted: the password of {directory.bind_dn}, and those of people, would "
                "cross the network in the clear.",
                write(_over_tls(uri)).noting("or start_tls: true, if the server takes StartTLS on this port"),
            )


@USR.error(
    33,
    "Amazon VPC User Guide, Security group rules: what no rule lets out stays in; ours lets out 80 and 443",
    DATE,
    kinds=OURS,
)
def directory_reachable(directory: Directory, cluster: Cluster) -> Breaches:
    """Nodes may reach the servers of a directory."""
    made_here = cluster.environment.network.security_group is None
    if made_here and not directory.server_networks and not set(directory.ports) <= {80, 443}:
        ports = " and ".join(map(str, directory.ports))
        yield at("server_networks").breach(
            f"the nodes' security group, which is made here, lets nothing out to port {ports}.",
            ask("fact", "the networks of the servers, e.g. [10.20.0.0/24]"),
        )


@USR.warning(
    34,
    "lifecycle_scripts/steps/directory.sh; of which images bring SSSD no list is published",
    DATE,
    kinds=OURS,
)
def sssd_installable(directory: Directory, cluster: Cluster) -> Breaches:
    """Images bring SSSD where nodes cannot install it."""
    environment = cluster.environment
    # Amazon Linux has its packages in S3
    if environment.network.egress == "closed" and environment.admin_user == "ubuntu":
        yield at().breach(
            "without a way to the internet Ubuntu cannot install SSSD, and the release's mirror does not "
            "have it: nodes whose image lacks it join without people's accounts.",
            ask("action", "put sssd-ldap, libnss-sss and libpam-sss into the image, and acknowledge this"),
        )


@USR.error(35, f"{_LDAP}: ID MAPPING is for objectSid of Active Directory; min_id and max_id", DATE)
def directory_id_source(directory: Directory) -> Breaches:
    """Ids of a directory come from where it has them."""
    if directory.kind == "ldap" and directory.ids == "from-sid":
        yield at("ids").breach(
            "only Active Directory has SIDs.", write("posix") | beside(kind="microsoft-ad")
        )
    low, high = directory.id_range
    if directory.id_source == "posix" and low > high:
        yield at("highest_id").breach(
            f"no id is both {low} or above and {high} or below: nodes would know nobody of the directory.",
            drop(),
        )


@USR.warning(
    36,
    "Slurm documentation, Quick Start Administrator Guide: jobs start in the folder they came from",
    DATE,
    kinds=OURS,
)
def directory_homes_shared(directory: Directory, cluster: Cluster) -> Breaches:
    """Homes of a directory's users are on a shared file system."""
    storage, lustre = cluster.environment.storage, cluster.lustre
    mounts = [storage.openzfs.mount_path] if storage.openzfs else []
    mounts += [lustre.mount_path] if lustre else []
    home = directory_home(cluster, directory)
    if not any(home.startswith(f"{mount}/") for mount in mounts):
        where = " and ".join(mounts) or "there is none"
        yield at(*("home",) if directory.home else ()).breach(
            f"{home} is on no shared file system ({where}): each node has homes of its own, without the "
            "keys with which users get from node to node.",
            drop() if directory.home and mounts else ask("decision", "storage.openzfs for homes"),
        )


@USR.error(
    37, "files on shared file systems belong to numbers (NFS, RFC 7530 with AUTH_SYS)", DATE, kinds=OURS
)
def directory_ids_differ(directory: Directory, cluster: Cluster) -> Breaches:
    """Users of the file and of the directory have different ids."""
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
            yield at().breach(
                f"`users.{'.'.join(map(str, place))}` is {number}, and so may be somebody of the directory, "
                f"whose ids are {low} to {high} here: each would own the other's files.",
                ask("decision", _apart(directory, number)),
            )


@USR.error(38, "lifecycle_scripts/steps/directory.sh", DATE, kinds=OURS)
def directory_needs_scripts(directory: Directory, cluster: Cluster) -> Breaches:
    """Nodes run the scripts that set a directory up."""
    if not cluster.runs_scripts:
        yield at().breach(
            "orchestrator.lifecycle is `none`: nothing on the nodes asks the directory.",
            drop().noting("or let nodes run the scripts: remove orchestrator.lifecycle"),
        )


@USR.error(
    39,
    "EC2 User Guide, Instance metadata: whoever reaches it has the credentials of the node's role",
    DATE,
    kinds=OURS,
)
def directory_password_permissions(directory: Directory, cluster: Cluster) -> Breaches:
    """The password of a directory's reader is root's."""
    if cluster.environment.access.node_metadata == "everyone":
        yield at().breach(
            "access.node_metadata is `everyone`: every user, and every job, may read the password from "
            f"Secrets Manager with the node's role, and ask as {directory.bind_dn}.",
            anywhere({("access", "node_metadata"): DROP}),
        )


@USR.error(40, "RFC 4515, section 3", DATE)
def access_filter_syntax(directory: Directory) -> Breaches:
    """An access filter is a whole LDAP filter."""
    text = directory.access_filter or ""
    depth = 0
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and index < len(text) - 1:
            break
    else:
        if depth == 0:
            return
    yield at("access_filter").breach(
        f"`{text}` does not end with the parenthesis that belongs to the first: SSSD would let nobody in.",
        ask("fact", "one filter in parentheses; of several, all of which must hold: (&(...)(...))"),
    )


@USR.error(41, "RFC 7468, section 5", DATE)
def directory_certificates(directory: Directory) -> Breaches:
    """A directory's certificates are whole, and no key is among them."""
    text = (directory.ca_certificate or "").strip()
    if not text or re.fullmatch(r"(/[A-Za-z0-9._-]+)+", text):
        return
    if "PRIVATE KEY" in text:
        why = "it holds a private key, which would be on every node for all to read."
    elif not text.startswith(_BEGIN) or not text.endswith(_END) or text.count(_BEGIN) != text.count(_END):
        why = "it is neither certificates as PEM text nor a path: TLS would fail on every node."
    else:
        return
    yield at("ca_certificate").breach(
        why, ask("fact", f"the text of the authority's certificate, from {_BEGIN} to {_END}")
    )


@USR.warning(42, "Slurm documentation, pam_slurm_adopt", DATE, kinds=SLURM)
def ssh_restricted_to_jobs(cluster: Cluster) -> Breaches:
    """People reach the nodes of their jobs only."""
    environment = cluster.environment
    if environment.access.node_ssh == "open" and (environment.users or environment.directory):
        yield at("access", "node_ssh").breach(
            "every user reaches every node by SSH, and what is started there is of no job: it takes GPUs and "
            "memory from the job that has them, and stays when that ends.",
            drop(),
        )


@USR.error(43, f"{_LDAP}: ldap_uri", DATE)
def directory_has_server(directory: Directory) -> Breaches:
    """A directory has a server."""
    if not directory.uris:
        yield at("uris").breach(
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
