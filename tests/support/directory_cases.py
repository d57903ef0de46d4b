"""Each rule on directories broken and mended; `prod` has Lustre and OpenZFS, and a network that is made."""

from __future__ import annotations

from typing import Any

from rules_table import Case

DIRECTORY: dict[str, Any] = {
    "kind": "ldap",
    "uris": ["ldaps://ldap.example.com"],
    "search_base": "dc=example,dc=com",
    "bind_dn": "cn=reader,dc=example,dc=com",
    "password_secret_arn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:reader-AbCdEf",
    "server_networks": ["10.20.0.0/24"],
}
THERE = DIRECTORY["password_secret_arn"].replace("us-east-1", "us-west-2")
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"


def asks(**changes: Any) -> dict[str, Any]:
    """A directory with these changes; None takes a key away."""
    merged = DIRECTORY | changes
    return {"directory": {key: value for key, value in merged.items() if value is not None}}


def case(
    number: int,
    broken: dict[str, Any],
    at: str,
    says: str,
    instead: str,
    mended: dict[str, Any],
    base: str = "prod",
) -> Case:
    return Case(f"USR0{number}", broken, at, says, instead, mended, base)


def users(uid: int, **more: Any) -> dict[str, Any]:
    return {"users": {"alice": {"uid": uid, "keys": [KEY]} | more}}


DIRECTORY_CASES = [
    case(
        30, asks(), "directory", "no accounts on nodes", "remove directory", {"directory": None}, "eks-p5en",
    ),
    case(
        31, asks(password_secret_arn=THERE), "directory", "ParallelCluster writes sssd.conf",
        "directory_service: {domain_name: example.com", {"directory": None}, "parallelcluster-p5",
    ),
    case(
        32, asks(uris=["ldap://ldap.example.com:389"]), "directory.uris[0]", "is not encrypted",
        "ldaps://ldap.example.com", asks(uris=["ldap://ldap.example.com:389"], start_tls=True),
    ),
    case(32, asks(start_tls=True), "directory.start_tls", "begins with TLS", "remove start_tls", asks()),
    case(
        33, asks(server_networks=None), "directory.server_networks", "lets nothing out to port 636",
        "networks of the servers", asks(uris=["ldaps://ldap.example.com:443"], server_networks=None),
    ),
    case(35, asks(ids="from-sid"), "directory.ids", "only Active Directory has SIDs", "posix", asks()),
    case(
        35, asks(highest_id=4000), "directory.highest_id", "no id is both 5000 or above", "remove highest_id",
        asks(highest_id=60000),
    ),
    case(
        36, asks(home="/people/%u"), "directory.home", "on no shared file system", "remove home",
        asks(home="/fsx/people/%u"),
    ),
    case(
        36, asks() | {"storage.openzfs": None, "storage.lustre": None}, "directory",
        "/home/%u is on no shared", "storage.openzfs", {"directory": None}, "dev",
    ),
    case(37, asks() | users(7001), "directory", "is 7001", "an id below 5000", users(2001)),
    case(
        37, asks(kind="microsoft-ad") | users(2001, gid=300_000), "directory", "`users.alice.gid` is 300000",
        "another id for the user", users(2001),
    ),
    case(
        37, asks() | users(2001, groups=[{"vision": 7001}]), "directory", "users.alice.groups.0.vision",
        "higher directory.lowest_id", asks(lowest_id=8000),
    ),
    case(
        38, asks() | {"orchestrator.lifecycle": "none"}, "directory", "lifecycle is `none`",
        "remove directory", {"directory": None}, "dev",
    ),
    *(
        case(
            40, asks(access_filter=text), "directory.access_filter", "would let nobody in", "one filter",
            asks(access_filter="(&(objectClass=posixAccount)(|(a=1)(b=2)))"),
        )
        for text in ("(&(a=1)(b=2)", "(a=1)(b=2)", "(a=1))")
    ),
    case(
        41, asks(ca_certificate="ca.pem"), "directory.ca_certificate", "neither certificates as PEM text",
        "BEGIN CERTIFICATE", asks(ca_certificate=PEM + PEM),
    ),
    case(
        41, asks(ca_certificate=f"{PEM}-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n"),
        "directory.ca_certificate", "holds a private key", "BEGIN CERTIFICATE",
        asks(ca_certificate="/etc/ssl/certs/company.pem"),
    ),
    case(
        42, users(2001) | {"access": {"node_ssh": "open"}}, "access.node_ssh",
        "every user reaches every node", "remove node_ssh", {"access": {"node_ssh": "jobs"}},
    ),
]  # fmt: skip
