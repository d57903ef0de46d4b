"""Software releases: what a locked set of versions is, and whether its parts fit together.

Pydantic and the standard library only; nothing here knows an environment, the CDK or an account.
"""

from ultracluster.software.artifact import Artifact, PackageSet, Repository
from ultracluster.software.environment_lock import EnvironmentLock, completed, environment_lock
from ultracluster.software.lock import (
    Component,
    InvalidLockError,
    Release,
    UnknownReleaseError,
    Unlocked,
    load_release,
    nearest_releases,
    newest_release,
    read_lock,
    release_file,
    release_names,
)
from ultracluster.software.solver import Verdict, breaches, every_instance_breach, instance_breaches, solve

__all__ = [
    "Artifact",
    "Component",
    "EnvironmentLock",
    "InvalidLockError",
    "PackageSet",
    "Release",
    "Repository",
    "UnknownReleaseError",
    "Unlocked",
    "Verdict",
    "breaches",
    "completed",
    "environment_lock",
    "every_instance_breach",
    "instance_breaches",
    "load_release",
    "nearest_releases",
    "newest_release",
    "read_lock",
    "release_file",
    "release_names",
    "solve",
]
