"""What Kubernetes nodes are told of their cluster."""

from __future__ import annotations

from ultracluster.config import Environment
from ultracluster.lifecycle.configuration import script_configuration


def node_configuration(config: Environment) -> dict[str, object]:
    """`cluster.json` of nodes that mount nothing themselves: pods do, through the CSI driver.

    The name of the file system is not known yet and not needed; that there is one, and how it is reached, is.
    """
    configuration = script_configuration(config)
    if lustre := config.storage.lustre:
        configuration["mounts"] = {
            "lustre": {
                "path": lustre.mount_path,
                "dns_name": "csi.invalid",
                "mount_name": "csi",
                "efa": bool(getattr(lustre, "efa", False)),
            }
        }
    return configuration
