"""PyTorch on a twin's machines: Debian's, of the machine that runs the twin, and what starts it on a node."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from needs import missing
from slurm_twin.twin import Twin

_LIBRARIES = "/host/usr/lib/x86_64-linux-gnu"
_PYTHON = """#!/bin/sh
libraries={libraries}
export PYTHONHOME=/host/usr OMP_NUM_THREADS=1
exec "$libraries/ld-linux-x86-64.so.2" --library-path \\
  "$libraries:$libraries/blas:$libraries/lapack:/host/usr/lib" /host/usr/bin/{python} "$@"
"""
"""Another Debian's Python, with that Debian's libraries."""
_TORCHRUN = """#!/usr/bin/python3
# In the place of torchrun, whose agent in Debian's PyTorch 1.13 does not run with its Python 3.11: as many
# processes, with the variables that it sets; one that fails ends the others.
import os, subprocess, sys, time
words = sys.argv[1:]
given = {}
while words and words[0].startswith("--"):
    name, _, value = words.pop(0)[2:].partition("=")
    given[name] = value
each, node = int(given["nproc-per-node"]), int(given["node-rank"])
def start(local):
    return subprocess.Popen(["/usr/bin/python-torch", *words], env=os.environ | {
        "RANK": str(node * each + local), "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(int(given["nnodes"]) * each),
        "MASTER_ADDR": given["master-addr"], "MASTER_PORT": given["master-port"]})
workers = [start(local) for local in range(each)]
while any(one.poll() is None for one in workers):
    if any(one.poll() for one in workers):
        for one in workers:
            one.kill()
    time.sleep(0.1)
sys.exit(max(abs(one.wait()) for one in workers))
"""


@cache
def why_not() -> str:
    """Why machines of a twin cannot have PyTorch; empty where they can."""
    python = Path("/usr/bin/python3").resolve()
    found = subprocess.run([python, "-c", "import torch.distributed"], capture_output=True, check=False)
    return "" if found.returncode == 0 else missing("python3-torch") or "PyTorch cannot be imported"


def give_pytorch(twin: Twin) -> None:
    """Give each machine `torchrun`; the twin must have been made with `host=True`."""
    python = Path("/usr/bin/python3").resolve().name
    files = {
        "/usr/bin/python-torch": _PYTHON.format(libraries=_LIBRARIES, python=python),
        "/usr/bin/torchrun": _TORCHRUN,
        "/usr/bin/nvidia-smi": "#!/bin/sh\necho 'GPU 0: NVIDIA L4'\n",
    }
    for machine in twin.nodes:
        for path, text in files.items():
            twin.put(machine, path, text, mode=0o755)
