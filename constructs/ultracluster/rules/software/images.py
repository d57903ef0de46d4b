"""Rules on: Machine images, and what the nodes of each group make of the software release on theirs."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog.images import Image, newest, source
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.instance_types import instance_type_of
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.orchestrator import KUBERNETES
from ultracluster.config.remedy import Remedy, anywhere, ask, write
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import IMG
from ultracluster.software import InvalidLockError, UnknownReleaseError, load_release, newest_release
from ultracluster.software.contradictions import contradictions
from ultracluster.software.first_boot import GroupBoot, first_boot, scripts_run
from ultracluster.software.fit import Fit
from ultracluster.software.lock import NodeFamily
from ultracluster.software.node_image import FAMILIES, NodeImage, full_image_release, node_image

_CATALOGUE = "this package: catalog/images.json, each fact with its own source"
_DATE = "2026-11-22"
_SHOW = "ultracluster image show <image>"


@IMG.rule(1, "error", "No image boots that its maker withdrew", source=_CATALOGUE, date=_DATE, by_hand=_SHOW)
def withdrawn(environment: Environment) -> Iterator[Breach]:
    yield from _advisories(environment, "maker", "its maker withdrew it")


@IMG.rule(
    2, "warning", "No image boots that field reports call bad", source=_CATALOGUE, date=_DATE, by_hand=_SHOW
)
def reported_bad(environment: Environment) -> Iterator[Breach]:
    yield from _advisories(environment, "field", "a field report says")


@IMG.rule(
    3,
    "error",
    "The nodes of every group can start with the release on their image",
    source=f"{_CATALOGUE}; this package: lifecycle_scripts/releases, the floor of each component",
    date=_DATE,
    by_hand="ultracluster plan <environment>",
)
def cannot_boot(environment: Environment) -> Iterator[Breach]:
    for boot in _boots(environment):
        # a file or key that is not locked is SOF009's
        lost = [one for one in boot.of("refuses") if one.certain and one.lack != "unlocked"]
        if lost:
            yield Breach(
                _path(environment, boot.group),
                f"the nodes of `{boot.group}` would fail on {boot.image_text}: {_each(lost)}.",
                _remedy(environment, boot),
            )


@IMG.rule(
    4,
    "warning",
    "The nodes of every group start as far as anybody knows",
    source=f"{_CATALOGUE}; what is not confirmed warns",
    date=_DATE,
    by_hand="ultracluster preflight <environment>",
)
def may_not_boot(environment: Environment) -> Iterator[Breach]:
    for boot in _boots(environment):
        lost = [one for one in boot.of("refuses") if not one.certain and one.lack != "unlocked"]
        if lost:
            yield Breach(
                _path(environment, boot.group),
                f"the nodes of `{boot.group}` may fail on {boot.image_text}: {_each(lost)}. Not all of this "
                "is confirmed by the image's maker.",
                _remedy(environment, boot),
            )


@IMG.rule(
    5,
    "warning",
    "What the image of a group brings is known",
    source=_CATALOGUE,
    date=_DATE,
    by_hand="ultracluster image record",
)
def unknown_image(environment: Environment) -> Iterator[Breach]:
    groups: dict[str, list[str]] = {}
    for name, found in _images(environment).items():
        if found.image is None and scripts_run(environment, environment.node_groups[name]):
            groups.setdefault(found.text, []).append(name)
    for text, names in groups.items():
        near = _newest_known(environment, names[0])
        yield Breach(
            _path(environment, names[0]),
            f"{', '.join(names)}: {text}. Nodes find out what is there and install what is absent; nothing "
            "of it can be said before.",
            ask(
                "action",
                f"{near.id} is the newest known" if near else "`ultracluster image record` on one node tells",
            ),
        )


@IMG.rule(
    6,
    "error",
    "The software release is made for the orchestrator's images",
    source="this package: lifecycle_scripts/releases, `families`",
    date=_DATE,
    by_hand="ultracluster release list",
)
def other_family(environment: Environment) -> Iterator[Breach]:
    family = FAMILIES[environment.orchestrator.kind]
    try:
        release = load_release(environment.software.release)
    except (UnknownReleaseError, InvalidLockError):
        return  # SOF001 speaks
    if environment.orchestrator.lifecycle != "none" and family not in release.families:
        yield Breach(
            ("software", "release"),
            f"release {release.release} is made for the images of {', '.join(release.families)}, and "
            f"{environment.orchestrator.kind} boots those of {family}: its versions were never held against "
            "them.",
            _release_for(family),
        )


@IMG.rule(
    7,
    "warning",
    "The release of EKS's image is given in full",
    source="EKS API reference, CreateNodegroup, releaseVersion; EKS User Guide, Retrieve recommended Amazon "
    "Linux AMI IDs",
    date=_DATE,
    by_hand="aws ssm get-parameter --name /aws/service/eks/optimized-ami/<release>/amazon-linux-2023/x86_64/"
    "nvidia/recommended/release_version",
    kinds=KUBERNETES,
    settles=True,
)
def image_by_date(environment: Environment) -> Iterator[Breach]:
    orchestrator = environment.orchestrator
    assert isinstance(orchestrator, Eks | HyperPodEks)
    karpenter = (
        orchestrator.karpenter.groups if isinstance(orchestrator, Eks) and orchestrator.karpenter else ()
    )
    names = [
        name
        for name, group in environment.node_groups.items()
        if not group.image
        and (orchestrator.kind == "eks" or group.role == "system")
        and name not in karpenter  # its alias takes a date
        and full_image_release(environment, name) is None
    ]
    if names:
        asked = orchestrator.node_image_release or "pinned by this package"
        yield Breach(
            ("orchestrator", "node_image_release"),
            f"only the date of EKS's image is known ({asked}), and EKS takes releases in full: "
            f"{', '.join(names)} boot{'s' if len(names) == 1 else ''} the newest image.",
            ask(
                "action",
                f"`ultracluster release lock --for {environment.asked_as}`, which asks SSM, or the full "
                "release",
            ),
        )


@IMG.rule(
    8, "error", "No record of an image contradicts itself", source=_CATALOGUE, date=_DATE, by_hand=_SHOW
)
def contradictory(environment: Environment) -> Iterator[Breach]:
    for name, found in _images(environment).items():
        wrong = contradictions(found.image) if found.image else ()
        if found.image and wrong:
            yield Breach(
                _path(environment, name),
                f"the record of {found.image.id} contradicts itself: {'; '.join(wrong)}.",
                ask(
                    "action",
                    "mend the record in catalog/images.json with `ultracluster image record` on one node",
                ),
            )


def _advisories(environment: Environment, by: str, words: str) -> Iterator[Breach]:
    groups: dict[str, list[str]] = {}
    known: dict[str, Image] = {}
    for name, found in _images(environment).items():
        if found.image:
            known[found.image.id] = found.image
            groups.setdefault(found.image.id, []).append(name)
    for image in known.values():
        names = groups[image.id]
        for note in image.advisories:
            if note.by == by:
                better = _newest_sound(image)
                yield Breach(
                    _path(environment, names[0]),
                    f"{', '.join(names)}: {image.id}, of which {words}: {note.text} ({source(note.source)}).",
                    _better(_path(environment, names[0]), better),
                )


def _newest_sound(image: Image) -> Image | None:
    better = newest(family=image.family, arch=image.arch, os=image.os, kubernetes=image.kubernetes)
    return better if better and not better.advisories else None


def _boots(environment: Environment) -> tuple[GroupBoot, ...]:
    try:
        return first_boot(environment)
    except (UnknownReleaseError, InvalidLockError):
        return ()  # SOF001 and SOF010 speak


def _images(environment: Environment) -> dict[str, NodeImage]:
    try:
        return {name: node_image(environment, name) for name in environment.node_groups}
    except InvalidLockError:
        return {}  # SOF010 speaks


def _newest_known(environment: Environment, name: str) -> Image | None:
    """The image that the group would boot if it named none; of PCS the newest of all."""
    if environment.orchestrator.kind == "pcs":
        known = instance_type_of(environment, environment.node_groups[name])
        return newest(family="pcs-ready-dlami", arch=known.architecture) if known else None
    group = environment.node_groups[name].model_copy(update={"image": None, "image_release": None})
    groups = {**environment.node_groups, name: group}
    orchestrator = environment.orchestrator
    unpinned = {key: None for key in ("node_image_release", "image_release") if hasattr(orchestrator, key)}
    if environment.orchestrator.kind == "parallelcluster":
        unpinned["version"] = type(orchestrator).model_fields["version"].default
    plain = environment.model_copy(
        update={"node_groups": groups, "orchestrator": orchestrator.model_copy(update=unpinned)}
    )
    return node_image(plain, name).image


def _each(fits: list[Fit]) -> str:
    return "; ".join(f"{one.component} ({one.detail})" for one in fits)


def _remedy(environment: Environment, boot: GroupBoot) -> Remedy:
    """The nearest that works: a newer image, or the release of this family."""
    if environment.software.strict:
        return anywhere({("software", "strict"): False}).noting("or a release made for this image")
    better = (
        newest(family=boot.image.family, arch=boot.image.arch, kubernetes=boot.image.kubernetes)
        if boot.image
        else None
    )
    if better and boot.image and better.id != boot.image.id:
        return _better(_path(environment, boot.group), better)
    return _release_for(FAMILIES[environment.orchestrator.kind])


def _better(path: Path, better: Image | None) -> Remedy:
    """A newer image, as the key at `path` names it; an AMI has another id in each Region."""
    if better and better.release and path[-1] == "version":
        return write(better.release)
    if better and better.release and path[-1] == "node_image_release":
        return write(better.release.rpartition("-")[2]).noting(better.id)
    return ask("fact", f"the image {better.id} of {better.date}" if better else "another image")


def _release_for(family: NodeFamily) -> Remedy:
    try:
        return anywhere({("software", "release"): newest_release(family).release})
    except UnknownReleaseError:
        return ask("fact", "a release whose `families` have it (`ultracluster release list`)")


def _path(environment: Environment, name: str) -> Path:
    """Where the file says which image a group boots."""
    group, orchestrator = environment.node_groups[name], environment.orchestrator
    if group.image:
        return ("node_groups", name, "image")
    if orchestrator.kind == "parallelcluster":
        return ("orchestrator", "version")
    if getattr(orchestrator, "node_image_release", None) and (
        orchestrator.kind == "eks" or group.role == "system"
    ):
        return ("orchestrator", "node_image_release")
    return ("node_groups", name)
