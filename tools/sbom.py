"""Write the SBOM of a wheel: packages of requirements.lock and the CDK's command line, with hashes.

The node software is in the release locks, which the wheel holds. Usage: python tools/sbom.py FOLDER
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from ultracluster.project.cdk_command import pinned_cdk
from ultracluster.version import __version__

ROOT = Path(__file__).parents[1]
COMMAND = [
    "cyclonedx-py", "requirements", "--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library",
    "--spec-version", "1.6", "--output-format", "JSON", "--output-reproducible",
]  # fmt: skip


def sbom(requirements: Path = ROOT / "requirements.lock", npm: Path = ROOT / "package-lock.json") -> str:
    """The SBOM as text; the same locks give the same text."""
    # a list of requirements does not say who requires whom, of which each run would warn
    quiet = os.environ | {"PYTHONWARNINGS": "ignore"}
    made = subprocess.run([*COMMAND, str(requirements)], stdout=subprocess.PIPE, check=True, env=quiet)  # noqa: S603
    document: dict[str, Any] = json.loads(made.stdout)
    own = document["metadata"]["component"]
    own["version"] = __version__
    own["purl"] = f"pkg:pypi/{own['name']}@{__version__}"
    document["components"].append(cdk_command(json.loads(npm.read_text(encoding="utf-8"))))
    return judged(json.dumps(document, indent=2) + "\n")


def judged(text: str) -> str:
    """The text, if CycloneDX's schema takes it.

    Raises:
        ValueError: it does not.
    """
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"not CycloneDX 1.6: {error}")
    return text


def cdk_command(lock: dict[str, Any]) -> dict[str, Any]:
    """The CDK's command line, which `ultracluster synth` and `deploy` start."""
    version = pinned_cdk()
    kind, _, digest = lock["packages"]["node_modules/aws-cdk"]["integrity"].partition("-")
    assert kind == "sha512"
    return {
        "bom-ref": f"npm-aws-cdk-{version}",
        "type": "application",
        "name": "aws-cdk",
        "version": version,
        "purl": f"pkg:npm/aws-cdk@{version}",
        "hashes": [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}],
        "scope": "required",
    }


if __name__ == "__main__":
    (Path(sys.argv[1]) / f"ultracluster-{__version__}.cdx.json").write_text(sbom(), encoding="utf-8")
