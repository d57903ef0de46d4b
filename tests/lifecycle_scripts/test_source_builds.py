"""What the node scripts build from source, built for real, and libfabric, in a Debian root.

No step builds libfabric: the EFA installer brings it, and that of Debian stands for it where no sources are.
ULTRACLUSTER_SOURCES names a folder with upstream's archives, of any version, named as upstream names them:

- `gdrcopy-2.6.tar.gz`, or `v2.6.tar.gz`
- `libfabric-2.6.0.tar.bz2`, or Debian's `libfabric_2.1.0.orig.tar.xz`
- `aws-ofi-nccl-1.21.1.tar.gz`: a release archive, which has its `configure`
- CUDA's headers, as NVIDIA's wheels `nvidia_cuda_runtime-*.whl` and `nvidia_cuda_crt-*.whl`

A test whose archives are not there is skipped. There is no driver and no GPU, so gdrdrv is not built: the
root says that its image has one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from debian_root import INCLUDE, enter, make_root

VARIABLE = "ULTRACLUSTER_SOURCES"
GDRCOPY = ("gdrcopy-[0-9]*.tar.gz", "v[0-9]*.tar.gz")
LIBFABRIC = ("libfabric-[0-9]*.tar.*", "libfabric_[0-9]*.orig.tar.*")
PLUGIN = ("aws-ofi-nccl-[0-9]*.tar.gz",)
CUDA = ("nvidia_cuda_runtime*.whl",)
CUDA_FOR_COMPILERS = ("nvidia_cuda_crt*.whl", "nvidia_cuda_nvcc*.whl")

COMPILERS = f"{INCLUDE},build-essential,libhwloc-dev,libibverbs-dev,autoconf,automake,libtool,pkgconf"
EFA = "/opt/amazon/efa"
# The providers of an EFA node, of a test on one machine, and no others: they take most of the time.
BUILD_LIBFABRIC = f"""set -e
[ -x configure ] || ./autogen.sh
./configure --prefix={EFA} --disable-static --enable-only --enable-efa --enable-tcp --enable-shm CFLAGS=-O0
make --jobs "$(getconf _NPROCESSORS_ONLN)"
make install
"""

needs_gdrcopy = pytest.mark.needs_input(VARIABLE, *GDRCOPY, reason="GDRCopy's library is not built")
needs_libfabric = pytest.mark.needs_input(VARIABLE, *LIBFABRIC, reason="libfabric is not built")
needs_plugin = pytest.mark.needs_input(VARIABLE, *PLUGIN, reason="the NCCL plugin is not built")
needs_cuda = pytest.mark.needs_input(VARIABLE, *CUDA, reason="there are no CUDA headers to build with")
needs_cuda_for_compilers = pytest.mark.needs_input(
    VARIABLE, *CUDA_FOR_COMPILERS, reason="there are no CUDA headers to build with"
)


def archives(*patterns: str) -> list[Path]:
    folder = os.environ.get(VARIABLE)
    return [path for pattern in patterns for path in Path(folder).glob(pattern)] if folder else []


def given(patterns: tuple[str, ...]) -> Path:
    """The newest archive of these names."""
    return max(archives(*patterns), key=numbers)


def numbers(path: Path) -> list[int]:
    return [int(number) for number in version_of(path).split(".")]


def version_of(archive: Path) -> str:
    found = re.search(r"\d+(\.\d+)+", archive.name)
    assert found, f"{archive} has no version in its name"
    return found[0]


@dataclass
class Node:
    """A root without a GPU, whose lock file has only what a test builds."""

    root: Path

    def lock(self, **components: dict[str, object]) -> None:
        lock = {"schema": 2, "families": ["plain"], "release": "2026.11", "components": components}
        (self.root / "scripts/releases/2026.11.lock").write_text(json.dumps(lock))

    def source(self, archive: Path) -> dict[str, object]:
        """A component that is built from this archive, which is put into the root."""
        shutil.copy(archive, self.root / "sources")
        artifact = {
            "url": f"file:///sources/{archive.name}",
            "name": archive.name,
            "size": archive.stat().st_size,
            "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
            "integrity": "checksum",
        }
        return {"version": version_of(archive), "kind": "source", "artifacts": [artifact]}

    def run(self, *command: str) -> str:
        done = subprocess.run(
            enter(self.root, *command),
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def bake(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            enter(
                self.root,
                "/scripts/bake.sh",
                "--release",
                "2026.11",
                "--accelerator",
                "nvidia",
                "--efa",
                "yes",
            ),
            env={"PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def baked(self, step: str) -> dict[str, str]:
        """The report of a step, of a run that succeeds."""
        process = self.bake()
        said, _ = process.communicate(timeout=3600)
        assert process.returncode == 0, said
        return self.report(step)

    def report(self, step: str) -> dict[str, str]:
        """Of the last run that came to it."""
        lines = (self.root / "var/log/ultracluster/report.jsonl").read_text().splitlines()
        return next(line for line in map(json.loads, reversed(lines)) if line.get("step") == step)

    def killed_while_compiling(self, component: str) -> None:
        process = self.bake()
        work = self.root / "var/lib/ultracluster/work/builds" / component
        deadline = time.monotonic() + 1200
        while not next(work.rglob("*.o"), None):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline, "never came to compile anything"
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def ours(self, component: str) -> list[str]:
        """What is of a component in the folder of our own builds, hidden or not."""
        folder = self.root / "opt/ultracluster"
        names = [path.name for path in folder.iterdir()] if folder.exists() else []
        return sorted(name for name in names if component in name)

    def tree(self, folder: str) -> dict[str, tuple[int, int]]:
        files = sorted((self.root / folder.lstrip("/")).rglob("*"))
        return {str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in files}

    def loads(self, name: str, *lines: str) -> str:
        """What these lines print; `lib` is the library, loaded by its name alone, as any program does."""
        return self.run(
            "python3", "-c", "\n".join(["import ctypes", f"lib = ctypes.CDLL('{name}')", *lines])
        ).strip()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    root = tmp_path_factory.mktemp("builds") / "root"
    # without sources the root that other tests have, too
    make_root(root, include=COMPILERS if os.environ.get(VARIABLE) else INCLUDE, tools=[])
    (root / "sources").mkdir()
    module_is_here(root)
    cuda_is_here(root)
    yield Node(root)
    shutil.rmtree(root)


def module_is_here(root: Path) -> None:
    modinfo = root / "usr/sbin/modinfo"
    modinfo.write_text('#!/bin/sh\ncase "$*" in *gdrdrv*) echo 2.6 ;; *) exit 1 ;; esac\n')
    modinfo.chmod(0o755)


def cuda_is_here(root: Path) -> None:
    """The wheels have it as nvidia/<part>/{include,lib}; a toolkit as include and lib64."""
    for wheel in archives("nvidia_cuda_*.whl"):
        with zipfile.ZipFile(wheel) as content:
            for name in content.namelist():
                place = re.fullmatch(r"nvidia/[^/]+/(include|lib)/(.*[^/])", name)
                if not place:
                    continue
                folder = {"include": "include", "lib": "lib64"}[place[1]]
                path = root / "usr/local/cuda" / folder / place[2]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read(name))


@pytest.fixture(scope="module")
def libfabric(node: Node) -> str:
    """Its version, in the folder of the EFA installer."""
    if archives(*LIBFABRIC):
        build_libfabric(node)
    else:
        move_libfabric(node)
    (node.root / "etc/ld.so.conf.d/000_efa.conf").write_text(f"{EFA}/lib\n")
    node.run("ldconfig")
    said = re.search(r"^libfabric: (.+)$", node.run(f"{EFA}/bin/fi_info", "--version"), re.MULTILINE)
    assert said
    return said[1]


def build_libfabric(node: Node) -> None:
    archive = given(LIBFABRIC)
    work = node.root / "var/tmp/libfabric"
    work.mkdir(parents=True)
    subprocess.run(
        ["tar", "--extract", "--file", archive, "--directory", work, "--strip-components=1"], check=True
    )
    node.run("sh", "-c", f"cd /var/tmp/libfabric\n{BUILD_LIBFABRIC}")
    shutil.rmtree(work)
    assert "efa:" in node.run(f"{EFA}/bin/fi_info", "--list").splitlines()


def move_libfabric(node: Node) -> None:
    """Debian's own, to where the EFA installer puts it."""
    libraries = node.root.glob("usr/lib/*/libfabric.so.1*")
    for folder, paths in {"bin": [node.root / "usr/bin/fi_info"], "lib": libraries}.items():
        target = node.root / EFA.lstrip("/") / folder
        target.mkdir(parents=True)
        for path in paths:
            path.rename(target / path.name)


def built_once(node: Node, step: str, component: str, version: str) -> str:
    """Killed while it compiles, then built, then left alone. Gives the folder it is in."""
    folder = f"/opt/ultracluster/{component}-{version}"
    node.killed_while_compiling(component)
    assert node.ours(component) == []
    report = node.baked(step)
    assert (report["state"], report["version"]) == ("installed", version)
    assert node.ours(component) == [f"{component}-{version}"]
    assert not (node.root / "var/lib/ultracluster/work").exists()
    assert (node.root / "var/tmp").is_dir()
    tree = node.tree(folder)
    assert tree
    report = node.baked(step)
    assert (report["state"], report["version"]) == ("already", version)
    assert node.tree(folder) == tree
    return folder


@needs_cuda
@needs_gdrcopy
def test_the_library_of_gdrcopy(node: Node) -> None:
    archive = given(GDRCOPY)
    version = version_of(archive)
    node.lock(gdrcopy=node.source(archive) | {"accelerator": "nvidia"})
    folder = built_once(node, "gdrcopy", "gdrcopy", version)
    assert (node.root / folder.lstrip("/") / "include/gdrapi.h").is_file()

    said = node.loads(
        "libgdrapi.so.2",
        "major, minor = ctypes.c_int(), ctypes.c_int()",
        "lib.gdr_runtime_get_version(ctypes.byref(major), ctypes.byref(minor))",
        "print(major.value, minor.value)",
    )
    assert said.split() == version.split(".")[:2]


def test_libfabric_is_found_and_proven(node: Node, libfabric: str) -> None:
    node.lock(libfabric={"version": libfabric, "kind": "bundled"})
    report = node.baked("libfabric")
    assert (report["state"], report["version"]) == ("already", libfabric)
    packed = int(node.loads("libfabric.so.1", "print(lib.fi_version())"))
    assert [packed >> 16, packed & 0xFFFF] == [int(number) for number in libfabric.split(".")[:2]]


def test_another_libfabric_that_the_loader_prefers_is_told(node: Node, libfabric: str) -> None:
    other = node.root / "opt/other/lib"
    shutil.copytree(node.root / EFA.lstrip("/") / "lib", other, symlinks=True)
    for name, need, state in [
        ("900-other.conf", "required", "already"),
        ("000-other.conf", "wanted", "degraded"),
        ("000-other.conf", "required", "failed"),
    ]:
        node.lock(libfabric={"version": libfabric, "kind": "bundled", "need": need})
        (node.root / "etc/ld.so.conf.d" / name).write_text("/opt/other/lib\n")
        node.run("ldconfig")
        process = node.bake()
        said, _ = process.communicate(timeout=600)
        (node.root / "etc/ld.so.conf.d" / name).unlink()
        assert process.returncode == (1 if state == "failed" else 0), said
        assert node.report("libfabric")["state"] == state, said
        if state != "already":
            last = said.splitlines()[-1]
            assert last.startswith(f"{state.upper()} libfabric: "), last
            assert "comes before the one of EFA: /opt/other/lib/libfabric.so.1" in last
    shutil.rmtree(other)
    node.run("ldconfig")


@needs_cuda_for_compilers
@needs_cuda
@needs_libfabric
@needs_gdrcopy
@needs_plugin
def test_the_plugin_for_nccl(node: Node, libfabric: str) -> None:
    gdrcopy = node.source(given(GDRCOPY)) | {"accelerator": "nvidia"}
    node.lock(gdrcopy=gdrcopy)
    node.baked("gdrcopy")

    archive = given(PLUGIN)
    components = {
        "libfabric": {"version": libfabric, "kind": "bundled"},
        "aws-ofi-nccl": node.source(archive),
    }
    node.lock(gdrcopy=gdrcopy, **components)
    folder = built_once(node, "ofi_nccl", "aws-ofi-nccl", version_of(archive))

    exported = "print([n for n in range(5, 30) if hasattr(lib, f'ncclNetPlugin_v{n}')])"
    assert len(json.loads(node.loads("libnccl-net-ofi.so", exported))) > 1
    linked = node.run("ldd", f"{folder}/lib/libnccl-net-ofi.so")
    assert f"libfabric.so.1 => {EFA}/lib/libfabric.so.1" in linked
    # Without GDRCopy's header the plugin is built, too, and cannot use it.
    assert b"libgdrapi.so" in (node.root / folder.lstrip("/") / "lib/libnccl-net-ofi.so").read_bytes()
