"""The `ultracluster` command. It answers in a fraction of a second: nothing here imports the CDK."""

from ultracluster.cli.main import main

__all__ = ["main"]
