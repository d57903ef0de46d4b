"""The `ultracluster` command. It answers in a fraction of a second: nothing here imports the CDK."""

import os

# pydantic otherwise reads the metadata of every installed distribution in search of plugins,
# which is a quarter of its start
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")

from ultracluster.cli.main import main  # only after the variable is set

__all__ = ["main"]
