"""Fixtures of tests that talk to services."""

from account_fixtures import lock_file, no_pause, shop
from json_contract import json_keeps_its_schema

__all__ = ["json_keeps_its_schema", "lock_file", "no_pause", "shop"]
