"""Fixtures of tests that talk to services."""

from account_fixtures import lock_file, no_pause, shop

__all__ = ["lock_file", "no_pause", "shop"]
