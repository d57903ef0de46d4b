"""Rules on: Software release."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import InstanceType
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import KUBERNETES, SLURM
from ultracluster.config.remedy import Remedy, anywhere, ask, either, write
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import SOF
from ultracluster.rules.storage.lustre import efa_off
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
from ultracluster.software.node_image import FAMILIES

_SOFTWARE: Path = ("software",)
_RELEASE: Path = ("software", "release")
_STORAGE: Path = ("storage", "lustre")
_NEURON = ("neuron-driver", "neuron-runtime", "neuron-collectives")
_NVIDIA = ("nvidia-driver", "nccl")
_LOCKS = "this package: lifecycle_scripts/releases"
_CONSTRAINTS = "this package: catalog/software_constraints.json, each row with its own source"
_MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}  # as EC2 and as `uname -m` name them
_CHECK = "ultracluster release check <release>"


@SOF.rule(
    1,
    "error",
    "The software release exists",
    source=_LOCKS,
    by_hand="ultracluster release list",
)
def release_exists(environment: Environment) -> Iterator[Breach]:
    name = environment.software.release
    try:
        load_release(name)
    except UnknownReleaseError:
        near = [one for one in nearest_releases(name) if _for_family(environment, one)]
        yield Breach(
            _RELEASE,
            f"there is no release {name}: nodes would not know which versions to bring themselves to.",
            write(*near) if near else ask("fact", "a release of `ultracluster release list`"),
        )
    except InvalidLockError as error:
        others = [one for one in release_names() if one != name and _for_family(environment, one)]
        yield Breach(
            _RELEASE,
            f"the lock file of release {name} is damaged ({_one_line(error)}).",
            (write(*others) if others else ask("action", "")).noting("install this package anew"),
        )


@SOF.rule(
    2,
    "error",
    "The parts of the software release fit together",
    source=_CONSTRAINTS,
    by_hand=_CHECK,
)
def release_fits(environment: Environment) -> Iterator[Breach]:
    yield from (breach for verdict in _breaches(environment) if verdict.blocks for breach in [_of(verdict)])


@SOF.rule(
    3,
    "error",
    "The software release serves every instance type",
    source=f"AWS Neuron documentation: set-up; NVIDIA driver documentation; {_CONSTRAINTS}",
    by_hand="ultracluster release show <release>",
)
def instances_served(environment: Environment) -> Iterator[Breach]:
    release = _release(environment)
    if release is None:
        return
    for name, group in environment.node_groups.items():
        kind = instance_type_of(environment, group)
        if kind is None:
            continue
        path: Path = ("node_groups", name, "instance_type")
        if kind.accelerator:
            needed = _NEURON if kind.accelerator.manufacturer == "AWS" else _NVIDIA
            if environment.orchestrator.kind in KUBERNETES:
                needed = tuple(part for part in needed if part in ON_KUBERNETES)
            known = {part for part, found in release.components.items() if found.need != "optional"}
            missing = [part for part in needed if part not in known]
            if missing:
                yield Breach(
                    path,
                    f"{kind.name} has {kind.accelerator.name}, and release {release.release} has no "
                    f"{', no '.join(missing)}: its accelerators could not be used.",
                    _other_releases(environment, *missing),
                )
        machine = _MACHINES.get(kind.architecture, "x86_64")
        lacking = [
            part
            for part, found in _used(release, environment, group)
            if found.architectures and machine not in found.architectures
        ]
        if lacking:
            yield Breach(
                path,
                f"{kind.name} is {kind.architecture}, and release {release.release} has nothing for it of "
                f"{', '.join(lacking)}.",
                ask("decision", "an x86_64 type, or a release with files for aarch64"),
            )
        for verdict in instance_breaches(release, _accelerator(kind)):
            if verdict.blocks:
                yield _of(verdict, path)


@SOF.rule(
    6,
    "error",
    "Lustre over EFA and GPUDirect Storage are in the software release",
    source="FSx for Lustre User Guide: Working with EFA-enabled file systems",
)
def lustre_served(environment: Environment) -> Iterator[Breach]:
    release, lustre = _release(environment), environment.storage.lustre
    if release is None or lustre is None:
        return
    for field, parts, harm in (
        ("efa", ("lustre-client", "lustre-efa-setup"), "clients would mount over TCP without an error"),
        ("gds", ("nvidia-fs",), "reads would go through host memory"),
    ):
        missing = [part for part in parts if part not in release.components]
        if getattr(lustre, field, False) and missing:
            yield Breach(
                (*_STORAGE, field),
                f"{field} is on, and release {release.release} has no {', no '.join(missing)}: {harm}.",
                (efa_off(environment) if field == "efa" else write(False))
                | _other_releases(environment, *missing),
            )


@SOF.rule(
    7,
    "warning",
    "The software release stays inside what was tested together",
    source=_CONSTRAINTS,
    by_hand=_CHECK,
)
def release_tested(environment: Environment) -> Iterator[Breach]:
    release = _release(environment)
    for verdict in _breaches(environment):
        if not verdict.blocks:
            yield _of(verdict)
    if release is None:
        return
    for name, group in environment.node_groups.items():
        for verdict in instance_breaches(release, _accelerator(instance_type_of(environment, group))):
            if not verdict.blocks:
                yield _of(verdict, ("node_groups", name, "instance_type"))


_SCRIPTS = {
    "hyperpod-slurm": "on-init-complete",
    "parallelcluster": "on-node-configured",
    "pcs": "node-bootstrapped",
}
"""When our scripts run on the nodes of Slurm's orchestrators."""


@SOF.rule(
    8,
    "warning",
    "Lifecycle scripts run",
    source="SageMaker Developer Guide, Customize SageMaker HyperPod clusters with lifecycle scripts; "
    "ParallelCluster User Guide, Custom bootstrap actions; aws/aws-parallelcluster PR #7572; "
    "AWS PCS User Guide, Run custom scripts with node lifecycle actions in AWS PCS",
    date="2026-11-21",
    kinds=SLURM,
)
def lifecycle_none(environment: Environment) -> Iterator[Breach]:
    if _scripts_run(environment):
        return
    missing = [f"software release {environment.software.release} is not installed or verified"]
    if getattr(environment.storage.lustre, "efa", False):
        missing.append("the Lustre client is not set up for EFA by us and may stay on TCP")
    if environment.orchestrator.kind == "hyperpod-slurm":
        missing.append("the image must be of January 2026 or later")
    yield Breach(
        ("orchestrator", "lifecycle"),
        f"with `none` the nodes are what their image makes of them: {'; '.join(missing)}.",
        _scripts_on(environment),
    )


def _release(environment: Environment) -> Release | None:
    """The release, or None where SOF001 speaks."""
    try:
        return load_release(environment.software.release)
    except (UnknownReleaseError, InvalidLockError):
        return None


def _breaches(environment: Environment) -> list[Verdict]:
    release = _release(environment)
    return breaches(release) if release else []


def _accelerator(kind: InstanceType | None) -> str:
    return kind.accelerator.name if kind and kind.accelerator else ""


def _of(verdict: Verdict, path: Path = _RELEASE) -> Breach:
    row = verdict.constraint
    return Breach(
        path,
        f"{row.id}: {row.title}; {verdict.detail}. {row.why} ({row.source}).",
        ask("decision", "another release, or another version in its lock file"),
    )


def _used(release: Release, environment: Environment, group: NodeGroup) -> Iterator[tuple[str, Component]]:
    """Components that the nodes of a group need and that are installed where the image lacks them."""
    node = node_of(environment, group)
    for name, part in release.components.items():
        if part.kind not in ("image", "bundled") and not unneeded(name, part, node):
            yield name, part


def _scripts_run(environment: Environment) -> bool:
    return environment.orchestrator.lifecycle != "none"


def _other_releases(environment: Environment, *wanted: str) -> Remedy:
    """Releases for the images of this orchestrator that have all of it, those for it alone first."""
    family = FAMILIES[environment.orchestrator.kind]
    having: list[Release] = []
    for name in release_names():
        try:
            other = load_release(name)
        except InvalidLockError:
            continue
        if name != environment.software.release and family in other.families:
            having += [other] if all(part in other.components for part in wanted) else []
    having = [one for one in having if not any(verdict.blocks for verdict in breaches(one))]
    having = [one for one in having if not any(_unlocked(environment, one.release))]
    having.sort(key=lambda one: len(one.families))
    if not having:
        return ask("fact", f"a release with {', '.join(wanted)}")
    return either(*(anywhere({_RELEASE: one.release}) for one in having[:2]))


def _scripts_on(environment: Environment) -> Remedy:
    """Scripts run, with a release that is made for the images."""
    kind, remedy = environment.orchestrator.kind, write(_SCRIPTS[environment.orchestrator.kind])
    if _release(environment) is None or _for_family(environment, environment.software.release):
        return remedy
    return remedy & anywhere({_RELEASE: newest_release(FAMILIES[kind]).release})


def _unlocked(environment: Environment, name: str) -> Iterator[str]:
    """Components that nodes could not do without and, with this release, could not check."""
    software = environment.software.model_copy(update={"release": name})
    for boot in first_boot(environment.model_copy(update={"software": software})):
        yield from (one.component for one in boot.of("refuses") if one.certain)


def _for_family(environment: Environment, name: str) -> bool:
    """Whether a release is made for the images of the orchestrator."""
    try:
        release = load_release(name)
        fits = not any(verdict.blocks for verdict in breaches(release)) and not any(
            _unlocked(environment, name)
        )
        return fits and FAMILIES[environment.orchestrator.kind] in release.families
    except (UnknownReleaseError, InvalidLockError):
        return False


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
