"""File systems that exist, as the `storage` of an environment names them."""

from __future__ import annotations

import re
from typing import Any

from ultracluster.imports.ledger import Ledger
from ultracluster.imports.surroundings import FileSystem, Surroundings

_WORKING = ("AVAILABLE", "UPDATING")


def named(
    ledger: Ledger, where: str, around: Surroundings | None, text: str, path: str
) -> tuple[FileSystem, dict[str, Any]] | None:
    """A file system by its id or DNS name, as `deployment: existing`.

    None where the account was not asked. Where it was, and the file system cannot be named, a row says why.

    Args:
        where: place of the name in what is imported.
        path: where nodes mount it.
    """
    if around is None:
        return None
    system = around.file_system(text)
    if system is None:
        why = around.unread.get("file systems", "it is not in the VPC of the nodes")
        ledger.left(where, f"{text} could not be read: {why}", "write `storage` with deployment existing")
        return None
    if system.kind == "other":
        ledger.left(
            where, f"{system.id} is neither Lustre nor OpenZFS",
            "a node step of your own may mount it (docs/own-steps.md)",
        )  # fmt: skip
        return None
    if not system.dns_name or (system.kind == "lustre" and not system.mount_name):
        ledger.left(
            where, f"{system.id} is {system.state}, and has no address yet",
            "import it again when it is there, or write it by hand",
        )  # fmt: skip
        return None
    if not system.security_group:
        why = around.unread.get("network interfaces", "it has no network interface")
        ledger.left(
            where, f"the security group of {system.id} could not be read: {why}",
            f"write storage.{system.kind} (deployment existing) with it",
        )  # fmt: skip
        return None
    if system.state not in _WORKING:
        ledger.changed(
            where, f"{system.id} is {system.state}", "look at it in the console of FSx before you deploy"
        )
    if system.kind == "lustre":
        return system, {
            "deployment": "existing",
            "id": system.id,
            "dns_name": system.dns_name,
            "mount_name": system.mount_name,
            "security_group_id": system.security_group,
            "mount_path": path,
            **({"efa": True} if system.efa else {}),
        }
    return system, {
        "deployment": "existing",
        "id": system.id,
        "dns_name": system.dns_name,
        **({"volume_id": system.volume} if system.volume else {}),
        "security_group_id": system.security_group,
        "mount_path": path,
    }


def add_lustre(storage: dict[str, Any], lustre: dict[str, Any], name: str) -> None:
    """The first file system, or a further one by a name made of this."""
    if "lustre" not in storage:
        storage["lustre"] = lustre
        return
    further: dict[str, Any] = storage.setdefault("further_lustre", {})
    word = re.sub(r"[^a-z0-9]", "", name.lower()).lstrip("0123456789")[:14] or "lustre"
    further[word if word not in further else f"{word}{len(further)}"] = lustre


def add(
    storage: dict[str, Any], ledger: Ledger, where: str, around: Surroundings | None, text: str, path: str
) -> bool:
    """Name a file system in `storage`, once; False where that cannot be done."""
    everyone = [storage.get("lustre"), storage.get("openzfs"), *storage.get("further_lustre", {}).values()]
    known = around.file_system(text) if around else None
    if known and any(one and one.get("id") == known.id for one in everyone):
        return True
    found = named(ledger, where, around, text, path)
    if found is None:
        return around is not None
    system, settings = found
    if system.kind == "lustre":
        add_lustre(storage, settings, path.strip("/").replace("/", ""))
    elif "openzfs" in storage:
        ledger.left(
            where, f"one OpenZFS is mounted, {storage['openzfs']['id']}, and {system.id} is another",
            "a node step of your own may mount it (docs/own-steps.md)",
        )  # fmt: skip
    else:
        storage["openzfs"] = settings
    return True
