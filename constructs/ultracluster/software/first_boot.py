"""The first boot of an environment's nodes: their image, and what they do with each component."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ultracluster.catalog.images import Image
from ultracluster.config.environment import Environment
from ultracluster.config.instance_types import instance_type_of
from ultracluster.config.nodes import NodeGroup
from ultracluster.software.environment_lock import completed, environment_lock
from ultracluster.software.fit import METRICS, Fit, Node, fit
from ultracluster.software.installing import Sources
from ultracluster.software.lock import Release, load_release
from ultracluster.software.node_image import node_image


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBoot:
    """One group: what its nodes boot, and what becomes of it."""

    group: str
    image: Image | None
    """None: of this one nothing is known."""
    image_text: str
    fits: tuple[Fit, ...]
    """By component; empty where our scripts do not run."""
    minutes: float
    """An estimate of what a node installs, where all that is unknown is absent."""

    def of(self, *outcomes: str) -> tuple[Fit, ...]:
        """The components with one of these outcomes."""
        return tuple(fit for fit in self.fits if fit.outcome in outcomes)


def first_boot(environment: Environment) -> tuple[GroupBoot, ...]:
    """The groups of an environment, in its order.

    Raises:
        UnknownReleaseError: there is no such release.
        InvalidLockError: its file is damaged.
    """
    release = release_of(environment)
    return tuple(group_boot(environment, name, release) for name in environment.node_groups)


def release_of(environment: Environment) -> Release:
    """The release of an environment, with what its lock adds: as its nodes see it.

    Raises:
        UnknownReleaseError: there is no such release.
        InvalidLockError: its file, or the lock of the environment, is damaged.
    """
    return completed(load_release(environment.software.release), environment_lock(environment.file))


def group_boot(environment: Environment, name: str, release: Release) -> GroupBoot:
    """One group of an environment with a release."""
    image = node_image(environment, name)
    return boot_of(environment, name, release, image.image, image.text)


def boot_of(
    environment: Environment, name: str, release: Release, image: Image | None, image_text: str
) -> GroupBoot:
    """One group of an environment with a release, on an image that the caller knows."""
    group = environment.node_groups[name]
    node = node_of(environment, group)
    fits = fit(image, release, node) if scripts_run(environment, group) else ()
    mirror = environment.software.mirror
    if mirror:
        fits = tuple(
            replace(each_fit, source=mirror) if each_fit.source == "the mirror" else each_fit
            for each_fit in fits
        )
    return GroupBoot(
        group=name,
        image=image,
        image_text=image_text,
        fits=fits,
        minutes=sum(each_fit.minutes for each_fit in fits),
    )


def scripts_run(environment: Environment, group: NodeGroup) -> bool:
    """Whether our scripts run on the nodes of a group: EKS's own system nodes have none."""
    return environment.orchestrator.lifecycle != "none" and group.role != "system"


def node_of(environment: Environment, group: NodeGroup) -> Node:
    """What `fit` must know of the nodes of a group."""
    kind = instance_type_of(environment, group)
    name = next((name for name, own in environment.node_groups.items() if own is group), "")
    lustres = [lustre for lustre in environment.lustres.values() if not name or lustre.mounted_by(name)]
    efa = any(mounted.efa for mounted in lustres) and bool(kind and kind.lustre_efa_client)
    gds = any(mounted.gds for mounted in lustres) and bool(kind and kind.lustre_gds_client)
    interfaces = kind.least_efa_interfaces if kind else 0
    return Node(
        role=group.role,
        instance_type=group.instance_type,
        architecture=(kind.architecture if kind else "") or "x86_64",
        accelerator=_accelerator(environment, group),
        efa_interfaces=interfaces if group.role == "compute" else 0,
        nvswitch=bool(kind and kind.nvswitch),
        lustre="none" if not lustres else "efa" if efa and group.role == "compute" else "tcp",
        gds=gds and group.role == "compute",
        kubernetes=environment.kubernetes is not None,
        gpu=kind.accelerator.name if kind and kind.accelerator else "",
        local_nvme_disks=kind.local_nvme_disks if kind else 0,
        components=frozenset({"nvidia-fs"} if gds else ()) | asked_components(environment),
        strict=environment.software.strict,
        sources=_sources(environment),
    )


def asked_components(environment: Environment) -> frozenset[str]:
    """Optional components that an environment's nodes have for its metrics (`observability`)."""
    settings = environment.observability
    on_nodes = settings is not None and settings.kind == "prometheus" and environment.kubernetes is None
    return METRICS if on_nodes else frozenset()


def _accelerator(environment: Environment, group: NodeGroup) -> Literal["nvidia", "neuron", "none"]:
    kind = instance_type_of(environment, group)
    if kind is None or kind.accelerator is None:
        return "none"
    return "neuron" if kind.accelerator.manufacturer == "AWS" else "nvidia"


def _sources(environment: Environment) -> Sources:
    if environment.software.mirror:
        return "mirror"
    return "none" if environment.network.egress == "closed" else "internet"
