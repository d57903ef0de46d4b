"""Environments that break no rule."""

from __future__ import annotations

from pathlib import Path

from ultracluster.cli.environments import load_file, refuse_file
from ultracluster.config import Environment, InvalidEnvironmentError
from ultracluster.rules import enforce, judge_rest


def load_accepted(path: Path) -> Environment:
    """The environment of a file that breaks no rule; otherwise all findings, and exit code 2."""
    try:
        loaded = load_file(path)
        enforce(loaded)
    except InvalidEnvironmentError as error:
        refuse_file(judge_rest(error))
    return loaded.environment
