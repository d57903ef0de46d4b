"""Limits of AWS ParallelCluster.

`parallelcluster.json` is kept by hand; its header names source and date, and a test compares it with the
package of ParallelCluster itself. What ParallelCluster requires of families of types is in `instances.json`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ultracluster.catalog.files import catalog_file, record
from ultracluster.catalog.instances import rows_with

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What may be called how. Source: pcluster/validators/cluster_validators.py."""

    pattern: str
    """Regular expression of the names of queues, compute resources and login pools."""
    longest: int
    """Characters of such a name."""
    reserved: tuple[str, ...]
    longest_cluster: int
    """Characters of a cluster's name."""
    longest_cluster_with_accounting: int
    """The same with an accounting database, whose tables are called after the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyQueues:
    """From how many queues on an update may take too long. Source: aws/aws-parallelcluster#7519."""

    least: int
    seconds: int
    """Time-out of the head node for the files of all queues together."""
    fixed_in: str | None
    """First release without it; None until one is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What ParallelCluster asks of a family of instance types."""

    since: str
    """First release that knows it."""
    source: str
    systems: tuple[str, ...] = ()
    """The only operating systems for it; empty is all."""
    block_sizes: tuple[int, ...] = ()
    """Instances of a Capacity Block of it; empty is any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one cluster."""

    checked_versions: tuple[str, ...]
    """Releases whose schema and validators our tests run."""
    same_configuration: tuple[str, ...]
    """Releases after those whose notes change no key of the configuration, oldest first."""
    names: Names
    counts: Mapping[str, int]
    """At most so many `queues`, `compute_resources`, `login_pools`, `tags` in a cluster."""
    many_queues: ManyQueues
    head_memory: Mapping[str, float]
    """Memory of the head node in GB: `base_gb` and one per `nodes_per_gb` nodes, up to `enough_gb`."""
    log_retention_days: tuple[int, ...]
    image_names: Mapping[str, str]
    """How the names of official images spell an operating system."""
    systems_without_image: tuple[str, ...]
    """Operating systems for which ParallelCluster publishes no image."""
    families: Mapping[str, Family]
    efa_only_since: str
    """First release with interfaces of type efa-only."""
    topology_yaml_since: str
    """First release whose Slurm keeps nodes that are powered down in topology.yaml: 25.11.4 does; 24.11.6, of
    the release before, does not read the file (Slurm's CHANGELOG, 25.11.3; topology.yaml(5))."""
    small_sizes: Mapping[str, tuple[str, ...]]
    """Sizes (`names`) that are too small for some `systems`."""
    hanging_health_checks: tuple[str, ...]
    """Families on which the GPU health check was reported to hang."""
    reserved_mount_paths: tuple[str, ...]
    reserved_tag_prefix: str
    regions: tuple[str, ...]
    sssd: Mapping[str, str]
    """Settings of sssd that have one value only."""
    node_name_marks: tuple[str, ...]
    """Parts of node names by which ParallelCluster knows its own nodes."""
    slurm_settings: Mapping[str, Mapping[str, str]]
    """What to use instead of each setting that is refused, by level: `cluster`, `accounting` (the cluster's,
    with an accounting database), `partition`, `group`."""
    root_volumes: tuple[tuple[str, int], ...]
    """(from this release on, GiB): the root volume of the images, below which none may be."""

    @property
    def judged_versions(self) -> tuple[str, ...]:
        """Releases for which the validators of our tests speak, oldest first."""
        return (*self.checked_versions, *self.same_configuration)

    def root_volume_gib(self, release: str) -> int:
        """The least size of a root volume in GiB."""
        return next(size for since, size in reversed(self.root_volumes) if version(release) >= version(since))

    def head_memory_gb(self, nodes: int) -> float:
        """The least memory in GB of a head node for so many compute nodes."""
        row = self.head_memory
        return min(nodes / row["nodes_per_gb"] + row["base_gb"], row["enough_gb"])

    def names_problem(self, name: str) -> str:
        """What is wrong with the name of a queue, compute resource or login pool; empty if nothing."""
        if len(name) > self.names.longest:
            return f"it has {len(name)} characters of {self.names.longest} at most"
        if name in self.names.reserved:
            return "the word is reserved"
        if not re.fullmatch(self.names.pattern, name):
            return "it must begin with a letter and hold lower-case letters, digits and hyphens only"
        return ""


def version(text: str) -> Version:
    """`3.16.1` as numbers that compare."""
    return tuple(int(part) for part in text.split("."))


def provider_template(release: str, *, region: str, dns_suffix: str) -> str:
    """The address of ParallelCluster's custom resource in a Region (ParallelCluster User Guide, "AWS
    CloudFormation custom resource")."""
    host = f"{region}-aws-parallelcluster.s3.{region}.{dns_suffix}"
    return f"https://{host}/parallelcluster/{release}/templates/custom_resource/cluster.yaml"


@cache
def parallelcluster() -> Limits:
    """The limits; read-only."""
    data = catalog_file("parallelcluster")
    types = {name.partition(".")[0]: row for name, row in rows_with("parallelcluster").items()}
    return record(
        Limits,
        data,
        same_configuration=tuple(data["same_configuration"]["versions"]),
        names=record(Names, data["names"]),
        many_queues=record(ManyQueues, data["many_queues"]),
        families={name: record(Family, row) for name, row in types.items() if "since" in row},
        hanging_health_checks=tuple(name for name, row in types.items() if row.get("health_check_hangs")),
        root_volumes=tuple((row["from"], row["gib"]) for row in data["root_volume_gib"]),
    )
