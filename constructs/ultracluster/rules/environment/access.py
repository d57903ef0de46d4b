"""Rules on: who a session on a node logs in as."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config import Environment
from ultracluster.config.remedy import drop
from ultracluster.config.session_user import IMAGE_USERS, image_user
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import ENV

RUN_AS = "Systems Manager User Guide, Turn on Run As support for Linux and macOS managed nodes"
DATE = "2026-11-22"


@ENV.rule(
    14,
    "error",
    "The image has the user of a session",
    source=f"{RUN_AS}: the user must be there, and is never root; release notes of the images",
    date=DATE,
)
def user_of_another_image(environment: Environment) -> Iterator[Breach]:
    asked = environment.access.session_user
    if asked is None:
        return
    own = image_user(environment.orchestrator)
    another = asked in IMAGE_USERS and asked != own
    if asked == "root":
        yield Breach(
            ("access", "session_user"),
            "Session Manager opens no session as root: the account is not one to run as.",
            drop().noting(f"sessions are then those of {own}, who may sudo"),
        )
    elif another and not any(group.image for group in environment.node_groups.values()):
        yield Breach(
            ("access", "session_user"),
            f"`{asked}` is not on the images of {environment.orchestrator.kind}, and Session Manager "
            "makes no user: every session would end at once.",
            drop().noting(f"sessions are then those of {own}"),
        )


@ENV.rule(
    15,
    "warning",
    "The user of a session is one that the image has",
    source=RUN_AS,
    date=DATE,
    by_hand="id <user>  (on each node)",
)
def user_of_ones_own(environment: Environment) -> Iterator[Breach]:
    asked = environment.access.session_user
    own = image_user(environment.orchestrator)
    made = any(group.image for group in environment.node_groups.values())
    if asked is None or asked in (own, "root") or (asked in IMAGE_USERS and not made):
        return
    yield Breach(
        ("access", "session_user"),
        f"`{asked}` must be on every node, also on one that has just been replaced: Session Manager makes no "
        f"user, and AWS's images for {environment.orchestrator.kind} have {own}.",
        drop().noting(
            f"sessions are then those of {own}; or acknowledge this when your image or directory has {asked}"
        ),
    )
