"""One way to break each rule on ParallelCluster, own or shared, and the smallest change that mends it.

The rules are tried on these, and so are ParallelCluster's own validators.
"""

from __future__ import annotations

from typing import Any

from rules_support import EXISTING_DATABASE, OPENZFS
from rules_table import Case

BASE = {
    "orchestrator": {"kind": "parallelcluster"},
    "node_groups": {
        "controller": {"role": "controller", "instance_type": "m5.2xlarge", "count": 1},
        "login": {"role": "login", "instance_type": "m5.xlarge", "count": 1},
        "gpu": {"role": "compute", "instance_type": "p5.48xlarge", "count": 4},
    },
}
GPU = {"role": "compute", "instance_type": "p5.48xlarge", "count": 1}
LOGIN = {"role": "login", "instance_type": "m5.xlarge", "count": 1}
HEAD = {"role": "controller", "instance_type": "m5.2xlarge", "count": 1}
TYPE = "node_groups.gpu.instance_type"
CAPACITY = "node_groups.gpu.capacity"
BLOCK = {"kind": "capacity-block", "id": "cr-0123456789abcdef0"}
RESERVATION = {"kind": "reservation", "id": "cr-0123456789abcdef0"}
PLAN = {"kind": "training-plan", "arn": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/a"}
IMAGE = "ami-0123456789abcdef0"
DATABASE = {"kind": "rds-mysql", "second_zone_id": "usw2-az1"}
EXISTING_OPENZFS = {
    "deployment": "existing",
    "id": "fs-0123456789abcdef0",
    "dns_name": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
    "security_group_id": "sg-0123456789abcdef0",
}
PARAMETER = "arn:aws:ssm:us-west-2:111122223333:parameter/a"
DIRECTORY = {
    "domain_name": "corp.example.com",
    "domain_address": "ldaps://corp.example.com",
    "password_secret_arn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:reader",
    "read_only_user": "cn=reader,dc=corp,dc=example,dc=com",
}
GB200 = {
    TYPE: "p6e-gb200.36xlarge",
    CAPACITY: BLOCK,
    "node_groups.gpu.count": 18,
    "node_groups.controller.instance_type": "m7g.2xlarge",
    "node_groups.login.instance_type": "m7g.xlarge",
}


def case(rule: str, broken: dict[str, Any], at: str, says: str, instead: str, mended: dict[str, Any]) -> Case:
    return Case(rule, {**BASE, **broken}, at, says, instead, mended)


def directory(**changes: Any) -> dict[str, Any]:
    return {"orchestrator.directory_service": {**DIRECTORY, **changes}}


def more(count: int, group: dict[str, Any], **each: Any) -> dict[str, Any]:
    """So many further groups."""
    return {f"node_groups.more{number}": {**group, **each} for number in range(count)}


GROUP_CASES = [
    case(
        "GRP011",
        {"node_groups.controller": ...},
        "node_groups",
        "on which Slurm's controller runs",
        "role: controller",
        {"node_groups.controller": HEAD},
    ),
    case(
        "GRP011",
        {"node_groups.second": HEAD},
        "node_groups.second.role",
        "`controller` is the controller group already",
        "role: login",
        {"node_groups.second.role": "login"},
    ),
    case(
        "GRP012",
        {"node_groups.controller.count": 2},
        "node_groups.controller.count",
        "2 controllers: ParallelCluster has one head node",
        "1",
        {"node_groups.controller.count": 1},
    ),
    case(
        "GRP012",
        {"node_groups.controller.max_count": 3},
        "node_groups.controller.max_count",
        "3 controllers",
        "1",
        {"node_groups.controller.max_count": ...},
    ),
    case(
        "GRP010",
        {"node_groups.login.role": "system"},
        "node_groups.login.role",
        "Kubernetes",
        "role: login",
        {"node_groups.login.role": "login"},
    ),
    case(
        "GRP015",
        {"node_groups.login.partition": "gpu"},
        "node_groups.login.partition",
        "runs no jobs",
        "remove partition",
        {"node_groups.login.partition": ...},
    ),
    case(
        "PCL005",
        {"node_groups.gpu": ...},
        "node_groups",
        "without a queue",
        "role: compute",
        {"node_groups.gpu": GPU},
    ),
    case(
        "PCL006",
        {"node_groups.gpu.count": 0},
        "node_groups.gpu.max_count",
        "MaxCount of 1",
        "max_count: 1",
        {"node_groups.gpu.max_count": 1},
    ),
    case(
        "GRP013",
        {"node_groups.login.max_count": 4},
        "node_groups.login.max_count",
        "1 to 4 login nodes",
        "count: 4",
        {"node_groups.login.count": 4},
    ),
    case(
        "PCL010",
        {"node_groups.GPU-Nodes": GPU},
        "node_groups.GPU-Nodes",
        "a compute resource: it must begin",
        "gpu-nodes",
        {"node_groups.GPU-Nodes": ..., "node_groups.gpu-nodes": GPU},
    ),
    case(
        "PCL010",
        {"node_groups.default": LOGIN},
        "node_groups.default",
        "a login pool: the word is reserved",
        "g-default",
        {"node_groups.default": ..., "node_groups.g-default": LOGIN},
    ),
    case(
        "PCL010",
        {f"node_groups.{'a' * 26}": GPU},
        f"node_groups.{'a' * 26}",
        "26 characters of 25",
        "a" * 25,
        {f"node_groups.{'a' * 26}": ..., f"node_groups.{'a' * 25}": GPU},
    ),
    case(
        "PCL011",
        {"node_groups.gpu.partition": "8xH100"},
        "node_groups.gpu.partition",
        "the name of a queue",
        "xh100",
        {"node_groups.gpu.partition": "xh100"},
    ),
    case(
        "PCL012",
        more(50, GPU),
        "node_groups",
        "51 partitions",
        "50 partitions",
        {"node_groups.more0": ...},
    ),
    case(
        "PCL013",
        more(50, GPU, partition="gpu"),
        "node_groups",
        "51 compute groups",
        "50 groups",
        {"node_groups.more0": ...},
    ),
    case(
        "PCL014",
        more(10, LOGIN),
        "node_groups",
        "11 login groups",
        "10 groups",
        {"node_groups.more0": ...},
    ),
    case(
        "PCL015",
        {
            "node_groups.gpu.partition": "all",
            "node_groups.b": {**GPU, "partition": "all", "capacity": {"kind": "spot"}},
        },
        "node_groups.b.capacity",
        "capacity is spot here and on-demand there",
        "partition: b",
        {"node_groups.b.capacity": {"kind": "reservation"}},
    ),
    case(
        "PCL015",
        {
            "node_groups.gpu.partition": "all",
            "node_groups.b": {**GPU, "partition": "all", "root_volume_gib": 300},
        },
        "node_groups.b.root_volume_gib",
        "300 here and 200 there",
        "as in `gpu`",
        {"node_groups.b.partition": "b"},
    ),
    case(
        "PCL015",
        {
            "node_groups.gpu.partition": "all",
            "node_groups.b": {**GPU, "partition": "all", "image": IMAGE},
        },
        "node_groups.b.image",
        "one Image for a queue",
        "as in `gpu`",
        {"node_groups.gpu.image": IMAGE},
    ),
    case(
        "PCL015",
        {
            "node_groups.gpu.partition": "all",
            CAPACITY: {"kind": "spot"},
            "node_groups.b": {
                **GPU,
                "partition": "all",
                "capacity": {"kind": "spot", "allocation": "lowest-price"},
            },
        },
        "node_groups.b.capacity.allocation",
        "one AllocationStrategy",
        "as in `gpu`",
        {"node_groups.b.capacity": {"kind": "spot"}},
    ),
]

CAPACITY_CASES = [
    case("GRP020", {CAPACITY: PLAN}, CAPACITY, "SageMaker's", "capacity-block", {CAPACITY: BLOCK}),
    case(
        "GRP020",
        {**GB200, CAPACITY: {"kind": "on-demand"}},
        CAPACITY,
        "inside UltraServers",
        "capacity-block",
        {CAPACITY: BLOCK},
    ),
    case(
        "GRP020",
        {**GB200, CAPACITY: {**RESERVATION, "placement_group": "mine"}},
        CAPACITY,
        "inside UltraServers",
        "capacity-block",
        {CAPACITY: BLOCK},
    ),
    case(
        "GRP021",
        {TYPE: "g6e.48xlarge", CAPACITY: BLOCK},
        CAPACITY,
        "No Region is known",
        "kind: reservation",
        {CAPACITY: RESERVATION},
    ),
    case(
        "PCL022",
        {"node_groups.login.capacity": {"kind": "spot"}},
        "node_groups.login.capacity",
        "spot for a login group",
        "on-demand",
        {"node_groups.login.capacity": ...},
    ),
    case(
        "PCL023",
        {CAPACITY: BLOCK, "node_groups.gpu.max_count": 8},
        "node_groups.gpu.max_count",
        "4 to 8 nodes",
        "count: 8",
        {"node_groups.gpu.count": 8},
    ),
    case(
        "PCL023",
        {CAPACITY: BLOCK, "node_groups.gpu.count": 0, "node_groups.gpu.max_count": 8},
        "node_groups.gpu.count",
        "MinCount above 0",
        "count: 8",
        {"node_groups.gpu.count": 8},
    ),
    case(
        "PCL024",
        {
            CAPACITY: RESERVATION,
            "node_groups.b": {**GPU, "instance_type": "p5en.48xlarge", "capacity": RESERVATION},
        },
        "node_groups.b.capacity.id",
        "for one type",
        "a reservation of p5en.48xlarge",
        {"node_groups.b.instance_type": "p5.48xlarge"},
    ),
    case(
        "PCL025",
        {**GB200, "node_groups.gpu.count": 19},
        "node_groups.gpu.count",
        "9 or 18 instances",
        "count: 18",
        {"node_groups.gpu.count": 18},
    ),
    case(
        "PCL026",
        {**GB200, "node_groups.gpu.count": 17},
        "node_groups.gpu.count",
        "1 that you pay for",
        "18",
        {"node_groups.gpu.count": 9},
    ),
    case(
        "PCL030",
        {**GB200, "orchestrator.os": "rhel9"},
        "orchestrator.os",
        "alinux2023, ubuntu2204",
        "ubuntu2404",
        {"orchestrator.os": "alinux2023"},
    ),
    case(
        "PCL031",
        {TYPE: "p6-b300.48xlarge", "orchestrator.version": "3.14.2"},
        "orchestrator.version",
        "from 3.15.0 on",
        "3.16.3",
        {"orchestrator.version": "3.15.0"},
    ),
    case(
        "PCL032",
        {"node_groups.controller.instance_type": "m7g.2xlarge"},
        "node_groups.controller.instance_type",
        "m7g.2xlarge is arm64",
        "m7i.2xlarge",
        {"node_groups.controller.instance_type": "m5.2xlarge"},
    ),
    case(
        "PCL032",
        {**GB200, "node_groups.login.instance_type": "m5.xlarge"},
        "node_groups.login.instance_type",
        "m5.xlarge is x86_64",
        "m7g.xlarge",
        {"node_groups.login.instance_type": "m7g.xlarge"},
    ),
    case(
        "PCL032",
        {"node_groups.arm": {**GPU, "instance_type": "c7g.16xlarge"}},
        "node_groups.arm.instance_type",
        "`gpu` (p5.48xlarge) is x86_64",
        "a second environment",
        {"node_groups.arm.instance_type": "c6i.32xlarge"},
    ),
    case(
        "PCL033",
        {"node_groups.controller.instance_type": "c5.xlarge", "node_groups.gpu.max_count": 200},
        "node_groups.controller.instance_type",
        "8 GB, and the head node of 200 nodes needs 8.6",
        "instance_type: m5.xlarge",
        {"node_groups.gpu.max_count": 180},
    ),
    case(
        "PCL034",
        {"node_groups.controller.instance_type": "t3.micro"},
        "node_groups.controller.instance_type",
        "1.7 GB",
        "m5.xlarge",
        {"orchestrator.os": "alinux2023"},
    ),
    case(
        "GRP032",
        {"node_groups.login.instance_type": "g6e.xlarge"},
        "node_groups.login.instance_type",
        "1 x L40S",
        "m7i.xlarge",
        {"node_groups.login.instance_type": "m7i.xlarge"},
    ),
    case(
        "PCL036",
        {"orchestrator.os": "rocky9"},
        "node_groups.gpu.image",
        "no image of rocky9",
        "pcluster build-image",
        {f"node_groups.{name}.image": IMAGE for name in ("controller", "login", "gpu")},
    ),
    case(
        "PCL037",
        {"node_groups.gpu.image": IMAGE},
        "node_groups.gpu.image",
        "build-image` of 3.16.3",
        "remove image",
        {"node_groups.gpu.image": ...},
    ),
    case(
        "GRP030",
        {
            "node_groups.gpu.image": IMAGE,
            "node_groups.login.image": IMAGE,
            "node_groups.login.instance_type": "m7g.xlarge",
        },
        "node_groups.gpu.image",
        "is the image of `login` (arm64), too",
        "made for x86_64",
        {"node_groups.login.image": "ami-0fedcba9876543210"},
    ),
    case(
        "PCL039",
        {"node_groups.gpu.root_volume_gib": 40, "orchestrator.version": "3.16.1"},
        "node_groups.gpu.root_volume_gib",
        "3.16.1 have 45",
        "45",
        {"node_groups.gpu.root_volume_gib": 45},
    ),
    case(
        "PCL039",
        {"node_groups.controller.root_volume_gib": 45},
        "node_groups.controller.root_volume_gib",
        "3.16.3 have 50",
        "50",
        {"orchestrator.version": "3.16.1"},
    ),
]

SLURM_CASES = [
    case(
        "PCL040",
        {"orchestrator.slurm_settings": {"prolog": "/opt/check.sh"}},
        "orchestrator.slurm_settings.prolog",
        "sets Prolog itself",
        "prolog.d",
        {"orchestrator.slurm_settings": {"TaskProlog": "/opt/check.sh"}},
    ),
    case(
        "PCL041",
        {
            "orchestrator.slurm_settings": {"JobAcctGatherType": "jobacct_gather/none"},
            "storage.accounting_database": DATABASE,
        },
        "orchestrator.slurm_settings.JobAcctGatherType",
        "with an accounting database",
        "remove JobAcctGatherType",
        {"storage.accounting_database": ...},
    ),
    case(
        "PCL042",
        {"orchestrator.partitions": {"gpu": {"slurm_settings": {"OverSubscribe": "EXCLUSIVE"}}}},
        "orchestrator.partitions.gpu.slurm_settings.OverSubscribe",
        "for a partition",
        "exclusive: true",
        {"orchestrator.partitions": {"gpu": {"slurm_settings": {"MaxTime": "7-00:00:00"}}}},
    ),
    case(
        "PCL043",
        {"node_groups.gpu.slurm_settings": {"Weight": 10}},
        "node_groups.gpu.slurm_settings.Weight",
        "for a compute group",
        "always there",
        {"node_groups.gpu.slurm_settings": {"Features": "h100"}},
    ),
    case(
        "PCL044",
        {"node_groups.login.slurm_settings": {"Features": "front"}},
        "node_groups.login.slurm_settings",
        "no line in slurm.conf",
        "orchestrator.slurm_settings",
        {"node_groups.login.slurm_settings": {}},
    ),
    case(
        "PCL045",
        {"orchestrator.slurm_settings": {"NodeName": "own-st-1"}},
        "orchestrator.slurm_settings.NodeName",
        "-st-",
        "another name",
        {"orchestrator.slurm_settings": {"NodeName": "own-1"}},
    ),
    case(
        "PCL046",
        {"orchestrator.partitions": {"gpus": {"exclusive": False}}},
        "orchestrator.partitions.gpus",
        "would say nothing",
        "gpu",
        {"orchestrator.partitions": {"gpu": {"exclusive": False}}},
    ),
    case(
        "PCL047",
        {"orchestrator.partitions": {"gpu": {"gpu_health_checks": True}}},
        "orchestrator.partitions.gpu.gpu_health_checks",
        "reported to hang",
        "false",
        {TYPE: "p5en.48xlarge"},
    ),
    case(
        "PCL048",
        {TYPE: "trn2.48xlarge", "orchestrator.partitions": {"gpu": {"gpu_health_checks": True}}},
        "orchestrator.partitions.gpu.gpu_health_checks",
        "NVIDIA GPUs",
        "false",
        {TYPE: "p5en.48xlarge"},
    ),
    case(
        "PCL049",
        {**GB200, "orchestrator.imex": False},
        "orchestrator.imex",
        "IMEX configuration",
        "true",
        {"orchestrator.imex": True},
    ),
    case(
        "PCL049",
        {**GB200, "orchestrator.partitions": {"gpu": {"exclusive": False}}},
        "orchestrator.partitions.gpu.exclusive",
        "whole nodes",
        "true",
        {"orchestrator.partitions": {"gpu": {"exclusive": True}}},
    ),
    case(
        "PCL049",
        {**GB200, "orchestrator.slurm_settings": {"PrologFlags": "Alloc,Contain"}},
        "orchestrator.slurm_settings.PrologFlags",
        "without NoHold",
        "Alloc,NoHold",
        {"orchestrator.slurm_settings": {"PrologFlags": "Alloc,NoHold,Contain"}},
    ),
]

CLUSTER_CASES = [
    case(
        "PCL060",
        {"orchestrator.cluster_name": "c" * 41, "storage.accounting_database": DATABASE},
        "orchestrator.cluster_name",
        "41 characters",
        "c" * 40,
        {"orchestrator.cluster_name": "c" * 40},
    ),
    case(
        "PCL061",
        {"region": "eu-south-2", "network.zone_id": "eus2-az1"},
        "region",
        "does not support eu-south-2",
        "eu-",
        {"region": "eu-south-1"},
    ),
    case(
        "PCL062",
        {"orchestrator.version": "3.16.0"},
        "orchestrator.version",
        "security holes",
        "3.16.3",
        {"orchestrator.version": "3.16.3"},
    ),
    case(
        "PCL063",
        {"orchestrator.queue_update": "compute-fleet-stop"},
        "orchestrator.queue_update",
        "cannot stop the fleet",
        "drain",
        {"orchestrator.deploy_with": "pcluster"},
    ),
    case(
        "PCL073",
        {"orchestrator.bootstrap_timeout_minutes": 60},
        "orchestrator.bootstrap_timeout_minutes",
        "gives the custom resource an hour",
        "deploy_with: pcluster",
        {"orchestrator.bootstrap_timeout_minutes": 30},
    ),
    case(
        "PCL064",
        {"orchestrator.monitoring": {"log_retention_days": 100}},
        "orchestrator.monitoring.log_retention_days",
        "100 days",
        "120",
        {"orchestrator.monitoring": {"log_retention_days": 120}},
    ),
    case(
        "PCL065",
        {"storage.accounting_database": EXISTING_DATABASE},
        "storage.accounting_database.username",
        "wants the user",
        "username",
        {"storage.accounting_database": {**EXISTING_DATABASE, "username": "slurm"}},
    ),
    case(
        "PCL066",
        {"storage.openzfs": EXISTING_OPENZFS},
        "storage.openzfs.volume_id",
        "mounts a volume",
        "RootVolumeId",
        {"storage.openzfs": {**EXISTING_OPENZFS, "volume_id": "fsvol-0123456789abcdef0"}},
    ),
    case(
        "PCL067",
        {"tags": {f"key{number}": "" for number in range(40)}},
        "tags",
        "takes 40",
        "at most 39",
        {"tags": {f"key{number}": "" for number in range(39)}},
    ),
    case(
        "PCL068",
        {"tags": {"parallelcluster:owner": "me"}},
        "tags.parallelcluster:owner",
        "keeps for itself",
        "owner",
        {"tags": {"owner": "me"}},
    ),
    case(
        "PCL069",
        {"orchestrator.version": "3.14.2"},
        "orchestrator.efa_interface",
        "an address of the subnet for each network card",
        "3.16.3",
        {"orchestrator.version": "3.15.0"},
    ),
    case(
        "PCL069",
        {"orchestrator.version": "3.14.2", "orchestrator.efa_interface": "efa"},
        "orchestrator.efa_interface",
        "3.15.0 is the first",
        "3.16.3",
        {"orchestrator.version": "3.16.1"},
    ),
    case(
        "MNT001",
        {"storage.openzfs": {**OPENZFS, "mount_path": "/fsx"}},
        "storage.openzfs.mount_path",
        "one hides the other",
        "/home",
        {"storage.openzfs": OPENZFS},
    ),
    case(
        "MNT001",
        {"storage.openzfs": {**OPENZFS, "mount_path": "/scratch"}},
        "orchestrator.nvme_mount_path",
        "one hides the other",
        "/local",
        {"orchestrator.nvme_mount_path": "/local"},
    ),
    case(
        "MNT003",
        {"storage.openzfs": {**OPENZFS, "mount_path": "/fsx/home"}},
        "storage.openzfs.mount_path",
        "lies within the mount /fsx",
        "/home",
        {"storage.openzfs": OPENZFS},
    ),
    case(
        "MNT002",
        {"storage.openzfs": {**OPENZFS, "mount_path": "/opt"}},
        "storage.openzfs.mount_path",
        "would hide",
        "/home",
        {"storage.openzfs": {**OPENZFS, "mount_path": "/opt/tools"}},
    ),
    case(
        "MNT002",
        {"orchestrator.nvme_mount_path": "/var/lib/scratch"},
        "orchestrator.nvme_mount_path",
        "would hide",
        "/scratch",
        {"orchestrator.nvme_mount_path": "/scratch"},
    ),
    case(
        "PCL080",
        directory(domain_name="corp example"),
        "orchestrator.directory_service.domain_name",
        "neither a domain",
        "corp.example.com",
        directory(domain_name="DC=corp,DC=example"),
    ),
    case(
        "PCL081",
        directory(domain_address="ldap://a.example.com"),
        "orchestrator.directory_service.domain_address",
        "in the clear",
        "ldaps://a.example.com",
        directory(domain_address="ldaps://a.example.com,ldaps://b.example.com"),
    ),
    case(
        "PCL081",
        directory(domain_address="a.example.com"),
        "orchestrator.directory_service.domain_address",
        "no protocol",
        "ldaps://a.example.com",
        directory(),
    ),
    case(
        "PCL081",
        directory(tls_require_certificate="never"),
        "orchestrator.directory_service.tls_require_certificate",
        "anybody",
        "hard",
        directory(tls_require_certificate="demand"),
    ),
    case(
        "PCL082",
        directory(sssd_settings={"id_provider": "ad"}),
        "orchestrator.directory_service.sssd_settings.id_provider",
        "takes `ldap` only",
        "ldap",
        directory(sssd_settings={"id_provider": "ldap", "access_provider": "simple"}),
    ),
    case(
        "PCL082",
        directory(access_filter="(x=y)", sssd_settings={"access_provider": "simple"}),
        "orchestrator.directory_service.sssd_settings.access_provider",
        "beside access_filter",
        "ldap",
        directory(access_filter="(x=y)", sssd_settings={"access_provider": "ldap"}),
    ),
    case(
        "PCL083",
        directory(password_secret_arn=PARAMETER),
        "orchestrator.directory_service.password_secret_arn",
        "not the ARN of a secret",
        "secretsmanager",
        directory(),
    ),
    case(
        "SOF008",
        {"orchestrator.lifecycle": "none"},
        "orchestrator.lifecycle",
        "is not installed",
        "on-node-configured",
        {"orchestrator.lifecycle": "on-node-configured"},
    ),
]

CASES = GROUP_CASES + CAPACITY_CASES + SLURM_CASES + CLUSTER_CASES
