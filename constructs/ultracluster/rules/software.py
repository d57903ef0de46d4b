"""Rules on: Software release."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.orchestrator import KUBERNETES, SLURM
from ultracluster.rules.engine import Breach, RuleSet
from ultracluster.rules.types import instance_type_of
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
    release_names,
)

RULES = RuleSet("SOF", "Software release")

_SOFTWARE: Path = ("software",)
_RELEASE: Path = ("software", "release")
_STORAGE: Path = ("storage", "lustre")
_NEURON = ("neuron-driver", "neuron-runtime", "neuron-collectives")
_NVIDIA = ("nvidia-driver", "nccl")
_LOCKS = "this package: lifecycle_scripts/releases"
_CONSTRAINTS = "this package: catalog/software_constraints.json, each row with its own source"
_MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}  # as EC2 and as `uname -m` name them
_CHECK = "ultracluster release check <release>"


@RULES.rule(
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
        near = nearest_releases(name)
        yield Breach(
            _RELEASE,
            f"there is no release {name}: nodes would not know which versions to bring themselves to.",
            " or ".join(f'"{one}"' for one in near) or "a release of `ultracluster release list`",
        )
    except InvalidLockError as error:
        others = [f'"{one}"' for one in release_names() if one != name]
        yield Breach(
            _RELEASE,
            f"the lock file of release {name} is damaged ({_one_line(error)}).",
            f"install this package anew, or {' or '.join(others)}" if others else "install this package anew",
        )


@RULES.rule(
    2,
    "error",
    "The parts of the software release fit together",
    source=_CONSTRAINTS,
    by_hand=_CHECK,
)
def release_fits(environment: Environment) -> Iterator[Breach]:
    yield from (breach for verdict in _breaches(environment) if verdict.blocks for breach in [_of(verdict)])


@RULES.rule(
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
                    _other_releases(release, *missing),
                )
        machine = _MACHINES.get(kind.architecture, "x86_64")
        lacking = [
            part
            for part, found in _used(release, environment, {_maker(environment, name)})
            if found.architectures and machine not in found.architectures
        ]
        if lacking:
            yield Breach(
                path,
                f"{kind.name} is {kind.architecture}, and release {release.release} has nothing for it of "
                f"{', '.join(lacking)}.",
                "an x86_64 type, or a release with files for aarch64",
            )
        for verdict in instance_breaches(release, kind.family):
            if verdict.blocks:
                yield _of(verdict, path)


@RULES.rule(
    4,
    "warning",
    "Without a route to the internet, nodes have another source for what their image lacks",
    source=f"VPC User Guide: gateway endpoints; {_LOCKS}",
    by_hand="ultracluster release mirror --bucket <bucket> --release <release> --dry-run",
)
def closed_without_source(environment: Environment) -> Iterator[Breach]:
    release, mirror = _release(environment), environment.software.mirror
    if release is None or environment.network.egress != "closed" or not _scripts_run(environment):
        return
    makers = {_maker(environment, name) for name in environment.node_groups}
    used = [(name, part) for name, part in _used(release, environment, makers) if part.systems]
    if not mirror and used:
        yield Breach(
            _SOFTWARE,
            f"egress is closed and there is no mirror. Of release {release.release}, "
            f"{', '.join(name for name, _ in used)} come from the internet where the image lacks them: "
            "such a node fails.",
            "mirror: s3://<bucket>/<prefix> after `ultracluster release mirror`, or acknowledge that "
            "the image brings all of it",
        )
        return
    # which system an image has, only its nodes know: some set for the processor has to be recorded
    recorded = {name.rpartition("-")[2] for name in release.package_sets}
    lacking = [
        name
        for name, part in used
        if {
            machine
            for entry in part.packages
            if entry.repository
            for machine in entry.arch
            if machine in _machines(environment)
        }
        - recorded
    ]
    if lacking:
        yield Breach(
            (*_SOFTWARE, "mirror"),
            f"egress is closed, and release {release.release} does not record which packages the mirror "
            f"holds: {', '.join(lacking)} cannot be installed where the image lacks them.",
            f"`ultracluster release mirror --release {release.release}`, which records them in the lock "
            "file, or acknowledge that the image brings them",
        )


@RULES.rule(
    5,
    "warning",
    "What a protected environment downloads is locked by a digest",
    source=_LOCKS,
    by_hand="ultracluster release lock <file>",
)
def unlocked_artifacts(environment: Environment) -> Iterator[Breach]:
    release = _release(environment)
    if release is None or not environment.protect or not _scripts_run(environment):
        return
    makers = {_maker(environment, name) for name in environment.node_groups}
    used = [part for part, _ in _used(release, environment, makers)]
    open_ones = list(dict.fromkeys(part for part, _ in release.unlocked if part in used))
    if open_ones:
        yield Breach(
            _RELEASE,
            f"protect is on, and release {release.release} has files without a digest: "
            f"{', '.join(open_ones)}. Their makers publish none, and a node refuses what it cannot check.",
            "`ultracluster release lock`, or acknowledge that the image brings them",
        )


@RULES.rule(
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
                f"{field}: false, or {_other_releases(release, *missing)}",
            )


@RULES.rule(
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
        for verdict in instance_breaches(release, group.instance_type.partition(".")[0]):
            if not verdict.blocks:
                yield _of(verdict, ("node_groups", name, "instance_type"))


_SCRIPTS = {
    "hyperpod-slurm": "on-init-complete",
    "parallelcluster": "on-node-configured",
    "pcs": "node-bootstrapped",
}
"""When our scripts run on the nodes of Slurm's orchestrators."""


@RULES.rule(
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
        _SCRIPTS[environment.orchestrator.kind],
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


def _of(verdict: Verdict, path: Path = _RELEASE) -> Breach:
    row = verdict.constraint
    return Breach(
        path,
        f"{row.id}, {row.title[0].lower()}{row.title[1:]}: {verdict.detail}. {row.why} ({row.source}).",
        "another release, or another version in its lock file",
    )


ON_KUBERNETES = frozenset(
    {
        "nvidia-driver",
        "fabric-manager",
        "efa-installer",
        "gdrcopy",
        "neuron-driver",
        "lustre-client",
        "lustre-efa-setup",
        "nvidia-fs",
        "container-toolkit",
    }
)
"""What reaches into the kernel, and the toolkit: pods bring the rest themselves (`lib/steps.sh`)."""


def _used(release: Release, environment: Environment, makers: set[str]) -> Iterator[tuple[str, Component]]:
    """Components that nodes with accelerators of these makers are brought to."""
    lustre = environment.storage.lustre
    kubernetes = environment.orchestrator.kind in KUBERNETES
    by_lustre = {
        "lustre-efa-setup": getattr(lustre, "efa", False),
        "nvidia-fs": getattr(lustre, "gds", False),
    }
    for name, part in release.components.items():
        if kubernetes and name not in ON_KUBERNETES:
            continue
        if part.kind in ("image", "bundled") or not by_lustre.get(name, part.need != "optional"):
            continue
        if part.accelerator == "any" or part.accelerator in makers:
            yield name, part


def _maker(environment: Environment, group: str) -> str:
    kind = instance_type_of(environment, environment.node_groups[group])
    if kind is None or kind.accelerator is None:
        return "any"
    return "neuron" if kind.accelerator.manufacturer == "AWS" else "nvidia"


def _machines(environment: Environment) -> set[str]:
    """Processors of the node groups, as `uname -m` names them."""
    kinds = (instance_type_of(environment, group) for group in environment.node_groups.values())
    return {_MACHINES.get(kind.architecture, "x86_64") for kind in kinds if kind}


def _scripts_run(environment: Environment) -> bool:
    return environment.orchestrator.lifecycle != "none"


def _other_releases(release: Release, *wanted: str) -> str:
    having: list[str] = []
    for name in release_names():
        try:
            other = load_release(name)
        except InvalidLockError:
            continue
        if name != release.release and all(part in other.components for part in wanted):
            having.append(f'release: "{name}"')
    return " or ".join(having) or f"a release with {', '.join(wanted)}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
