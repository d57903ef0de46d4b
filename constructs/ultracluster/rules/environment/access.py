"""Rules on: who a session on a node logs in as."""

from __future__ import annotations

from ultracluster.config.environment import Access
from ultracluster.config.remedy import drop
from ultracluster.config.session_user import IMAGE_USERS, SESSION_USER, image_user, images_of
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import ENV
from ultracluster.rules.sources import RUN_AS

DATE = "2026-11-22"
ADMIN = "administrators have `ultracluster connect --admin`"


@ENV.error(14, f"{RUN_AS}: the user must be there, and is never root; release notes of the images", DATE)
def session_user_of_image(access: Access, cluster: Cluster) -> Breaches:
    """session_user is not a user of another image, and not root."""
    user, own = access.session_user, image_user(cluster.settings)
    if user == "root":
        yield at("session_user").breach(
            "Session Manager opens no session as root: the account is not one to run as.",
            drop().noting(f"people's sessions are then those of {SESSION_USER}; {ADMIN}"),
        )
    elif user in IMAGE_USERS and user != own and not _custom_image(cluster):
        yield at("session_user").breach(
            f"`{user}` is not on {images_of(cluster.settings)}, whose user is {own}, and Session Manager "
            "creates no user: every session would end at once.",
            drop().noting(f"sessions are then those of {SESSION_USER}, whom nodes make"),
        )


@ENV.warning(
    20, f"{RUN_AS}; the user of an image may sudo without a password (release notes of the images)", DATE
)
def session_user_with_sudo(access: Access, cluster: Cluster) -> Breaches:
    """The user of people's sessions may not sudo."""
    user = access.session_user
    if user is None or user != image_user(cluster.settings):
        return
    yield at("session_user").breach(
        f"`{user}` may sudo: whoever gets a session is root on the nodes, and reads what other people's jobs "
        "have in memory and the credentials of the node.",
        drop().noting(f"people's sessions are then those of {SESSION_USER}; {ADMIN}"),
    )


def _custom_image(cluster: Cluster) -> bool:
    return any(group.settings.image for group in cluster.groups.values())
