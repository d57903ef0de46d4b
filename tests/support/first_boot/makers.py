"""What the makers serve: packages by name, and stand-ins of their files with the digests of the release.

`makers/packages` has what installing a package leaves on a node, `makers/files` what their archives hold.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zipfile
from typing import Any

from first_boot.contents import PRESENT
from first_boot.image_software import place
from first_boot.sandbox import MAKERS, Sandbox

from ultracluster.catalog.images import Image, efa_installers
from ultracluster.software import Component, Release

_PROLOGUE = """\
program() {
  mkdir -p "$ULTRACLUSTER_ROOT${1%/*}"
  { echo '#!/usr/bin/env bash' && printf 'echo %q\\n' "${@:2}"; } >"$ULTRACLUSTER_ROOT$1"
  chmod +x "$ULTRACLUSTER_ROOT$1"
}
plain=${VERSION#*:} plain=${plain%%-*}
"""
_LUSTRE_MODULE = 'echo 2.15.6 >"$FAKE/modules/lustre"\necho 1.2.2 >"$FAKE/modules/kefalnd"\n'


def offer_packages(box: Sandbox, release: Release, *, kernel: str, lustre_module: bool) -> None:
    """Make every package that the release names installable, in the versions that it names.

    Args:
        kernel: of the node.
        lustre_module: whether repositories have the Lustre client for this kernel.
    """

    def offers(name: str, effect: str) -> None:
        (box.fake / "packages.d" / name).write_text(_PROLOGUE + effect)

    versions: dict[str, set[str]] = {}
    for component in release.components.values():
        for entry in component.packages:
            for name in entry.names:
                if name.startswith("lustre-client"):
                    continue
                # apt writes NAME=VERSION, dnf NAME-VERSION-RELEASE
                parts = re.fullmatch(r"(.+?)(?:=(.+)|-([0-9][^-]*-[^-]+))?", name)
                assert parts
                offers(parts[1], "")
                if version := parts[2] or parts[3]:
                    versions.setdefault(parts[1], set()).add(version)
    for name, offered in versions.items():
        (box.fake / "packages.d" / f"{name}.versions").write_text("\n".join(sorted(offered)) + "\n")
    for file in (MAKERS / "packages").iterdir():
        offers(file.name, file.read_text())
    if lustre_module:
        offers(f"lustre-client-modules-{kernel}", _LUSTRE_MODULE)
        offers("lustre-client", _LUSTRE_MODULE + (MAKERS / "packages/lustre-client-utils").read_text())


def serve_files(box: Sandbox, release: Release, *, cluster: dict[str, Any], image: Image) -> None:
    """Put stand-ins of every file and key of the release where the node fetches them.

    Args:
        image: of the node; an installer puts its files where they are on such a system.
    """
    web, digests, s3 = (box.fake / name for name in ("web", "digests", "s3"))
    for folder in (web, digests, s3):
        folder.mkdir()
    mirror = str(cluster.get("mirror") or "").removeprefix("s3://")
    locked = cluster.get("locked") or {}
    for name, component in release.components.items():
        for artifact in component.artifacts:
            content = _stand_in(name, component, artifact.name, image)
            (web / artifact.name).write_bytes(content)
            # GitHub serves an archive by its tag
            (web / (artifact.url or artifact.name).rpartition("/")[2]).write_bytes(content)
            claimed = (
                ":".join(artifact.digest)
                if artifact.digest
                else locked.get("files", {}).get(artifact.name, "")
            )
            algorithm, _, digest = claimed.partition(":")
            if not digest:
                continue
            own = hashlib.new(algorithm, content).hexdigest()
            (digests / f"{own}.{algorithm}sum").write_text(f"{digest}\n")
            if mirror:
                mirrored = s3 / mirror / release.release / digest[:16] / artifact.name
                mirrored.parent.mkdir(parents=True, exist_ok=True)
                mirrored.write_bytes(content)
        for entry in component.packages:
            if (repository := entry.repository) and repository.key_url:
                fingerprint = repository.key_fingerprint or locked.get("keys", {}).get(
                    repository.key_url, "0" * 40
                )
                (web / repository.key_url.rpartition("/")[2]).write_text(f"KEY {fingerprint}\n")


def _stand_in(component: str, part: Component, name: str, image: Image) -> bytes:
    """What a maker's file is replaced by: its installer does what the maker's would leave behind."""
    if name.endswith((".deb", ".rpm")):
        return name.encode()
    folder = MAKERS / "files" / component
    values = {"VERSION": part.version, "SHORT": ".".join(part.version.split(".")[:2])}
    if component == "efa-installer":
        values |= _efa_installer(part, image)
    files: dict[str, str] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            text = re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], file.read_text())
            files[file.relative_to(folder).as_posix()] = text
    # each with bytes, and so a digest, of its own
    files["NAME"] = name
    top = name.partition(".tar")[0] if component != "efa-installer" else "aws-efa-installer"
    return _zip(files) if name.endswith((".zip", ".whl")) else _tar(files, top)


def _efa_installer(part: Component, image: Image) -> dict[str, str]:
    """What this version of the installer brings, and where it puts it on this system."""
    row = efa_installers().get(part.version, {})

    def brought(field: str, name: str) -> str:
        return row.get(field) or part.provides.get(name) or PRESENT[field]

    plugin, libfabric = brought("aws_ofi_nccl", "aws-ofi-nccl"), brought("libfabric", "libfabric")
    return {
        "EFA_MODULE": brought("efa_kmod", "efa"),
        "LIBFABRIC": libfabric,
        "LIBFABRIC_PATH": place(image, "libfabric", libfabric),
        "PLUGIN": plugin,
        "PLUGIN_PATH": place(image, "aws_ofi_nccl", plugin),
    }


def _tar(files: dict[str, str], top: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"{top}/{path}")
            member.size = len(text.encode())
            member.mode = 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


def _zip(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return data.getvalue()
