"""Rules on: who a session on a node logs in as."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config.environment import Access
from ultracluster.config.remedy import drop
from ultracluster.config.session_user import IMAGE_USERS, image_user
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import ENV

RUN_AS = "Systems Manager User Guide, Turn on Run As support for Linux and macOS managed nodes"
DATE = "2026-11-22"


@ENV.rule(
    14,
    "error",
    "session_user is not a user of another image, and not root",
    source=f"{RUN_AS}: the user must be there, and is never root; release notes of the images",
    date=DATE,
)
def user_of_another_image(access: Access, cluster: Cluster) -> Iterator[Breach]:
    user, own = access.session_user, image_user(cluster.settings)
    if user == "root":
        yield Breach(
            ("session_user",),
            "Session Manager opens no session as root: the account is not one to run as.",
            drop().noting(f"sessions are then those of {own}, who may sudo"),
        )
    elif user in IMAGE_USERS and user != own and not _custom_image(cluster):
        yield Breach(
            ("session_user",),
            f"`{user}` is not on the images of {cluster.traits.kind}, and Session Manager "
            "makes no user: every session would end at once.",
            drop().noting(f"sessions are then those of {own}"),
        )


@ENV.rule(
    15,
    "warning",
    "The image of every node has the session_user that you name",
    source=RUN_AS,
    date=DATE,
    by_hand="id <user>  (on each node)",
)
def user_of_ones_own(access: Access, cluster: Cluster) -> Iterator[Breach]:
    user, own = access.session_user, image_user(cluster.settings)
    if user is None or user in (own, "root") or (user in IMAGE_USERS and not _custom_image(cluster)):
        return
    yield Breach(
        ("session_user",),
        f"`{user}` must be on every node, also on one that has just been replaced: Session Manager makes no "
        f"user, and AWS's images for {cluster.traits.kind} have {own}.",
        drop().noting(
            f"sessions are then those of {own}; or acknowledge this when your image or directory has {user}"
        ),
    )


def _custom_image(cluster: Cluster) -> bool:
    return any(group.settings.image for group in cluster.groups.values())
