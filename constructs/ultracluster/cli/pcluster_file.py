"""The file for the `pcluster` command, compared like a template: with `deploy_with: pcluster` no stack has
it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ultracluster.change.parallelcluster_updates import CLUSTER
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model import resolve
from ultracluster.parallelcluster.configuration_file import cluster_configuration
from ultracluster.parallelcluster.deployed_values import value_sources

if TYPE_CHECKING:
    from ultracluster.change.comparison import Comparison
    from ultracluster.change.template import Template
    from ultracluster.config import Environment


def add_pcluster_files(found: Comparison) -> None:
    """Add the file of both sides to what is compared, where both are deployed by the `pcluster` command."""
    if found.files is None:
        return
    before, after = map(_as_template, found.files)
    if before and after:
        name = f"{found.files[1].cluster_name}.pcluster.yaml"
        found.before[name], found.after[name] = before, after


def _as_template(environment: Environment) -> Template | None:
    """The file as the cluster's custom resource would have it; None where `pcluster` does not deploy it."""
    settings = environment.orchestrator
    if not isinstance(settings, ParallelCluster) or settings.deploy_with != "pcluster":
        return None
    values = value_sources(environment).placeholders()
    properties = {
        "ClusterName": environment.cluster_name,
        "ClusterConfiguration": cluster_configuration(resolve(environment), values),
    }
    return {"Resources": {"Cluster": {"Type": CLUSTER, "Properties": properties}}}


__all__ = ["add_pcluster_files"]
