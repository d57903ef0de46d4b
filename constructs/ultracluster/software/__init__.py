"""Software releases: what a locked set of versions is, and whether its parts fit together.

Pydantic and the standard library only; nothing here knows an environment, the CDK or an account.
"""

from ultracluster.software.lock import (
    Artifact,
    Component,
    InvalidLockError,
    PackageSet,
    Release,
    Repository,
    UnknownReleaseError,
    load_release,
    nearest_releases,
    newest_release,
    read_lock,
    release_file,
    release_names,
)
from ultracluster.software.solver import Verdict, breaches, instance_breaches, solve

__all__ = [
    "Artifact",
    "Component",
    "InvalidLockError",
    "PackageSet",
    "Release",
    "Repository",
    "UnknownReleaseError",
    "Verdict",
    "breaches",
    "instance_breaches",
    "load_release",
    "nearest_releases",
    "newest_release",
    "read_lock",
    "release_file",
    "release_names",
    "solve",
]
