"""Fixtures of tests that talk to services."""

from account_fixtures import only_documented_calls
from grafana_fixtures import fill, side, there
from json_contract import json_keeps_its_schema
from moto_account import aws_account

__all__ = ["aws_account", "fill", "json_keeps_its_schema", "only_documented_calls", "side", "there"]
