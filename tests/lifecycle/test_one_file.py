"""The scripts of a group as one file that unpacks itself."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from ultracluster.clusters.pcs.groups import ENTRY
from ultracluster.lifecycle.bundles import HEAD, one_file
from ultracluster.lifecycle.selection import files_of
from ultracluster.scripts_folder import scripts_folder

CONFIGURATION: dict[str, object] = {"schema": 1, "release": "2026.11", "node_groups": {}}
SCRIPTS = files_of(scripts_folder(), [ENTRY], release="2026.11")


def test_the_file_holds_the_scripts_of_the_entry_and_the_configuration(tmp_path: Path) -> None:
    folder = scripts_folder()
    head = (folder / HEAD).read_bytes()
    content = one_file(folder, dict(CONFIGURATION), SCRIPTS).content
    scripts = {file.relative_to(folder).as_posix(): file for file in SCRIPTS}
    assert HEAD not in scripts and {"pcs_node.sh", "steps/imex.sh", "releases/2026.11.lock"} <= set(scripts)
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content.removeprefix(head)))) as archive:
        inside = {one.name: (one, archive.extractfile(one)) for one in archive.getmembers()}
        texts = {name: file.read() for name, (_, file) in inside.items() if file}

    assert set(texts) == {*scripts, "cluster.json"}
    assert json.loads(texts.pop("cluster.json")) == CONFIGURATION
    for name, text in texts.items():
        assert text == scripts[name].read_bytes()
        assert bool(inside[name][0].mode & 0o100) == bool(scripts[name].stat().st_mode & 0o100)


def test_bash_and_tar_unpack_it(tmp_path: Path) -> None:
    """Run as PCS runs it, with an entry that is not there: unpacking is all that happens."""
    file = tmp_path / "downloaded"
    file.write_bytes(one_file(scripts_folder(), dict(CONFIGURATION), SCRIPTS).content)
    result = subprocess.run(
        ["bash", str(file), "nothing"],
        env={"PATH": os.environ["PATH"], "ULTRACLUSTER_ROOT": str(tmp_path / "root")},
        capture_output=True,
        text=True,
        check=False,
    )
    (unpacked,) = (tmp_path / "root/opt/ultracluster/unpacked").iterdir()

    assert (result.returncode, result.stderr) == (2, "there is no entry nothing.sh in downloaded\n")
    assert (unpacked / "pcs_node.sh").stat().st_mode & 0o100
    assert json.loads((unpacked / "cluster.json").read_text()) == CONFIGURATION


def test_the_same_scripts_are_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    """Another checksum replaces nodes: times, owners and the compressor's release must not count."""
    copy = tmp_path / "elsewhere"
    shutil.copytree(scripts_folder(), copy)
    for file in copy.rglob("*"):
        os.utime(file, (1, 1))
    first = one_file(scripts_folder(), {"a": 1, "b": 2}, SCRIPTS)
    files = [copy / file.relative_to(scripts_folder()) for file in SCRIPTS]

    assert one_file(copy, {"b": 2, "a": 1}, files) == first
    assert one_file(copy, {"a": 1, "b": 3}, files) != first
    (copy / "pcs_node.sh").chmod(0o644)
    assert one_file(copy, {"a": 1, "b": 2}, files) != first
