"""Files that acceptance jobs bring to the nodes: proofs of the host side, and facts of the type."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile

from ultracluster.acceptance.collectives import ALL_REDUCE, check_collective
from ultracluster.acceptance.patterns import scripts_folder
from ultracluster.catalog import InstanceType
from ultracluster.catalog.node_facts import type_facts

_LIBRARIES = ("clock", "devices", "image_family", "lnet", "log", "mounts", "node", "retry")
"""Facts of lib/, those that verify/fabric.sh reads."""
_PLACE = "readonly TOOLS=''\n"


def packed_tools(kind: InstanceType, *, efa_interfaces: int | None = None) -> bytes:
    """A compressed archive of verify/, what it reads, and a `cluster.json` of a group of this type.

    Args:
        kind: of the nodes.
        efa_interfaces: how many each has; None = as the catalogue says.
    """
    folder = scripts_folder()
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in (
            *sorted((folder / "verify").iterdir()),
            *(folder / "lib" / f"{name}.sh" for name in _LIBRARIES),
            folder / "acceptance" / "next_pairs.py",
        )
        if path.is_file()
    }
    facts = {"role": "compute", "instance_type": kind.name, **type_facts(kind)}
    if efa_interfaces is not None:
        facts |= {"efa_interfaces": efa_interfaces, "efa_layouts": [efa_interfaces]}
    files["cluster.json"] = json.dumps({"schema": 1, "node_groups": {"nodes": facts}}).encode()
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755 if name.endswith(".sh") else 0o644
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(written.getvalue(), mtime=0)


def slurm_script(
    kind: InstanceType, *, efa_interfaces: int | None = None, collective: str = ALL_REDUCE
) -> str:
    """The batch script for Slurm, one file with all that the nodes need; of Trainium, that of nccom-test.

    Args:
        kind: of the nodes.
        efa_interfaces: as of `packed_tools`.
        collective: a name of COLLECTIVES.

    Raises:
        ValueError: there is no such collective, or the type has no accelerators that a job measures.
    """
    if kind.accelerator is None:
        raise ValueError(
            f"{kind.name} has no accelerators, whose collectives nccl-tests and nccom-test measure"
        )
    neuron = kind.accelerator.manufacturer == "AWS"
    check_collective(collective, neuron=neuron)
    folder = scripts_folder() / "acceptance"
    if neuron:
        return _measuring((folder / "nccom_test.sbatch").read_text(encoding="utf-8"), collective)
    text = _measuring((folder / "nccl_tests.sbatch").read_text(encoding="utf-8"), collective)
    before, place, after = text.partition(_PLACE)
    assert place, "nccl_tests.sbatch has no place for its tools"
    tools = base64.b64encode(packed_tools(kind, efa_interfaces=efa_interfaces)).decode()
    return f"{before}readonly TOOLS='{tools}'\n{after}"


def _measuring(script: str, collective: str) -> str:
    """The script with another default; ACCEPTANCE_COLLECTIVE is stronger."""
    line = f"COLLECTIVE={ALL_REDUCE}\n"
    assert line in script, "the script has no place for its collective"
    return script.replace(line, f"COLLECTIVE={collective}\n", 1)
