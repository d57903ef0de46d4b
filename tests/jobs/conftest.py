"""Fixtures of tests that talk to services."""

from account_fixtures import only_documented_calls
from json_contract import json_keeps_its_schema

__all__ = ["json_keeps_its_schema", "only_documented_calls"]
