"""Why keys of PCS's answers do not carry over, and what to do."""

from __future__ import annotations

from ultracluster.imports import launch_template
from ultracluster.imports.ledger import SILENT, Reason

_KEYS: Reason = (
    "the service makes the cluster's keys, and a new cluster has its own",
    "nothing to do; tokens that were signed with the old one end",
)
_STEPS: Reason = (
    "nodes run the steps of their software release instead of these scripts",
    "docs/releases.md has what it installs; what is missing becomes a step of yours (docs/own-steps.md)",
)

REASONS: dict[str, Reason] = {
    **launch_template.REASONS,
    **dict.fromkeys(
        (
            f"{of}.{key}"
            for of in ("cluster", "queues", "groups")
            for key in ("name", "id", "arn", "clusterId", "createdAt", "modifiedAt")
        ),
        SILENT,
    ),
    "cluster.endpoints": SILENT,
    "groups.launchTemplateMode": SILENT,
    "launchTemplate.ImageId": SILENT,
    "slurmConfiguration.authKey": _KEYS,
    "slurmConfiguration.jwtAuth": _KEYS,
    "networking.securityGroupIds": (
        "the controller is reached through the nodes' security group",
        "write network.security_group",
    ),
    "groups.customLaunchTemplate": SILENT,
    "groups.iamInstanceProfileArn": (
        "roles are made with the rights that nodes need, and no others",
        "jobs' rights on buckets are storage.job_buckets; bounds and names of roles are `governance`",
    ),
    "groups.sshKeyName": (
        "no port is open for SSH, and no key pair is on nodes",
        "people log in through Session Manager (`ultracluster connect`)",
    ),
    "groups.nodeLifecycleActions": _STEPS,
    "slurmConfiguration.gresCustomSettings": (
        "lines of gres.conf are written for the nodes' GPUs",
        "write node_groups.<group>.gres where yours differ",
    ),
}
