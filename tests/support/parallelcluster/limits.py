"""Prints the limits that ParallelCluster's own package has, as JSON; runs in its environment."""

# pyright: reportMissingImports=false
from __future__ import annotations

import inspect
import json
import os
import re
import urllib.error
import urllib.request
from typing import Any

os.environ["AWS_DEFAULT_REGION"] = "us-east-1"

from pcluster import constants
from pcluster.schemas.cluster_schema import CloudWatchLogsSchema
from pcluster.utils import get_installed_version, retrieve_supported_regions
from pcluster.validators import cluster_validators
from pcluster.validators.slurm_settings_validator import SLURM_SETTINGS_DENY_LIST


class NoInternet:
    """The list of Regions is then read from the package."""

    def open(self, *_: Any, **__: Any) -> Any:
        raise urllib.error.URLError("offline")


def main() -> None:
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the answer is all on stdout: what packages print goes to stderr
    urllib.request.install_opener(NoInternet())  # pyright: ignore[reportArgumentType]
    denied = SLURM_SETTINGS_DENY_LIST
    mounts = inspect.getsource(cluster_validators.SharedStorageMountDirValidator)
    limits = {
        "version": get_installed_version(),
        "names": {
            "longest": cluster_validators.NAME_MAX_LENGTH,
            "longest_cluster": constants.PCLUSTER_NAME_MAX_LENGTH,
            "longest_cluster_with_accounting": constants.PCLUSTER_NAME_MAX_LENGTH_SLURM_ACCOUNTING,
        },
        "counts": {
            "queues": constants.MAX_NUMBER_OF_QUEUES,
            "compute_resources": constants.MAX_NUMBER_OF_COMPUTE_RESOURCES_PER_CLUSTER,
            "login_pools": constants.MAX_NUMBER_OF_LOGIN_NODE_POOLS,
            "tags": constants.MAX_TAGS_COUNT,
        },
        "root_volume_gib": constants.EBS_ROOT_VOLUME_SIZE_DEFAULT,
        "log_retention_days": list(CloudWatchLogsSchema().fields["retention_in_days"].validate.choices),
        "systems": constants.SUPPORTED_OSES,
        "image_names": constants.OS_TO_IMAGE_NAME_PART_MAP,
        "systems_without_image": constants.PRIVATE_OSES,
        "systems_of_gb200": constants.SUPPORTED_OSES_FOR_P6E_GB200,
        "systems_without_small_sizes": constants.UNSUPPORTED_OSES_FOR_MICRO_NANO,
        "block_sizes": constants.ULTRASERVER_CAPACITY_BLOCK_ALLOWED_SIZE_DICT,
        "reserved_tag_prefix": constants.PCLUSTER_PREFIX,
        "reserved_mount_paths": re.findall(r'^ +"(/[a-z0-9/_]+)",', mounts, re.MULTILINE),
        "regions": retrieve_supported_regions(),
        "sssd": constants.DIRECTORY_SERVICE_RESERVED_SETTINGS,
        "slurm_settings": {
            "cluster": denied["SlurmConf"]["Global"],
            "accounting": denied["SlurmConf"]["Accounting"],
            "partition": denied["Queue"]["Global"],
            "group": denied["ComputeResource"]["Global"],
        },
    }
    json.dump(limits, answer)
    answer.close()


if __name__ == "__main__":
    main()
