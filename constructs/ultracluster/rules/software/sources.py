"""Rules on the software release: sources of what images lack, and the digests that nodes verify it by."""

from __future__ import annotations

from ultracluster.catalog.images import Image
from ultracluster.config import Environment
from ultracluster.config.environment import Software
from ultracluster.config.remedy import ask
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import SOF
from ultracluster.rules.sources import RELEASES
from ultracluster.software import InvalidLockError, UnknownReleaseError
from ultracluster.software.environment_lock import environment_lock, lock_file_of
from ultracluster.software.first_boot import first_boot
from ultracluster.software.fit import Fit
from ultracluster.software.installing import Lack

_RELEASE = ("release",)


@SOF.warning(
    4,
    f"VPC User Guide: gateway endpoints; {RELEASES}; this package: catalog/images.json",
    by_hand="ultracluster software mirror --bucket <bucket> --release <release> --dry-run",
)
def closed_network_has_source(software: Software, environment: Environment) -> Breaches:
    """Without a route to the internet, nodes have another source for what their image lacks."""
    lost = _lost(environment, "unreachable", certain=False)
    if not lost:
        return
    name, words = software.release, _in_words(lost)
    if software.mirror is None:
        yield at().breach(
            f"egress is closed and there is no mirror. Of release {name}, nodes have no source for {words}.",
            ask("action", "mirror: s3://<bucket>/<prefix> after `ultracluster software mirror`"),
        )
    else:
        yield at("mirror").breach(
            f"nodes download from the mirror only, and release {name} does not record which packages the "
            f"mirror holds. Nodes have no source for {words}.",
            ask(
                "action",
                f"`ultracluster software mirror --release {name}`, which records them in the lock file",
            ),
        )


@SOF.warning(5, RELEASES, by_hand="ultracluster software show <release>", settles=True)
def optional_downloads_locked(software: Software, environment: Environment) -> Breaches:
    """Optional downloads of nodes are locked by a digest, repositories by their key."""
    lost = _lost(environment, "unlocked", certain=False)
    if lost:
        yield at(*_RELEASE).breach(
            f"nodes refuse what they cannot verify, and release {software.release} has no digest "
            f"or key for {_in_words(lost)}.",
            ask("action", f"`ultracluster software lock --for {environment.asked_as}`"),
        )


@SOF.error(
    9,
    f"{RELEASES}; this package: catalog/images.json",
    "2026-11-22",
    by_hand="ultracluster software show <release>",
)
def required_downloads_locked(software: Software, environment: Environment) -> Breaches:
    """Required downloads of nodes are locked by a digest, repositories by their key."""
    lost = _lost(environment, "unlocked", certain=True)
    if lost:
        yield at(*_RELEASE).breach(
            f"nodes refuse what they cannot verify, and release {software.release} has no digest "
            f"or key for {_in_words(lost)}. The nodes would fail.",
            ask("action", f"`ultracluster software lock --for {environment.asked_as}`"),
        )


@SOF.error(
    10,
    "this package: docs/images.md, environments/<name>.lock",
    "2026-11-22",
    by_hand="ultracluster software lock --for <environment>",
)
def environment_lock_valid(software: Software, environment: Environment) -> Breaches:
    """The environment's lock is intact and belongs to its release."""
    command = f"`ultracluster software lock --for {environment.asked_as}`"
    again = ask("action", command)
    file = lock_file_of(environment.file)
    # what was trusted once is never overwritten
    afresh = ask("action", f"remove it, or restore the committed one; then {command}")
    try:
        lock = environment_lock(file)
    except InvalidLockError as error:
        why = " ".join(str(error).split())
        yield at().breach(f"the lock of the environment is damaged ({why}).", afresh)
        return
    faults = lock.faults(environment.name, software.release) if lock else []
    if lock and faults:
        foreign = lock.environment != environment.name
        yield at(*_RELEASE).breach(
            f"{file} cannot be used here: {'; '.join(faults)}.", afresh if foreign else again
        )


def _lost(
    environment: Environment, lack: Lack, *, certain: bool
) -> dict[str, list[tuple[Fit, Image | None]]]:
    """By component: what nodes would lack for this reason, with the image of each.

    Args:
        certain: only what surely ends a node; else all the rest.
    """
    try:
        boots = first_boot(environment)
    except (UnknownReleaseError, InvalidLockError):
        return {}  # the rules on release and lock report it
    found: dict[str, list[tuple[Fit, Image | None]]] = {}
    for boot in boots:
        for fit in boot.fits:
            if fit.lack == lack and (fit.outcome == "refuses" and fit.certain) is certain:
                found.setdefault(fit.component, []).append((fit, boot.image))
    return found


def _in_words(lost: dict[str, list[tuple[Fit, Image | None]]]) -> str:
    """Each component with what the image has of it: `gdrcopy (absent on ...), nvidia-fs (not known ...)`."""
    clauses: list[str] = []
    for name, rows in lost.items():
        fit, image = rows[0]
        state = "not known to be on" if fit.outcome == "kept" else "lacking on"
        harm = "" if fit.need == "required" else ", without which nodes join degraded"
        clauses.append(f"{name} ({state} {image.id if image else 'the image'}{harm})")
    return "; ".join(clauses)
