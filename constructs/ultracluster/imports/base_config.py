"""Lifecycle scripts of awslabs/awsome-distributed-ai (base-config and Extensions, commit 95b939c): switches
of config.py, people of shared_users, and what is done instead of each script."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ultracluster.config.plain_text import one_line
from ultracluster.imports.ledger import Ledger, Part
from ultracluster.imports.outcome import Drafted
from ultracluster.imports.reasons import reasons

_NAMES = ("Config", "ObservabilityConfig", "SssdConfig")
_SECRETS = ("ldap_default_authtok",)
_MOST_USERS = 5000
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
SCRIPTS = frozenset({
    "add_users.sh", "apply_hotfix.sh", "config.py", "epilog.sh", "hold-lustre-client.sh",
    "mock-gpu-driver-deb.sh", "lifecycle_script.py", "mount_fsx.sh", "mount_fsx_openzfs.sh",
    "headnode_notification.sh", "headnode_setup.sh", "install_dcgm_exporter.sh", "install_efa_exporter.sh",
    "install_node_exporter.sh", "install_observability.py", "install_otel_collector.sh",
    "install_slurm_exporter.sh", "stop_observability.py", "on_create.sh", "on_create_main.sh", "prolog.sh",
    "setup_mariadb_accounting.sh", "setup_rds_accounting.sh", "setup_sssd.py", "setup_user_associations.sh",
    "start_slurm.sh", "create_users.sh", "enable_slurm_log_rotation.sh", "fsx_auto_detect.sh",
    "fsx_ubuntu.sh", "gen-keypair-ubuntu.sh", "install_ansible.sh", "install_docker.sh",
    "install_enroot_pyxis.sh", "motd.sh",
    "mount-s3.sh", "pam_adopt_cgroup_wheel.sh", "slurm_fix_plugstackconf.sh", "ssh-to-compute.sh",
    "create_posix_users.sh", "setup_home_dirs.sh", "setup_slurm_accounts.sh", "setup_ssh_keys.sh",
    "detect_node.sh", "setup_observability.sh", "run_extensions.sh", "lifecycle.sh", "dcgm.sh",
    "health_check_orchestrator.sh", "prolog_dcgm.sh", "hyperpod-precheck.py", "validate-config.py",
    "create_config.sh", "easy-ssh.sh", "patching-backup.sh", "automate-cluster-creation.sh",
    "slurm_lifecycle.sh", "dump_cluster_nodes_info.py",
})  # fmt: skip
"""Names of the scripts that it ships."""


def settings(text: str) -> dict[str, Any] | None:
    """Values of the classes of config.py, which is read and never run; None where it has none of them."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: dict[str, Any] = {}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.name not in _NAMES:
            continue
        values: dict[str, Any] = {}
        for line in node.body:
            if isinstance(line, ast.Assign) and len(line.targets) == 1:
                target = line.targets[0]
                if isinstance(target, ast.Name) and target.id not in _SECRETS:
                    values[target.id] = _literal(line.value)
        found[node.name] = values
    return found or None


def people(text: str) -> dict[str, Any] | None:
    """Lines of shared_users.txt, `name,uid,home`; None where it has none."""
    rows = [line.split(",") for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = [
        {"username": row[0].strip(), "uid": row[1].strip(), "home": row[2].strip() if row[2:] else None}
        for row in rows
        if len(row) in (2, 3)
    ]
    return {"users": found} if found and len(found) == len(rows) else None


def is_people(data: Mapping[str, Any]) -> bool:
    """Return whether it is a shared_users.yaml."""
    users: object = data.get("users")
    if not isinstance(users, list) or not users:
        return _grouped(data)
    people = cast("list[object]", users)
    return all(isinstance(one, Mapping) and "username" in one for one in people)


def is_observability(data: Mapping[str, Any]) -> bool:
    """Return whether it is the config.json of the extension for observability."""
    return "prometheus_remote_write_url" in data


def add(draft: Drafted, where: str, data: Mapping[str, Any]) -> None:
    """What one of these files says, on top of what the cluster's own file said.

    Args:
        where: name of the file.
    """
    notes = Ledger(reasons=reasons("base config"))
    part = notes.part(data, where)
    if is_people(data):
        _users(part, draft, notes)
    elif any(name in data for name in _NAMES):
        _switches(part, draft, notes)
    if notes.wrong:
        draft.ledger.wrong += notes.wrong
    else:
        draft.ledger.rows += notes.close()


def add_scripts(draft: Drafted, names: Iterable[str]) -> None:
    """Rows for scripts of a folder: those of base-config are known, others are somebody's own."""
    shown = sorted(set(names))
    own = [one for one in shown if one.rpartition("/")[2] not in SCRIPTS]
    if len(own) < len(shown):
        draft.ledger.left(
            "scripts of awsome-distributed-ai", "nodes run the steps of their software release instead",
            "docs/releases.md has what it installs: accounts of people, mounts, containers, Slurm's "
            "accounting, health checks, exporters; changes that you made in them become steps of yours",
        )  # fmt: skip
    for name in own:
        draft.ledger.left(
            one_line(name), "the script is none of awsome-distributed-ai's, and does not run here",
            "make a node step of it (docs/own-steps.md)",
        )  # fmt: skip


def _switches(part: Part, draft: Drafted, notes: Ledger) -> None:
    config = part.part("Config")
    if config.flag("enable_docker_enroot_pyxis") is False:
        notes.changed(
            config.place("enable_docker_enroot_pyxis"),
            "containers are one of the things that nodes are made for, and cannot be switched off",
            "nothing to do: Docker, Enroot and Pyxis are steps of the release",
        )
    if config.flag("enable_pam_slurm_adopt"):
        draft.data["access"] = {"node_ssh": "jobs"}
    bucket, mounted = config.text("s3_bucket"), config.flag("enable_mount_s3")
    if mounted and bucket:
        storage: dict[str, Any] = draft.data.setdefault("storage", {})
        storage.setdefault("job_buckets", []).append({"bucket": bucket})
        notes.changed(
            config.place("enable_mount_s3"), "a bucket is not mounted: jobs reach it through the API of S3",
            "a data repository of storage.lustre is the faster way; write: true lets jobs write",
        )  # fmt: skip
    config.any("enable_fsx_openzfs")  # fsx_openzfs_dns_name says which
    observed = config.flag("enable_observability")
    if not observed:
        part.any("ObservabilityConfig")
    else:
        notes.left(config.place("enable_observability"), *notes.reasons["enable_observability"])
    if not config.flag("enable_sssd"):
        part.any("SssdConfig")
        return
    notes.left(config.place("enable_sssd"), *notes.reasons["SssdConfig"])


def _users(part: Part, draft: Drafted, notes: Ledger) -> None:
    found: dict[str, Any] = {}
    rows = part.parts("users")
    for group in part.parts("groups"):
        group.any("name")
        rows += group.parts("users")
    if len(rows) > _MOST_USERS:
        notes.refuse(part.where, f"has more than {_MOST_USERS} people", "use a directory: docs/directory.md")
        return
    for row in rows:
        name, uid = row.needed("username", "name the person") or "", row.number("uid")
        home = row.text("home")
        if not _USER.fullmatch(name) or uid is None:
            notes.left(
                row.where, f"{one_line(name)!r} with the id {uid} is no account that nodes can make",
                "small letters, digits, - and _, at most 32, and a whole number",
            )  # fmt: skip
            continue
        if name in found:
            notes.left(row.where, f"{name} is there twice, and the first counts", "choose one user id")
            continue
        found[name] = {"uid": uid}
        if home and home.rstrip("/") != f"/home/{name}":
            notes.changed(
                row.place("home"), "homes are at /home on OpenZFS, or in the folder home of Lustre",
                "copy what is in the old ones",
            )  # fmt: skip
    if not found:
        return
    draft.data["users"] = found
    notes.assumed(
        "users", "the file has no keys, and nobody's role",
        "write `keys` for SSH through a session, and `principals`: who may open a session as whom",
    )  # fmt: skip


def _grouped(data: Mapping[str, Any]) -> bool:
    groups = data.get("groups")
    if not isinstance(groups, list) or not groups:
        return False
    return all(
        isinstance(group, Mapping) and isinstance(cast("Mapping[str, Any]", group).get("users"), list)
        for group in cast("list[object]", groups)
    )


def _literal(node: ast.expr) -> Any:
    """A value that is written out; a text for whatever is worked out."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return "worked out by the program"
