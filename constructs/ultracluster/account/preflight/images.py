"""Which image would boot in this account today, and what nodes would make of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from ultracluster.account.aws import existing
from ultracluster.account.preflight.rows import Question, Row, Situation
from ultracluster.catalog.eks import ami_type
from ultracluster.catalog.images import Family, Image, images, newest
from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.config.orchestrator import Eks, HyperPodEks, HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.model import Group
from ultracluster.model.unlocked_images import unlocked_images
from ultracluster.software import InvalidLockError, UnknownReleaseError
from ultracluster.software.first_boot import boot_of, release_of, scripts_run
from ultracluster.software.fit import Fit
from ultracluster.software.node_image import full_image_release, image_release, node_image

_LOCKED = "locked images"
_HYPERPOD = "/aws/service/sagemaker-hyperpod/ami"


@dataclass(frozen=True, slots=True)
class Seen:
    """The image that an account would give to nodes."""

    text: str
    image: Image | None
    """Its record, or that of the newest known of its family; None where nothing is known."""
    exact: bool
    """Whether the record is of this very image."""


Answer = Generator[Row, None, Seen | None]
"""Rows, and in the end the image; None where there is none to judge."""


def questions(situation: Situation) -> Iterator[Question]:
    same: dict[str, list[str]] = defaultdict(list)
    for name, group in situation.cluster.groups.items():
        own, release = group.settings.image, group.settings.image_release
        by_eks = situation.cluster.kubernetes and not group.in_service and not own
        kind = ami_type(group.type) if group.type and by_eks else ""
        same[f"{own or kind or _arch(group)}{release or ''}"].append(name)
    for names in same.values():
        yield Question(
            "software", f"image of {', '.join(names)}", lambda names=names: _group(situation, names)
        )
    try:
        unlocked = unlocked_images(situation.cluster)
    except InvalidLockError:
        return  # reported by SOF010
    if unlocked:
        yield Question("software", _LOCKED, lambda: _unlocked(situation, unlocked))


def _unlocked(situation: Situation, unlocked: Mapping[str, str]) -> Iterator[Row]:
    """Report unlocked images: a note before the first deploy, which locks them, a finding afterwards."""
    groups, environment = ", ".join(unlocked), situation.environment
    stack = environment.stack_name("cluster")
    answer = existing(lambda: situation.client("cloudformation").describe_stacks(StackName=stack))
    stacks: list[dict[str, Any]] = answer["Stacks"] if answer else []
    status = next((str(row["StackStatus"]) for row in stacks if row["StackName"] == stack), "")
    if status in ("", "REVIEW_IN_PROGRESS", "DELETE_COMPLETE"):
        yield Row(_LOCKED, "green", f"not yet those of {groups}: `ultracluster deploy` locks them first")
        return
    yield Row(
        _LOCKED,
        "yellow",
        f"{stack} is deployed, and {groups} lack{'s' if len(unlocked) == 1 else ''} an image in the lock: a "
        "later deploy may replace all nodes, or leave them behind the control plane",
        f"`ultracluster software lock --for {environment.asked_as}`, then `ultracluster diff "
        f"{environment.asked_as} --deployed`: the newest image is locked, not the one that nodes run",
    )


def _group(situation: Situation, names: list[str]) -> Iterator[Row]:
    """The image of groups that share one, then what becomes of the nodes of each."""
    what = f"image of {', '.join(names)}"
    group = situation.cluster.groups[names[0]]
    seen: Seen | None
    if group.settings.image:
        seen = yield from _own(situation, what, group.settings.image)
    else:
        seen = yield from _usual(situation, what, group)
    if seen:
        for name in names:
            yield from _judged(situation, name, seen)


def _arch(group: Group) -> str:
    return group.type.architecture if group.type else "x86_64"


def _usual(situation: Situation, what: str, group: Group) -> Answer:
    """The image that the orchestrator takes where the file names none."""
    if group.in_service:
        return (yield from _hyperpod(situation, what, group))
    match situation.cluster.settings:
        case Eks() | HyperPodEks() as plane:
            return (yield from _eks(situation, what, group, plane.kubernetes_version))
        case ParallelCluster() as settings:
            return (yield from _parallelcluster(situation, what, group, settings))
        case Pcs() | HyperPodSlurm():
            return None  # PCS without an image: a rule says so
        case _ as never:
            assert_never(never)


def _eks(situation: Situation, what: str, group: Group, kubernetes: str) -> Answer:
    environment, name = situation.environment, group.name
    type_ = ami_type(group.type) if group.type else None
    if type_ is None:
        return None
    arch, variant = "arm64" if "ARM_64" in type_ else "x86_64", type_.rpartition("_")[2].lower()
    base = f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{arch}/{variant}"
    latest = _parameter(situation, f"{base}/recommended/release_version")
    if latest is None:
        yield Row(
            what, "red", f"EKS has no {type_} for Kubernetes {kubernetes} in this Region", "name another"
        )
        return None
    pinned, _ = image_release(environment, name)
    full, date = full_image_release(environment, name), pinned.rpartition("-")[2]
    lock = f"`ultracluster software lock --for {environment.asked_as}`"
    if full:
        dated = f"{base}/amazon-eks-node-al2023-{arch}-{variant}-{kubernetes}-v{date}/release_version"
        there = latest if latest == full else _parameter(situation, dated)
        if there != full:
            found = f"it has {there} of that date" if there else "it has no image of that date"
            yield Row(what, "red", f"this Region has no {full}: {found}", f"{there or latest}, or {lock}")
            return None
        yield Row(what, "green", f"{full}{'' if full == latest else f', the newest is {latest}'}")
    elif latest.endswith(date):
        yield Row(what, "green", f"{latest}, the newest; {lock} keeps it")
    else:
        yield Row(
            what, "yellow", f"the newest, {latest}, would boot, {date} is pinned only by its date",
            f"{lock}, or `node_image_release: {latest}`",
        )  # fmt: skip
    release = full or latest
    families: dict[str, Family] = {
        "standard": "eks-al2023-standard",
        "nvidia": "eks-al2023-nvidia",
        "neuron": "eks-al2023-neuron",
    }
    family = families[variant]
    record = newest(family=family, arch=arch, kubernetes=kubernetes, release=release)
    return Seen(
        release, record or newest(family=family, arch=arch, kubernetes=kubernetes), record is not None
    )


def _parallelcluster(situation: Situation, what: str, group: Group, settings: ParallelCluster) -> Answer:
    name = parallelcluster().image_names[settings.os]
    pattern = f"aws-parallelcluster-{settings.version}-{name}-{_arch(group)}-*"
    pages = (
        situation.client("ec2")
        .get_paginator("describe_images")
        .paginate(Owners=["amazon"], Filters=[{"Name": "name", "Values": [pattern]}], IncludeDeprecated=True)
    )
    found = sorted(
        (image for page in pages for image in page["Images"]),
        key=lambda image: str(image.get("CreationDate", "")),
    )
    if not found:
        yield Row(
            what, "red", f"this Region has no official image {pattern}",
            "another version or system (`pcluster list-official-images`)",
        )  # fmt: skip
        return None
    yield Row(what, "green", f"{found[-1].get('Name')} ({found[-1]['ImageId']})")
    said = node_image(situation.environment, group.name)
    return Seen(str(found[-1].get("Name")), said.image, said.image is not None)


def _hyperpod(situation: Situation, what: str, group: Group) -> Answer:
    said = node_image(situation.environment, group.name)
    running = _running(situation, group.name)
    if running:
        yield Row(what, "green", f"the cluster's group runs {running}")
    release = group.settings.image_release
    if release:
        if not running and said.image:
            yield Row(what, "green", f"release {release}, set in the file")
        elif not running:
            near = _newest_of(situation, group)
            alike = (
                image for image in images() if near and (image.family, image.arch) == (near.family, near.arch)
            )
            versions = " or ".join(sorted({one.version for one in alike if one.version}))
            yield Row(
                what, "unknown", f"no known release {release} for this group, and HyperPod says so only "
                "when the cluster is made",
                f"{versions}{', or ' * bool(versions)}no image_release: the newest",
            )  # fmt: skip
        return Seen(f"HyperPod's image {release}", said.image, said.image is not None)
    image = said.image or _newest_of(situation, group)
    if image is None:
        return None
    kind = f"slurm-ubuntu-{image.os.removeprefix('ubuntu')}"
    if image.kubernetes:
        kind = f"eks-{image.kubernetes}-amazon-linux-2023"
    ami = _parameter(situation, f"{_HYPERPOD}/{image.arch}/{kind}/latest/ami-id")
    if ami is None:
        if not running:
            yield Row(what, "unknown", f"SSM has no parameter of HyperPod for {kind} on {image.arch} here")
        return Seen(f"HyperPod's newest for {kind}", image, exact=False)
    described = _described(situation, ami)
    dated = _dated(image, described)
    if not running:
        yield Row(what, "green", ", ".join(filter(None, (ami, str(described.get("Name", ""))))))
    return Seen(str(described.get("Name") or ami), dated or image, dated is not None)


def _running(situation: Situation, name: str) -> str:
    """Return what the group runs where the cluster is there already; empty otherwise."""
    sagemaker, cluster = situation.client("sagemaker"), situation.environment.cluster_name
    absent = ("ResourceNotFound", "ValidationException")
    answer = existing(lambda: sagemaker.describe_cluster(ClusterName=cluster), *absent)
    groups: list[dict[str, Any]] = answer.get("InstanceGroups", []) if answer else []
    empty: dict[str, Any] = {}
    row = next((group for group in groups if group.get("InstanceGroupName") == name), empty)
    return str(row.get("CurrentImageReleaseVersion") or row.get("CurrentImageId") or "")


def _own(situation: Situation, what: str, image: str) -> Answer:
    """An AMI or a parameter that the file names; whether it can be used, another question looks."""
    ami = _parameter(situation, image) if image.startswith("/") else image
    if ami is None:
        yield Row(what, "red", f"SSM has no parameter {image} in this Region", "name another")
        return None
    described = _described(situation, ami)
    said = next(
        (
            found.image
            for name, group in situation.environment.node_groups.items()
            if group.image == image and (found := node_image(situation.environment, name))
        ),
        None,
    )
    name = str(described.get("Name", ""))
    record = next((image for image in images() if image.name and name and image.name == name), None)
    if said and said.own:
        record = said
    record = record or (_dated(said, described) if said else None)
    return Seen(f"{ami}{f' ({name})' if name else ''}", record or said, record is not None)


def _judged(situation: Situation, name: str, seen: Seen) -> Iterator[Row]:
    environment = situation.environment
    what = f"first boot of {name}"
    if not scripts_run(environment, environment.node_groups[name]):
        return
    try:
        release = release_of(environment)
    except (UnknownReleaseError, InvalidLockError) as error:
        yield Row(what, "red", " ".join(str(error).split()), "see `ultracluster validate`")
        return
    boot = boot_of(environment, name, release, seen.image, seen.text)
    notes = [note.text for note in seen.image.advisories] if seen.image and seen.exact else []
    like = "" if seen.exact or seen.image is None else f" (not in the catalogue: judged by {seen.image.id})"
    plan = f"`ultracluster plan {environment.asked_as} --json` has each component"
    fails = boot.of("refuses")
    if fails:
        level = "red" if seen.exact and any(fail.certain for fail in fails) else "yellow"
        yield Row(what, level, f"nodes would fail{like}: {_names(fails)}", plan)
    elif notes:
        yield Row(what, "yellow", f"reported bad: {'; '.join(notes)}", "another image")
    elif lost := boot.of("degraded"):
        yield Row(what, "yellow", f"nodes would join without {_names(lost)}{like}", plan)
    elif seen.image is None:
        ask_it = "`ultracluster software record`"
        yield Row(what, "unknown", f"{seen.text}: what is on it is not known", ask_it)
    else:
        installs = [one.component for one in boot.of("installs")]
        done = (
            f"installs {', '.join(installs)}, {boot.minutes:g} min at the most"
            if installs
            else "installs nothing"
        )
        yield Row(what, "green", f"{done}{like}")


def _names(fits: tuple[Fit, ...]) -> str:
    return ", ".join(f"{fit.component} ({fit.detail})" for fit in fits)


def _newest_of(situation: Situation, group: Group) -> Image | None:
    """The newest HyperPod image for a group, where the file asks for a release that is not known."""
    plane = situation.cluster.kubernetes
    return newest(
        family="hyperpod-eks" if plane else "hyperpod-slurm",
        arch=_arch(group),
        kubernetes=plane.kubernetes_version if plane else None,
    )


def _dated(like: Image, described: dict[str, Any]) -> Image | None:
    """The record of the same family, system and processor whose date the AMI's name or creation has."""
    text = f"{described.get('Name', '')} {described.get('CreationDate', '')}"
    dates = {"-".join(found) for found in re.findall(r"(20\d\d)-?(\d\d)-?(\d\d)", text)}
    alike = [
        image
        for image in images()
        if not image.own
        and (image.family, image.os, image.arch, image.kubernetes)
        == (like.family, like.os, like.arch, like.kubernetes)
    ]
    return next((one for one in reversed(alike) if one.date in dates), None)


def _described(situation: Situation, ami: str) -> dict[str, Any]:
    """Name and date of an AMI; nothing where it cannot be looked at."""
    found = situation.client("ec2").describe_images(ImageIds=[ami])["Images"]
    return found[0] if found else {}


def _parameter(situation: Situation, name: str) -> str | None:
    """The value of a public parameter; None where the Region has none of this name."""
    answer = existing(lambda: situation.client("ssm").get_parameter(Name=name), "ParameterNotFound")
    return str(answer["Parameter"]["Value"]) if answer else None
