"""Fixtures of tests that talk to services."""

from account_fixtures import only_documented_calls

__all__ = ["only_documented_calls"]
