"""Archives of the packages that the shipped releases name, and stand-ins of their files, for Ubuntu.

Names and versions are the releases', dependencies are in release_packages.json. Beside each pinned version
is a newer one.
"""

from __future__ import annotations

import io
import json
import platform
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from debian_archive import Key, Package, make_archive
from debian_root import SCRIPTS

KERNEL = platform.release()
KNOWN: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("release_packages.json").read_text())[
    "packages"
]
SYSTEMS = {"ubuntu22.04": "jammy", "ubuntu24.04": "noble"}
LOCKS: dict[str, dict[str, Any]] = {
    path.stem: lock
    for path in sorted((SCRIPTS / "releases").glob("*.lock"))
    if "ubuntu24.04" in json.dumps(lock := json.loads(path.read_text()))
}
EFA_INSTALLER = """#!/bin/sh
set -e
apt-get install --yes ./DEBS/*.deb
echo '# EFA installer version: {version}' >/opt/amazon/efa_installed_packages
"""


def known(name: str, version: str) -> Package:
    """The package as release_packages.json has it; one that is not there depends on nothing."""
    entry = next((KNOWN[key] for key in KNOWN if key.replace("{kernel}", KERNEL) == name), {})
    upstream = version.rpartition(":")[2].partition("-")[0]

    def filled(text: str) -> str:
        return text.format(version=version, upstream=upstream, kernel=KERNEL)

    return Package(
        name=name,
        version=version,
        depends=filled(entry.get("depends", "")),
        files={filled(path): filled(text) for path, text in entry.get("files", {}).items()},
        postinst=entry.get("postinst", ""),
    )


def named(names: list[str]) -> list[Package]:
    """What an entry of a release names, as an archive has it, and newer ones of what is pinned."""
    packages: list[Package] = []
    for name, _, version in (name.partition("=") for name in names):
        if name == "lustre-client-modules-aws":
            packages += [known(f"lustre-client-modules-{KERNEL}", "2.15.6-1fsx23")]
            packages += [known(one, "2.15.6-1fsx23") for one in (name, "lustre-client-utils")]
        elif version:
            # The scripts' own patterns: -* is any revision, * any suffix.
            packages.append(known(name, version.replace("-*", "-1").replace("*", "-ec8cd5e8b")))
            packages.append(
                known(name, f"{version.partition(':')[0]}:99.0-1" if ":" in version else "99.0-1")
            )
        else:
            packages.append(known(name, "13.2.1-1"))
    return packages


def efa_installer(folder: Path, name: str, version: str) -> None:
    work = folder / "efa"
    (work / "DEBS").mkdir(parents=True)
    module = {f"lib/modules/{KERNEL}/updates/dkms/efa.ko": "version=3.0.0\n"}
    info = {"opt/amazon/efa/bin/fi_info": "#!/bin/sh\necho 'libfabric: 2.6.0amzn1.0'\n"}
    for package in [
        Package(name="efa", version="3.0.0-1.amzn1", depends="dkms", files=module),
        Package(name="libfabric1-aws", version="2.6.0amzn1.0"),
        Package(
            name="libfabric-aws-bin",
            version="2.6.0amzn1.0",
            depends="libfabric1-aws (= 2.6.0amzn1.0)",
            files=info,
        ),
    ]:
        package.build(work / "DEBS")
    script = tarfile.TarInfo("aws-efa-installer/efa_installer.sh")
    text = EFA_INSTALLER.format(version=version).encode()
    script.size, script.mode = len(text), 0o755
    with tarfile.open(folder / name, "w:gz") as archive:
        archive.addfile(script, io.BytesIO(text))
        archive.add(work / "DEBS", "aws-efa-installer/DEBS")
    shutil.rmtree(work)


def place_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}".rstrip("/")


def entries(lock: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Component, its name first, and each of its entries of packages for Ubuntu on this processor."""
    for name, component in lock["components"].items():
        for entry in component.get("packages", []):
            if platform.machine() in entry["arch"] and set(entry["os"]) & set(SYSTEMS):
                yield name, component, entry


def serve(folder: Path, key: Key) -> None:
    """The archives and files of all releases."""
    archives: dict[tuple[str, str], dict[tuple[str, str], Package]] = defaultdict(dict)
    system = [known(name, "1.0") for name in ("libcap2-bin", "nvidia-driver-580-open")]
    (folder / "files").mkdir(parents=True)
    for lock in LOCKS.values():
        for _, _, entry in entries(lock):
            repository = entry.get("repository")
            if not repository:
                system += [known(name, "1.7-1") for name in entry["names"]]
                continue
            archive = archives[place_of(repository["url"]), repository["suite"]]
            archive |= {(one.name, one.version): one for one in named(entry["names"])}
        version = lock["components"]["enroot"]["version"]
        for artifact in lock["components"]["enroot"]["artifacts"]:
            name = artifact["name"].partition("_")[0]
            if artifact["name"].endswith(".deb") and not (folder / "files" / artifact["name"]).exists():
                built = known(name, f"{version}-1").build(folder)
                built.rename(folder / "files" / artifact["name"])
        efa = lock["components"]["efa-installer"]
        for artifact in efa["artifacts"]:
            if not (folder / "files" / artifact["name"]).exists():
                efa_installer(folder / "files", artifact["name"], efa["version"])
    for (place, suite), packages in archives.items():
        make_archive(folder / place, list(packages.values()), key, suite=suite)
    make_archive(folder / "system", list({one.name: one for one in system}.values()), key, origin="Ubuntu")
