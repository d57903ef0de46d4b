"""AWS's architecture icons, as the package `diagrams` carries them.

AWS lets everyone draw diagrams with its icons; it does not say that others may pass the set on. So this
package ships none: it takes them from where they are installed, and draws symbols of its own elsewhere.
Nothing of `diagrams` is imported, and Graphviz, which its own drawings need, is not used.
"""

from __future__ import annotations

import base64
from importlib.util import find_spec
from pathlib import Path

from ultracluster.plan.picture_symbols import symbol

ICONS = {
    "nodes": "compute/ec2-instances.png",
    "node": "compute/ec2-instance.png",
    "lustre": "storage/fsx-for-lustre.png",
    "openzfs": "storage/fsx.png",
    "s3": "storage/simple-storage-service-s3.png",
    "database": "database/rds.png",
    "nat": "network/nat-gateway.png",
    "endpoint": "network/endpoint.png",
    "internet": "general/internet-alt1.png",
    "hyperpod": "ml/sagemaker.png",
    "eks": "compute/elastic-kubernetes-service.png",
    "slurm": "compute/ec2.png",
    "closed": "network/private-subnet.png",
}
"""File of each symbol in the icons' folder. FSx for OpenZFS, HyperPod and PCS have none of their own there:
they get those of FSx, SageMaker and EC2."""


class PictureError(Exception):
    """The picture cannot be drawn or written; says why, and what to install."""


def icon(name: str) -> str:
    """One icon: AWS's as a `data:` URI where it is installed, else our own symbol as an element of SVG."""
    found = find_spec("diagrams")
    folder = Path(found.origin).parents[1] / "resources" / "aws" if found and found.origin else None
    file = folder / ICONS[name] if folder else None
    if file is None or not file.is_file():
        return symbol(name)
    return f"data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}"
