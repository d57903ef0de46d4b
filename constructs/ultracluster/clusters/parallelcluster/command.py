"""The command lines of ParallelCluster for a rendered file, and why they are what they are."""

from __future__ import annotations

import shlex

from ultracluster.config import Environment

WHY_NO_ROLLBACK = (
    "--rollback-on-failure false keeps the instances of a cluster that did not come up, so that their logs "
    "can be read; by default they are gone when the command has failed. Delete such a cluster yourself: "
    "until then it costs what it runs."
)


def create_command(environment: Environment, file: str) -> str:
    """`pcluster create-cluster ...` for the file at `file`."""
    return _command("create-cluster", environment, file, "--rollback-on-failure", "false")


def update_command(environment: Environment, file: str) -> str:
    """`pcluster update-cluster ...` for the file at `file`; it knows no `--rollback-on-failure`."""
    return _command("update-cluster", environment, file)


def _command(verb: str, environment: Environment, file: str, *more: str) -> str:
    return shlex.join(
        [
            "pcluster",
            verb,
            "--cluster-name",
            environment.cluster_name,
            "--cluster-configuration",
            file,
            "--region",
            environment.region,
            *more,
        ]
    )
