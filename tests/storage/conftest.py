"""Fixtures of constructs in an app of another team."""

from __future__ import annotations

import pytest
from aws_cdk import Stack
from foreign import foreign_stack


@pytest.fixture
def stack() -> Stack:
    return foreign_stack()
