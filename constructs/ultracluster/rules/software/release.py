"""Rules on the software release."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import InstanceType
from ultracluster.config import Environment
from ultracluster.config.environment import Software
from ultracluster.config.findings import YamlPath
from ultracluster.config.lustre import LustreFacts
from ultracluster.config.remedy import Remedy, anywhere, ask, either, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breach, Breaches, at
from ultracluster.rules.lustre_changes import without_efa
from ultracluster.rules.sets import SLURM, SOF
from ultracluster.rules.sources import PCS_GUIDE, RELEASES
from ultracluster.software import (
    Component,
    InvalidLockError,
    Release,
    UnknownReleaseError,
    Verdict,
    breaches,
    instance_breaches,
    load_release,
    nearest_releases,
    newest_release,
    release_names,
)
from ultracluster.software.first_boot import first_boot, node_of
from ultracluster.software.fit import ON_KUBERNETES, unneeded

_RELEASE: YamlPath = ("software", "release")
_NEURON = ("neuron-driver", "neuron-runtime", "neuron-collectives")
_NVIDIA = ("nvidia-driver", "nccl")
_CONSTRAINTS = "this package: catalog/software_constraints.json, each row with its own source"
_MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}  # as EC2 and as `uname -m` name them
_CHECK = "ultracluster software show <release> --check"


@SOF.error(1, RELEASES, by_hand="ultracluster software show")
def release_exists(software: Software, cluster: Cluster) -> Breaches:
    """The software release exists."""
    name = software.release
    try:
        load_release(name)
    except UnknownReleaseError:
        near = [one for one in nearest_releases(name) if _for_family(cluster, one)]
        yield at("release").breach(
            f"there is no release {name}: nodes would not know which versions to install.",
            write(*near) if near else ask("fact", "a release of `ultracluster software show`"),
        )
    except InvalidLockError as error:
        others = [one for one in release_names() if one != name and _for_family(cluster, one)]
        yield at("release").breach(
            f"the lock file of release {name} is damaged ({_one_line(error)}).",
            (write(*others) if others else ask("action", "")).noting("or install this package again"),
        )


@SOF.error(2, _CONSTRAINTS, by_hand=_CHECK)
def release_fits(software: Software) -> Breaches:
    """The components of the software release are compatible."""
    yield from (_of(verdict, ("release",)) for verdict in _breaches(software) if verdict.blocks)


@SOF.error(
    3,
    f"AWS Neuron documentation: set-up; NVIDIA driver documentation; {_CONSTRAINTS}",
    by_hand="ultracluster software show <release>",
)
def release_serves_types(group: Group, cluster: Cluster) -> Breaches:
    """The software release supports every instance type."""
    release, kind = _release(cluster.environment.software), group.type
    if release is None or kind is None:
        return
    path: YamlPath = ("instance_type",)
    if kind.accelerator:
        needed = _NEURON if kind.accelerator.manufacturer == "AWS" else _NVIDIA
        if cluster.traits.kubernetes:
            needed = tuple(part for part in needed if part in ON_KUBERNETES)
        required = {part for part, found in release.components.items() if found.need != "optional"}
        missing = [part for part in needed if part not in required]
        if missing:
            yield at(*path).breach(
                f"{kind.name} has {kind.accelerator.name}, and release {release.release} has no "
                f"{', no '.join(missing)}: its accelerators could not be used.",
                _other_releases(cluster, *missing),
            )
    machine = _MACHINES.get(kind.architecture, "x86_64")
    lacking = [
        part
        for part, found in _used(release, group, cluster)
        if found.architectures and machine not in found.architectures
    ]
    if lacking:
        yield at(*path).breach(
            f"{kind.name} is {kind.architecture}, and release {release.release} has no files for it of "
            f"{', '.join(lacking)}.",
            ask("decision", "an x86_64 type, or a release with files for aarch64"),
        )
    found = instance_breaches(release, _accelerator(kind), kind.name)
    yield from (_of(one, path) for one in found if one.refuses_type)


@SOF.error(6, "FSx for Lustre User Guide: Working with EFA-enabled file systems")
def release_serves_lustre(lustre: LustreFacts, cluster: Cluster) -> Breaches:
    """The software release has what Lustre over EFA and GPUDirect Storage require."""
    release = _release(cluster.environment.software)
    if release is None:
        return
    for field, on, parts, harm in (
        (
            "efa",
            lustre.efa,
            ("lustre-client", "lustre-efa-setup"),
            "clients would mount over TCP without an error",
        ),
        ("gds", lustre.gds, ("nvidia-fs",), "reads would go through host memory"),
    ):
        missing = [part for part in parts if part not in release.components]
        if on and missing:
            yield at(field).breach(
                f"{field} is on, and release {release.release} has no {', no '.join(missing)}: {harm}.",
                (without_efa(lustre) if field == "efa" else write(False))
                | _other_releases(cluster, *missing),
            )


@SOF.warning(7, _CONSTRAINTS, by_hand=_CHECK)
def release_tested(cluster: Cluster) -> Breaches:
    """The components of the software release were tested together."""
    software = cluster.environment.software
    yield from (_of(verdict, _RELEASE) for verdict in _breaches(software) if not verdict.blocks)
    release = _release(software)
    if release is None:
        return
    for name, group in cluster.groups.items():
        for verdict in instance_breaches(release, _accelerator(group.type), _name(group.type)):
            if not verdict.refuses_type:
                yield _of(verdict, ("node_groups", name, "instance_type"))


@SOF.warning(
    8,
    "SageMaker Developer Guide, Customize SageMaker HyperPod clusters with lifecycle scripts; "
    "ParallelCluster User Guide, Custom bootstrap actions; aws/aws-parallelcluster PR #7572; "
    f"{PCS_GUIDE}, Run custom scripts with node lifecycle actions in AWS PCS",
    "2026-11-21",
    kinds=SLURM,
)
def lifecycle_scripts_run(cluster: Cluster) -> Breaches:
    """Lifecycle scripts run on the nodes."""
    if cluster.settings.lifecycle != "none":
        return
    missing = [f"software release {cluster.environment.software.release} is not installed or verified"]
    if any(lustre.efa for lustre in cluster.lustres.values()):
        missing.append("the Lustre client is not set up for EFA and may stay on TCP")
    if cluster.traits.hyperpod:
        missing.append("the image must be of January 2026 or later")
    yield at("orchestrator", "lifecycle").breach(
        f"with `none` nothing is added to the image of the nodes: {'; '.join(missing)}.", _scripts_on(cluster)
    )


def _release(software: Software) -> Release | None:
    """The release; None where SOF001 reports it."""
    try:
        return load_release(software.release)
    except (UnknownReleaseError, InvalidLockError):
        return None


def _breaches(software: Software) -> list[Verdict]:
    release = _release(software)
    return breaches(release) if release else []


def _name(kind: InstanceType | None) -> str:
    return kind.name if kind else ""


def _accelerator(kind: InstanceType | None) -> str:
    return kind.accelerator.name if kind and kind.accelerator else ""


def _of(verdict: Verdict, path: YamlPath) -> Breach:
    row = verdict.constraint
    return at(*path).breach(
        f"{row.id}: {row.title}; {verdict.detail}. {row.why} ({row.source}).",
        ask("decision", "another release, or another version in its lock file"),
    )


def _used(release: Release, group: Group, cluster: Cluster) -> Iterator[tuple[str, Component]]:
    """Components that the nodes of a group need and that are installed where the image lacks them."""
    node = node_of(cluster.environment, group.settings)
    for name, part in release.components.items():
        if part.kind not in ("image", "bundled") and not unneeded(name, part, node):
            yield name, part


def _other_releases(cluster: Cluster, *wanted: str) -> Remedy:
    """Releases for the images of this orchestrator that have all of it; those only for it come first."""
    family = cluster.traits.software_family
    having: list[Release] = []
    for name in release_names():
        try:
            other = load_release(name)
        except InvalidLockError:
            continue
        if name != cluster.environment.software.release and family in other.families:
            having += [other] if all(part in other.components for part in wanted) else []
    having = [one for one in having if not any(verdict.blocks for verdict in breaches(one))]
    having = [one for one in having if not any(_unlocked(cluster.environment, one.release))]
    having.sort(key=lambda one: len(one.families))
    if not having:
        return ask("fact", f"a release with {', '.join(wanted)}")
    return either(*(anywhere({_RELEASE: one.release}) for one in having[:2]))


def _scripts_on(cluster: Cluster) -> Remedy:
    """Scripts run when they do by default, with a release that is made for the images."""
    remedy = write(type(cluster.settings).model_fields["lifecycle"].default)
    software = cluster.environment.software
    if _release(software) is None or _for_family(cluster, software.release):
        return remedy
    return remedy & anywhere({_RELEASE: newest_release(cluster.traits.software_family).release})


def _unlocked(environment: Environment, name: str) -> Iterator[str]:
    """Components that nodes require and, with this release, could not verify."""
    software = environment.software.model_copy(update={"release": name})
    for boot in first_boot(environment.model_copy(update={"software": software})):
        yield from (one.component for one in boot.of("refuses") if one.certain)


def _for_family(cluster: Cluster, name: str) -> bool:
    """Whether a release is made for the images of the orchestrator."""
    try:
        release = load_release(name)
        fits = not any(verdict.blocks for verdict in breaches(release)) and not any(
            _unlocked(cluster.environment, name)
        )
        return fits and cluster.traits.software_family in release.families
    except (UnknownReleaseError, InvalidLockError):
        return False


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
