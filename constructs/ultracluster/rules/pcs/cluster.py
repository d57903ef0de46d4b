"""Rules on: AWS PCS. The cluster: Slurm's version, size, accounting, agent."""

from __future__ import annotations

import re
from datetime import date

from ultracluster.catalog import Region
from ultracluster.catalog.pcs import pcs_agent, pcs_since, pcs_size_for, pcs_sizes, pcs_slurm_versions
from ultracluster.catalog.zone_kinds import ZONE_WORDS, refused_kinds, zone_kind
from ultracluster.config import Environment
from ultracluster.config.findings import YamlPath
from ultracluster.config.network import Network
from ultracluster.config.pcs import Pcs, PcsAccounting
from ultracluster.config.remedy import anywhere, ask, beside, drop, write
from ultracluster.config.storage import ExistingDatabase, Lustre, OpenZfs, RdsMySql, Storage
from ultracluster.model import Cluster
from ultracluster.model.parent_zone import parent_zone
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.pcs.groups import API, QUOTAS
from ultracluster.rules.sets import PCS
from ultracluster.rules.sources import BOTOCORE, PCS_GUIDE
from ultracluster.rules.today import today
from ultracluster.rules.zones import with_zone_of_region

VERSIONS = f"{PCS_GUIDE}, Slurm versions in AWS PCS"
LIFECYCLE = f"{PCS_GUIDE}, Run custom scripts with node lifecycle actions in AWS PCS"
SOON_DAYS = 90


def ending(version: str, *, on: date) -> int | None:
    """Days until support of a Slurm version ends, negative after it; None where no end is published."""
    end = pcs_slurm_versions().get(version)
    return (end - on).days if end else None


@PCS.error(60, f"{VERSIONS}; {API}, SchedulerRequest")
def version_known(settings: Pcs) -> Breaches:
    """PCS offers the Slurm version."""
    version, versions = settings.slurm_version, list(pcs_slurm_versions())
    if version not in versions:
        yield at("slurm_version").breach(
            f"PCS does not offer Slurm {version}; it offers {', '.join(versions)}.",
            write(*_nearest_supported(version)),
        )


@PCS.error(61, VERSIONS)
def version_supported(settings: Pcs) -> Breaches:
    """PCS still supports the Slurm version."""
    version = settings.slurm_version
    left = ending(version, on=today())
    if left is not None and left < 0:
        yield at("slurm_version").breach(
            f"PCS supported Slurm {version} until {pcs_slurm_versions()[version]}.",
            write(*_supported()).noting("docs/pcs.md describes how an existing cluster is upgraded"),
        )


@PCS.warning(62, VERSIONS)
def version_support_ends(settings: Pcs) -> Breaches:
    """Support of the Slurm version does not end within 90 days."""
    version = settings.slurm_version
    left = ending(version, on=today())
    if left is not None and 0 <= left <= SOON_DAYS:
        yield at("slurm_version").breach(
            f"PCS supports Slurm {version} only until {pcs_slurm_versions()[version]}, {left} days from now.",
            write(*_supported()),
        )


def _nearest_supported(version: str) -> list[str]:
    """The supported versions next to one that PCS does not have."""
    supported = _supported() or [*pcs_slurm_versions()][-1:]
    newer = [other for other in supported if other > version]
    return newer[:1] or supported[-1:]


def _supported() -> list[str]:
    """The versions that are supported for a while."""
    ends = {version: ending(version, on=today()) for version in pcs_slurm_versions()}
    return [version for version, left in ends.items() if left is None or left > SOON_DAYS]


@PCS.error(63, f"{QUOTAS}; {API}, CreateCluster (size)")
def cluster_size_fits(cluster: Cluster, settings: Pcs) -> Breaches:
    """The cluster size holds all nodes."""
    nodes = _nodes(cluster)
    sizes = {size.name: size for size in pcs_sizes()}
    largest = pcs_sizes()[-1]
    size = sizes.get(settings.size or "")
    if nodes > largest.nodes:
        yield at("node_groups").breach(
            f"the groups may have {nodes} nodes in total; the largest PCS cluster has {largest.nodes}.",
            ask("decision", f"use {largest.nodes} nodes or fewer in this environment"),
        )
    elif size and nodes > size.nodes:
        fit = pcs_size_for(nodes)
        yield at("orchestrator", "size").breach(
            f"the groups may have {nodes} nodes in total, login nodes included; a {size.name} cluster has "
            f"{size.nodes}.",
            write(fit.name).noting(
                f"for {fit.nodes} nodes, which replaces the cluster: its size cannot change"
            ),
        )


@PCS.warning(64, "CloudFormation, AWS::PCS::Cluster (Size is create-only)")
def cluster_size_set(settings: Pcs, cluster: Cluster) -> Breaches:
    """A protected cluster has its size set."""
    if cluster.environment.protect and settings.size is None:
        fit = pcs_size_for(_nodes(cluster))
        yield at("size").breach(
            "without a size the cluster gets the smallest that holds its nodes, and the size cannot change: "
            f"the first node above {fit.nodes} would replace the cluster and lose all jobs.",
            write(fit.name).noting("or a larger one if you will add nodes"),
        )


@PCS.error(97, f"{BOTOCORE} pcs: NetworkingRequest, subnetIds", "2026-11-27")
def controller_zone(network: Network, home: Region, cluster: Cluster) -> Breaches:
    """The controller of PCS is in a zone of the Region."""
    zone = parent_zone(network) or network.zone_id
    if (kind := zone_kind(zone)) in refused_kinds("PCS097"):
        yield at("zone_id").breach(
            f"the interface of the controller would be in {zone}, and PCS accepts no subnet of a "
            f"{ZONE_WORDS[kind]} for it.",
            with_zone_of_region(cluster, home),
        )


@PCS.error(65, f"{API}, CreateCluster (clusterName)")
def cluster_name(settings: Pcs, environment: Environment) -> Breaches:
    """PCS accepts the cluster name."""
    name = environment.cluster_name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{2,39}", name):
        yield at("cluster_name").breach(
            f"`{name}` cannot be the cluster's name: PCS takes 3 to 40 letters, digits and hyphens, a letter "
            "first.",
            write(_taken(name)),
        )


@PCS.error(66, f"{PCS_GUIDE}, Slurm accounting in AWS PCS")
def accounting_database_unsupported(database: RdsMySql | ExistingDatabase) -> Breaches:
    """There is no accounting database, because PCS runs its own."""
    yield at().breach(
        f"PCS runs slurmdbd and its database itself and cannot use another one ({database.kind}).",
        drop().noting("orchestrator.accounting is {mode: standard} by default"),
    )


@PCS.warning(67, f"{API}, Accounting (defaultPurgeTimeInDays)")
def accounting_retention(accounting: PcsAccounting) -> Breaches:
    """Accounting records are deleted after some time."""
    if accounting.mode == "standard" and accounting.purge_days == -1:
        yield at("purge_days").breach(
            "records are kept forever, and PCS bills the storage of accounting every month.", write(365)
        )


@PCS.error(68, f"{API}, SlurmRestRequest; {VERSIONS}")
def rest_version(settings: Pcs) -> Breaches:
    """The Slurm version has the REST API."""
    since = pcs_since("rest")
    if settings.rest and settings.slurm_version < since:
        yield at("rest").breach(
            f"PCS has Slurm's REST API from {since} on, and this cluster has {settings.slurm_version}.",
            write(False) | beside(slurm_version=since),
        )


@PCS.error(70, LIFECYCLE)
def agent_lifecycle_actions(settings: Pcs) -> Breaches:
    """The PCS agent supports lifecycle actions."""
    floor = pcs_agent("lifecycle_actions")
    if settings.lifecycle != "none" and _numbers(settings.agent_version) < _numbers(floor):
        yield at("agent_version").breach(
            f"lifecycle actions require version {floor} of the PCS agent in the images, which have "
            f"{settings.agent_version}: the lifecycle scripts would not run.",
            ask("action", f"use images with {floor} or newer, or lifecycle: none"),
        )


@PCS.warning(71, VERSIONS)
def agent_rolling_upgrades(settings: Pcs) -> Breaches:
    """The PCS agent supports rolling upgrades."""
    floor = pcs_agent("rolling_upgrade")
    if _numbers(settings.agent_version) < _numbers(floor):
        yield at("agent_version").breach(
            f"with an agent older than {floor} all nodes must be stopped for the next Slurm version.",
            ask("action", f"use images with {pcs_agent('lifecycle_actions')} or newer"),
        )


def _numbers(version: str) -> tuple[int, ...]:
    """`1.5.0-1` as (1, 5, 0, 1); a version without a package release counts as its first."""
    main, _, release = version.partition("-")
    return (*map(int, main.split(".")), int(release or 1))


@PCS.warning(72, f"{LIFECYCLE}; PCS has no field for mounts")
def scripts_mount_file_systems(storage: Storage, settings: Pcs) -> Breaches:
    """Lifecycle scripts mount the file systems."""
    systems: dict[YamlPath, Lustre | OpenZfs | None] = {
        ("lustre",): storage.lustre,
        **{("further_lustre", name): one for name, one in storage.further_lustre.items()},
        ("openzfs",): storage.openzfs,
    }
    for path, system in systems.items():
        if system and settings.lifecycle == "none":
            yield at(*path).breach(
                "PCS mounts nothing itself, and with lifecycle `none` no lifecycle script mounts "
                f"{system.mount_path} either.",
                anywhere({("orchestrator", "lifecycle"): "node-bootstrapped"}).noting(
                    "or acknowledge that the image mounts it"
                ),
            )


def _taken(name: str) -> str:
    """The nearest name that PCS takes."""
    plain = re.sub(r"[^A-Za-z0-9-]+", "-", name).strip("-")
    plain = plain if plain[:1].isalpha() else f"c-{plain}"
    return (plain if len(plain) > 2 else f"{plain}-pcs")[:40].rstrip("-")


def _nodes(cluster: Cluster) -> int:
    """Nodes of all groups at the most; PCS counts login nodes, too."""
    return sum(group.most_nodes for group in cluster.groups.values())
