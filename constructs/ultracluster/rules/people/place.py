"""Rules on: where accounts are made, and where their homes are."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config.remedy import ask, drop, write
from ultracluster.model import Cluster
from ultracluster.model.people import homes_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.people.accounts import DATE
from ultracluster.rules.sets import KUBERNETES, SLURM, USR


@USR.rule(
    13,
    "error",
    "Accounts on nodes are for Slurm",
    source="Kubernetes documentation, Authenticating: there are no user objects, and pods run as numbers",
    date=DATE,
    kinds=KUBERNETES,
)
def on_kubernetes(cluster: Cluster) -> Iterator[Breach]:
    if cluster.environment.users:
        yield Breach(
            ("users",),
            f"{cluster.traits.kind} has no accounts on nodes: people use its API, and pods run as a number.",
            drop().noting(
                "write their IAM roles into members of a team, and its number into uid (docs/kubernetes.md)"
            ),
        )


@USR.rule(
    14,
    "error",
    "Nodes run the scripts that make accounts",
    source="lifecycle_scripts/steps/users.sh",
    date=DATE,
    kinds=SLURM,
)
def no_scripts(cluster: Cluster) -> Iterator[Breach]:
    if cluster.environment.users and not cluster.runs_scripts:
        yield Breach(
            ("users",),
            "orchestrator.lifecycle is `none`: nothing on the nodes makes these accounts.",
            drop().noting("or let nodes run the scripts: remove orchestrator.lifecycle"),
        )


@USR.rule(
    15,
    "warning",
    "Homes are on a shared file system",
    source="Slurm documentation, Quick Start Administrator Guide: jobs start in the folder they came from",
    date=DATE,
    kinds=SLURM,
)
def homes_on_each_node(cluster: Cluster) -> Iterator[Breach]:
    if cluster.environment.users and cluster.runs_scripts and not homes_of(cluster).shared:
        yield Breach(
            ("users",),
            "there is neither OpenZFS nor Lustre: each node has homes of its own, which go with it.",
            ask("decision", "storage.openzfs for homes, or storage.lustre"),
        )


@USR.rule(
    16,
    "error",
    "People are not the services that reach the metadata",
    source="EC2 User Guide, Instance metadata: whoever reaches it has the credentials of the node's role",
    date=DATE,
    kinds=SLURM,
)
def metadata_for_people(cluster: Cluster) -> Iterator[Breach]:
    access = cluster.environment.access
    for number, name in enumerate(access.metadata_users):
        if name in cluster.environment.users:
            yield Breach(
                ("access", "metadata_users", number),
                f"`{name}` is a person: all that the nodes' role may would be this user's.",
                drop(),
            )


@USR.rule(
    17,
    "error",
    "The sessions' own user is not one of the users",
    source="lifecycle_scripts/steps/session_user.sh",
    date=DATE,
    kinds=SLURM,
)
def session_user_twice(cluster: Cluster) -> Iterator[Breach]:
    user = cluster.environment.access.session_user
    if user is not None and user in cluster.environment.users:
        yield Breach(
            ("access", "session_user"),
            f"`{user}` is one person's account: everybody who may open a session would be that person.",
            drop() if user != "ultracluster" else write("everyone"),
        )
