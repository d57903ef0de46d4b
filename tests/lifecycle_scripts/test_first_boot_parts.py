"""The parts of a rehearsal refuse what the world refuses: packages, installers, builds, users, systems."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from first_boot.contents import UnknownSystemError, Variant, contents
from first_boot.faults import Faults
from first_boot.hardware import lay_hardware
from first_boot.judge import of_newer
from first_boot.makers import offer_packages, serve_files
from first_boot.rehearsal import Outcome
from first_boot.sandbox import MAKERS, Sandbox
from first_boot.world import os_release

from ultracluster.catalog import instance_types
from ultracluster.catalog.images import image
from ultracluster.software.lock import load_release

UBUNTU = image("hyperpod-slurm-ubuntu22.04-x86_64-20260917")
PACKAGES = """\
apt-get install {locked}
! apt-get install libnccl2=9.99.9-1+nosuchversion
! apt-get install libnccl3
"""
USERS = """\
groupadd --gid 4999 train
useradd --uid 4999 --gid train --shell /bin/bash --no-create-home train
[[ $(getent passwd train) == train:x:4999:4999::/home/train:/bin/bash ]]
! useradd --uid 4999 --gid train other
! useradd --gid nobodys other
mkdir -p "$ULTRACLUSTER_ROOT/home/.new"
! chown -R other: "$ULTRACLUSTER_ROOT/home/.new"
chown -R train: "$ULTRACLUSTER_ROOT/home/.new"
mv "$ULTRACLUSTER_ROOT/home/.new" "$ULTRACLUSTER_ROOT/home/train"
[[ $(stat --format %u "$ULTRACLUSTER_ROOT/home/train") == 4999 && $(id --groups --name train) == train ]]
"""


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    """An empty node of Ubuntu."""
    made = Sandbox(tmp_path)
    made.write("etc/passwd", "root:x:0:0::/root:/bin/bash\n")
    made.write("etc/group", "root:x:0:\n")
    for name in ("calls", "changes"):
        made.tell(name, "")
    return made


def ends(box: Sandbox, text: str, *, folder: Path | None = None) -> tuple[int, str]:
    """Status and words of a script; a line that begins with `!` must fail."""
    lines = (
        f"if {line[2:]}; then exit 99; fi" if line.startswith("! ") else line for line in text.splitlines()
    )
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        env=box.environment(),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def test_packages_are_offered_in_the_versions_of_the_release_only(box: Sandbox) -> None:
    release = load_release("hyperpod-slurm-2026.09")
    offer_packages(box, release, kernel="6.8.0-1063-aws", lustre_module=True)
    locked = release.components["nccl"].packages[0].names[0]
    status, said = ends(box, PACKAGES.format(locked=locked))
    assert status == 0, said
    assert "Version '9.99.9-1+nosuchversion' for 'libnccl2' was not found" in said
    assert "unable to locate package libnccl3" in said


def test_users_groups_and_owners_are_those_of_the_sandbox(box: Sandbox) -> None:
    status, said = ends(box, USERS)
    assert status == 0, said
    assert "UID 4999 is not unique" in said and "invalid user: 'other:'" in said


@pytest.mark.parametrize(
    ("component", "command", "says"),
    [
        ("pyxis", "CPPFLAGS=-I/nowhere make install libdir=$PWD/staged", "slurm/spank.h"),
        ("nccl-tests", "make MPI=1 CUDA_HOME=/nowhere BUILDDIR=$PWD/staged", "nvcc"),
        ("gdrcopy", "make prefix=$PWD/staged CUDA=/nowhere lib lib_install", "cuda.h"),
        ("gdrcopy", "make -C tests CUDA=/nowhere gdrcopy_sanity", "cuda.h"),
        ("aws-ofi-nccl", "bash configure --prefix=/opt/own --with-libfabric=/nowhere", "rdma/fabric.h"),
        ("aws-ofi-nccl", "bash configure --prefix=/opt/own --with-mpi=/usr", "unrecognized option"),
        ("aws-ofi-nccl", "make install DESTDIR=$PWD/staged", "no makefile found"),
        ("efa-installer", "bash efa_installer.sh --minimal", "nobody answers"),
        ("efa-installer", "bash efa_installer.sh -y --without-kmod", "invalid option"),
        ("lustre-efa-setup", "bash setup.sh --optimized-for-speed", "Unknown option"),
        ("lustre-efa-setup", "bash setup.sh", "kefalnd"),
    ],
)
def test_a_stand_in_refuses_what_its_maker_would(
    box: Sandbox, tmp_path: Path, component: str, command: str, says: str
) -> None:
    folder = tmp_path / "source"
    for file in (MAKERS / "files" / component).rglob("*"):
        target = folder / file.relative_to(MAKERS / "files" / component)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.is_file():
            target.write_bytes(file.read_bytes())
    status, said = ends(box, command, folder=folder)
    assert status not in (0, 99) and says in said, said
    assert not (folder / "staged").exists()


def test_dkms_builds_no_other_version_than_its_sources(box: Sandbox) -> None:
    box.write("usr/src/gdrdrv-2.6/dkms.conf", 'PACKAGE_NAME="gdrdrv"\nPACKAGE_VERSION="2.5"\n')
    status, said = ends(box, "dkms install --force -m gdrdrv -v 2.6")
    assert status == 1 and "dkms.conf is not of gdrdrv 2.6" in said


def test_the_efa_installer_puts_its_files_where_they_are_on_the_system(box: Sandbox) -> None:
    """By the record: lib64 on Amazon Linux; and the devices of its driver are there afterwards."""
    release = load_release("parallelcluster-3.16.3")
    kind = instance_types()["p5.48xlarge"]
    linux = image("parallelcluster-3.16.3-alinux2023-x86_64")
    lay_hardware(box, kind=kind, efa=32, striped=False, faults=Faults())
    assert not (box.root / "sys/class/infiniband").exists()
    serve_files(box, release, cluster={}, image=linux)
    archive = next((box.fake / "web").glob("aws-efa-installer-*.tar.gz"))
    command = f"tar -xf {archive}\ncd aws-efa-installer\nbash efa_installer.sh -y --mpi=openmpi4"
    status, said = ends(box, command, folder=box.root)
    assert status == 0, said
    assert (box.root / "opt/amazon/ofi-nccl/lib64/libnccl-net-ofi.so").read_text().endswith(" 1.22.0\0")
    assert (box.fake / "modules/efa").read_text() == "3.3.1\n"
    drivers = (box.root / "sys/class/infiniband").glob("*/device/driver")
    assert [os.path.realpath(driver) for driver in drivers] == [f"{box.root}/sys/bus/pci/drivers/efa"] * 32


@pytest.mark.parametrize(
    ("os_", "expected"),
    [("ubuntu26.04", ("ubuntu", "26.04")), ("rhel9", ("rhel", "9")), ("al2023", ("amzn", "2023"))],
)
def test_a_system_is_what_its_record_says(os_: str, expected: tuple[str, str]) -> None:
    assert os_release(replace(UBUNTU, os=os_)) == expected


def test_an_unknown_system_is_refused_and_never_taken_for_another() -> None:
    with pytest.raises(UnknownSystemError, match=r"the operating system 'haiku1', of which nothing is known"):
        os_release(replace(UBUNTU, os="haiku1"))
    unknown = replace(UBUNTU, os="ubuntu26.04", values={**UBUNTU.values, "kernel": None})
    with pytest.raises(UnknownSystemError, match=r"no kernel of ubuntu26\.04 is known"):
        contents(unknown, load_release("hyperpod-slurm-2026.09"), Variant())


@pytest.mark.parametrize(
    ("found", "detail", "differs"),
    [
        ("4.10.1", "kept-newer: the release has 4.7.0; dcgmi", False),
        ("4.10.1", "kept-older: the release has 4.7.0; dcgmi", True),
        ("4.10.1", "dcgmi", True),
        ("4.7.0", "kept-newer: the release has 4.7.0; dcgmi", True),
        ("4.7.0-2", "dcgmi", False),
        ("", "kept: its version is not known, the release has 4.7.0; dcgmi", False),
    ],
)
def test_what_is_newer_than_the_release_must_be_reported_as_that(
    found: str, detail: str, differs: bool
) -> None:
    component = {"outcome": "kept", "found": found, "preferred": "4.7.0", "detail": detail}
    report = ({"step": "dcgm", "components": {"dcgm": component}},)
    outcome = Outcome(status=0, last_line="", log="", console=(), report=report, checks={})
    assert bool(list(of_newer("dev/gpu", outcome))) is differs
