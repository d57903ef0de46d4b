"""Rules on: root squash of file systems."""

from __future__ import annotations

import re

from ultracluster.catalog.fsx import limits
from ultracluster.config.lustre import NewLustre
from ultracluster.config.remedy import DROP, ask, drop, whole, write
from ultracluster.config.storage import NewOpenZfs
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import FSX, SLURM
from ultracluster.rules.sources import BOTOCORE


@FSX.error(30, f"{BOTOCORE} fsx: LustreRootSquashConfiguration")
def root_squash_ids(settings: NewLustre) -> Breaches:
    """Root squash changes both user and group, or neither."""
    squash = settings.root_squash
    if squash and bool(squash.uid) != bool(squash.gid):
        zero, other = ("uid", squash.gid) if squash.uid == 0 else ("gid", squash.uid)
        yield at("root_squash", zero).breach(
            f"{squash.uid}:{squash.gid}: zero is root itself. FSx takes 0:0 (off) or two ids above "
            "zero, and refuses one of each.",
            write(other) | whole(DROP),
        )


@FSX.error(31, f"{BOTOCORE} fsx: LustreNoSquashNid")
def root_squash_clients(settings: NewLustre) -> Breaches:
    """Each client that root squash exempts is an NID of Lustre (10.0.1.6@tcp)."""
    for index, nid in enumerate(settings.root_squash.exempt_clients if settings.root_squash else ()):
        if not _is_nid(nid):
            address = nid.partition("@")[0]
            yield at("root_squash", "exempt_clients", index).breach(
                f"`{nid}` is not a client: FSx takes an IPv4 address, each part a number from 0 "
                "to 255 or a range in brackets, and `@tcp`.",
                write(f"{address}@tcp")
                if _is_nid(f"{address}@tcp")
                else ask("fact", "a client such as 10.0.1.6@tcp or 10.0.[2-10].[1-255]@tcp"),
            )


@FSX.warning(70, "lifecycle_scripts/steps/homes.sh; exports(5), root_squash", "2026-11-22", kinds=SLURM)
def homes_without_root(settings: NewOpenZfs) -> Breaches:
    """Nodes can make homes on an OpenZFS file system with root squash."""
    if settings.root_squash and not settings.root_squash.exempt_clients:
        yield at("root_squash").breach(
            "no client's root may make folders: on a fresh file system the image's users get no homes, and "
            "their sessions begin in /.",
            drop()
            | ask(
                "decision",
                "deploy without it first, and acknowledge this once the homes are there; or name the network "
                "of a controller that makes them in exempt_clients",
            ),
        )


def _is_nid(text: str) -> bool:
    if not re.fullmatch(limits().nid_pattern, text):
        return False
    for part in text.removesuffix("@tcp").split("."):
        ends = re.fullmatch(r"(\d{1,3})|\[(\d{1,3})(?:-(\d{1,3}))?\]", part)
        if not ends:
            return False
        numbers = [int(end) for end in ends.groups() if end]
        if numbers != sorted(numbers) or numbers[-1] > 255:
            return False
    return True
