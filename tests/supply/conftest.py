"""Fixtures of tests that talk to services."""

from account_fixtures import lock_file, no_pause, only_documented_calls, shop, signers
from package_repositories import debs, lock, mirror, repositories, s3

__all__ = [
    "debs",
    "lock",
    "lock_file",
    "mirror",
    "no_pause",
    "only_documented_calls",
    "repositories",
    "s3",
    "shop",
    "signers",
]
