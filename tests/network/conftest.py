"""Fixtures of constructs in an app of another team."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from aws_cdk import Stack


@pytest.fixture
def stack() -> Stack:
    from foreign import foreign_stack  # only now: a quick run collects this folder without the CDK

    return foreign_stack()
