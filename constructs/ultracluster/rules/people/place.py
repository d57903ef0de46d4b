"""Rules on: where accounts are made, and where their homes are."""

from __future__ import annotations

from ultracluster.config.remedy import ask, drop, write
from ultracluster.model import Cluster
from ultracluster.model.people import homes_of
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.people.accounts import DATE
from ultracluster.rules.sets import KUBERNETES, SLURM, USR


@USR.error(
    13,
    "Kubernetes documentation, Authenticating: there are no user objects, and pods run as numbers",
    DATE,
    kinds=KUBERNETES,
)
def users_need_slurm(cluster: Cluster) -> Breaches:
    """Accounts on nodes are for Slurm."""
    if cluster.environment.users:
        yield at("users").breach(
            f"{cluster.traits.kind} has no accounts on nodes: people use its API, and pods run as a number.",
            drop().noting(
                "write their IAM roles into members of a team, and its number into uid (docs/kubernetes.md)"
            ),
        )


@USR.error(14, "lifecycle_scripts/steps/users.sh", DATE, kinds=SLURM)
def users_need_scripts(cluster: Cluster) -> Breaches:
    """Nodes run the scripts that make accounts."""
    if cluster.environment.users and not cluster.runs_scripts:
        yield at("users").breach(
            "orchestrator.lifecycle is `none`: nothing on the nodes makes these accounts.",
            drop().noting("or let nodes run the scripts: remove orchestrator.lifecycle"),
        )


@USR.warning(
    15,
    "Slurm documentation, Quick Start Administrator Guide: jobs start in the folder they came from",
    DATE,
    kinds=SLURM,
)
def homes_shared(cluster: Cluster) -> Breaches:
    """Homes are on a shared file system."""
    if cluster.environment.users and cluster.runs_scripts and not homes_of(cluster).shared:
        yield at("users").breach(
            "there is neither OpenZFS nor Lustre: each node has homes of its own, which go with it.",
            ask("decision", "storage.openzfs for homes, or storage.lustre"),
        )


@USR.error(
    16,
    "EC2 User Guide, Instance metadata: whoever reaches it has the credentials of the node's role",
    DATE,
    kinds=SLURM,
)
def metadata_users_exclude_people(cluster: Cluster) -> Breaches:
    """People are not the services that reach the metadata."""
    access = cluster.environment.access
    for number, name in enumerate(access.metadata_users):
        if name in cluster.environment.users:
            yield at("access", "metadata_users", number).breach(
                f"`{name}` is a person: all that the nodes' role may would be this user's.", drop()
            )


@USR.error(17, "lifecycle_scripts/steps/session_user.sh", DATE, kinds=SLURM)
def session_user_separate(cluster: Cluster) -> Breaches:
    """The sessions' own user is not one of the users."""
    user = cluster.environment.access.session_user
    if user is not None and user in cluster.environment.users:
        yield at("access", "session_user").breach(
            f"`{user}` is one person's account: everybody who may open a session would be that person.",
            drop() if user != "ultracluster" else write("everyone"),
        )
