"""Rules on machine images, and on what nodes make of the software release on theirs."""

from __future__ import annotations

from ultracluster.catalog.images import Image, newest, source
from ultracluster.config.environment import Software
from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import Remedy, anywhere, ask, write
from ultracluster.model import Cluster
from ultracluster.model.unlocked_images import unlocked_images
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.group_image import newest_known, place_of_image
from ultracluster.rules.sets import IMG
from ultracluster.rules.sources import RELEASES
from ultracluster.software import InvalidLockError, UnknownReleaseError, load_release, newest_release
from ultracluster.software.contradictions import contradictions
from ultracluster.software.first_boot import GroupBoot, first_boot, scripts_run
from ultracluster.software.fit import Fit
from ultracluster.software.lock import NodeFamily
from ultracluster.software.locked_images import waits_for_first_deploy
from ultracluster.software.node_image import NodeImage, node_image

_CATALOGUE = "this package: catalog/images.json, each fact with its own source"
_DATE = "2026-11-22"
_SHOW = "ultracluster software show <image>"


@IMG.error(1, _CATALOGUE, _DATE, by_hand=_SHOW)
def image_withdrawn(cluster: Cluster) -> Breaches:
    """No group boots an image that its maker withdrew."""
    yield from _advisories(cluster, "maker", "its maker withdrew")


@IMG.warning(2, _CATALOGUE, _DATE, by_hand=_SHOW)
def image_reported_bad(cluster: Cluster) -> Breaches:
    """No group boots an image that field reports call bad."""
    yield from _advisories(cluster, "field", "a field report calls bad")


@IMG.error(
    3,
    f"{_CATALOGUE}; {RELEASES}, the floor of each component",
    _DATE,
    by_hand="ultracluster plan <environment>",
)
def image_cannot_boot(cluster: Cluster) -> Breaches:
    """The nodes of every group can start: their image has what the release requires."""
    for boot in _boots(cluster):
        # a file or key that is not locked is reported by SOF009
        lost = [one for one in boot.of("refuses") if one.certain and one.lack != "unlocked"]
        if lost:
            yield at(*place_of_image(cluster, boot.group)).breach(
                f"the nodes of `{boot.group}` would fail on {boot.image_text}: {_each(lost)}.",
                _remedy(cluster, boot),
            )


@IMG.warning(
    4, f"{_CATALOGUE}; what is not confirmed warns", _DATE, by_hand="ultracluster preflight <environment>"
)
def image_may_not_boot(cluster: Cluster) -> Breaches:
    """It is confirmed that the nodes of every group can start."""
    for boot in _boots(cluster):
        lost = [one for one in boot.of("refuses") if not one.certain and one.lack != "unlocked"]
        if lost:
            yield at(*place_of_image(cluster, boot.group)).breach(
                f"the nodes of `{boot.group}` may fail on {boot.image_text}: {_each(lost)}. Not all of this "
                "is confirmed by the image's maker.",
                _remedy(cluster, boot),
            )


@IMG.warning(5, _CATALOGUE, _DATE, by_hand="ultracluster software record")
def image_contents_known(cluster: Cluster) -> Breaches:
    """The contents of each group's image are known."""
    groups: dict[str, list[str]] = {}
    for name, found in _images(cluster).items():
        if found.image is None and scripts_run(cluster.environment, cluster.groups[name].settings):
            groups.setdefault(found.text, []).append(name)
    for text, names in groups.items():
        near = newest_known(cluster, names[0])
        yield at(*place_of_image(cluster, names[0])).breach(
            f"{', '.join(names)}: {text}. What a node lacks is only known, and installed, when it starts.",
            ask(
                "action",
                f"{near.id} is the newest known" if near else "`ultracluster software record` on one node",
            ),
        )


@IMG.error(6, f"{RELEASES}, `families`", _DATE, by_hand="ultracluster software show")
def image_family(software: Software, cluster: Cluster) -> Breaches:
    """The software release is made for the orchestrator's images."""
    family = cluster.traits.software_family
    try:
        release = load_release(software.release)
    except (UnknownReleaseError, InvalidLockError):
        return  # reported by SOF001
    if cluster.settings.lifecycle != "none" and family not in release.families:
        yield at("release").breach(
            f"release {release.release} is made for the images of {', '.join(release.families)}, and "
            f"{cluster.traits.kind} boots those of {family}: its versions were never compared with them.",
            _release_for(family),
        )


@IMG.warning(
    7,
    "EKS API reference, CreateNodegroup, releaseVersion; EKS User Guide, Retrieve recommended Amazon "
    "Linux AMI IDs; CloudFormation User Guide, Get a plaintext value from Systems Manager Parameter Store",
    "2026-11-27",
    by_hand="aws ssm get-parameter --name /aws/service/eks/optimized-ami/<release>/amazon-linux-2023/x86_64/"
    "nvidia/recommended/release_version",
    settles=True,
)
def image_locked(cluster: Cluster) -> Breaches:
    """The image of every group is locked, from the first deploy on."""
    environment = cluster.environment
    try:
        if waits_for_first_deploy(environment):
            return
        found = unlocked_images(cluster)
    except InvalidLockError:
        return  # reported by SOF010
    command = f"`ultracluster software lock --for {environment.asked_as}`, which asks SSM"
    ways = [] if environment.in_app else [command]
    dates: list[str] = []
    for name, what in found.items():
        if not cluster.groups[name].settings.image:
            dates.append(name)
            continue
        yield at("node_groups", name, "image").breach(
            f"each deploy that changes anything of the group, even its count, reads {what} again: if there "
            "is a newer image by then, all nodes of the group are replaced.",
            ask(
                "action",
                "; or ".join(
                    [*ways, "the id of an AMI", f"a version of your own parameter, {what}:<version>"]
                ),
            ),
        )
    if dates and cluster.kubernetes:
        named = cluster.kubernetes.node_image_release or "pinned by this package"
        yield at("orchestrator", "node_image_release").breach(
            f"only the date of EKS's image is known ({named}), and EKS requires the full release: "
            f"{', '.join(dates)} boot{'s' if len(dates) == 1 else ''} the newest image.",
            ask("action", ", or ".join([*ways, "the full release"])),
        )


@IMG.error(8, _CATALOGUE, _DATE, by_hand=_SHOW)
def image_record_consistent(cluster: Cluster) -> Breaches:
    """The record of an image does not contradict itself."""
    for name, found in _images(cluster).items():
        wrong = contradictions(found.image) if found.image else ()
        if found.image and wrong:
            yield at(*place_of_image(cluster, name)).breach(
                f"the record of {found.image.id} contradicts itself: {'; '.join(wrong)}.",
                ask(
                    "action",
                    "correct the record in catalog/images.json by `ultracluster software record` on one node",
                ),
            )


def _advisories(cluster: Cluster, by: str, words: str) -> Breaches:
    groups: dict[str, list[str]] = {}
    known: dict[str, Image] = {}
    for name, found in _images(cluster).items():
        if found.image:
            known[found.image.id] = found.image
            groups.setdefault(found.image.id, []).append(name)
    for image in known.values():
        names = groups[image.id]
        for note in image.advisories:
            if note.by == by:
                better = _newest_sound(image)
                boot = "boots" if len(names) == 1 else "boot"
                yield at(*place_of_image(cluster, names[0])).breach(
                    f"{', '.join(names)} {boot} {image.id}, which {words}: {note.text} "
                    f"({source(note.source)}).",
                    _better(place_of_image(cluster, names[0]), better),
                )


def _newest_sound(image: Image) -> Image | None:
    better = newest(family=image.family, arch=image.arch, os=image.os, kubernetes=image.kubernetes)
    return better if better and not better.advisories else None


def _boots(cluster: Cluster) -> tuple[GroupBoot, ...]:
    try:
        return first_boot(cluster.environment)
    except (UnknownReleaseError, InvalidLockError):
        return ()  # reported by SOF001 and SOF010


def _images(cluster: Cluster) -> dict[str, NodeImage]:
    try:
        return {name: node_image(cluster.environment, name) for name in cluster.groups}
    except InvalidLockError:
        return {}  # reported by SOF010


def _each(fits: list[Fit]) -> str:
    return "; ".join(f"{fit.component} ({fit.detail})" for fit in fits)


def _remedy(cluster: Cluster, boot: GroupBoot) -> Remedy:
    """The nearest that works: a newer image, or the release of this family."""
    if cluster.environment.software.strict:
        return anywhere({("software", "strict"): False}).noting("or a release made for this image")
    better = (
        newest(family=boot.image.family, arch=boot.image.arch, kubernetes=boot.image.kubernetes)
        if boot.image
        else None
    )
    if better and boot.image and better.id != boot.image.id:
        return _better(place_of_image(cluster, boot.group), better)
    return _release_for(cluster.traits.software_family)


def _better(path: YamlPath, better: Image | None) -> Remedy:
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
        return ask("fact", "a release whose `families` have it (`ultracluster software show`)")
