"""Environments for ParallelCluster that nobody has thought of."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from parallelcluster.account import CIDR

from ultracluster.catalog import instance_type

BLOCK = "cr-0123456789abcdef0"
TYPES = (
    "p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "p6-b300.48xlarge", "g6e.48xlarge",
    "g5.48xlarge", "trn2.48xlarge", "p6e-gb200.36xlarge", "c7g.16xlarge", "hpc7g.16xlarge",
)  # fmt: skip
ARN = "arn:aws:resource-groups:us-east-2:111122223333:group/reserved"


_GOVERNANCE: dict[str, st.SearchStrategy[Any]] = {
    "permissions_boundary": st.just("arn:aws:iam::111122223333:policy/boundary"),
    "role_path": st.just("/parallelcluster/teams/"),
    "role_prefix": st.just("train-"),
}


@st.composite
def capacities(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    known = instance_type(kind)
    assert known
    block = {"kind": "capacity-block", "id": BLOCK}
    if known.ultraserver:
        return block
    forms: list[dict[str, Any]] = [
        {"kind": "on-demand"},
        {"kind": "reservation"},
        {"kind": "reservation", "id": BLOCK},
        {"kind": "reservation", "id": BLOCK, "placement_group": "made-before"},
        {"kind": "reservation", "resource_group_arn": ARN},
    ]
    forms += [{"kind": "spot"}, {"kind": "spot", "allocation": "capacity-optimized"}] if known.spot else []
    forms += [block] if known.capacity_block_regions else []
    return draw(st.sampled_from(forms))


@st.composite
def environments(draw: st.DrawFn) -> dict[str, Any]:
    """Environments of every shape that the rules let through, and some that they do not."""
    kind = draw(st.sampled_from([name for name in TYPES if instance_type(name)]))
    known = instance_type(kind)
    assert known
    arm = known.architecture == "arm64"
    capacity = draw(capacities(kind))
    count = 18 if known.ultraserver else draw(st.integers(0, 64))
    gpu: dict[str, Any] = {"role": "compute", "instance_type": kind, "count": count, "capacity": capacity}
    if capacity["kind"] == "capacity-block":
        gpu["count"] = max(1, count)
    elif count == 0 or draw(st.booleans()):
        gpu["max_count"] = max(1, count + draw(st.integers(0, 64)))
    optional: dict[str, st.SearchStrategy[Any]] = {
        "partition": st.sampled_from(["train", "gpu"]),
        "threads_per_core": st.just(1),
        "root_volume_gib": st.integers(45, 500),
        "slurm_settings": st.just({"Features": "fast"}),
        "image": st.just("ami-0123456789abcdef0"),
    }
    gpu |= draw(st.fixed_dictionaries({}, optional=optional))
    groups = {
        "controller": {
            "role": "controller",
            "instance_type": "m7g.4xlarge" if arm else "m5.4xlarge",
            "count": 1,
        },
        "gpu": gpu,
    }
    for name in draw(st.lists(st.sampled_from(["login", "desk"]), max_size=2, unique=True)):
        login = {"role": "login", "instance_type": "m7g.2xlarge" if arm else "m5.2xlarge"}
        groups[name] = {**login, "count": draw(st.integers(0, 3))}
    if draw(st.booleans()):
        groups["cpu"] = {
            "role": "compute",
            "instance_type": "m7g.4xlarge" if arm else "m5.4xlarge",
            "count": 0,
            "max_count": 4,
            "partition": "cpu",
        }
    orchestrator = {"kind": "parallelcluster"} | draw(
        st.fixed_dictionaries(
            {},
            optional={
                "os": st.sampled_from(["alinux2023", "ubuntu2204", "rhel9", "rocky9"]),
                "scaling": st.sampled_from(["best-effort", "greedy-all-or-nothing"]),
                "scaledown_minutes": st.sampled_from([-1, 0, 30]),
                "queue_update": st.just("terminate"),
                "memory_scheduling": st.booleans(),
                "head_storage": st.just("efs"),
                "default_user_home": st.just("local"),
                "efa_interface": st.just("efa"),
                "lifecycle": st.just("none"),
                "slurm_settings": st.just({"SlurmctldTimeout": 300, "TaskProlog": "/fsx/prolog.sh"}),
                "monitoring": st.just({"log_retention_days": 365, "detailed": False, "alarms": False}),
                "directory_service": st.just(
                    {
                        "domain_name": "corp.example.com",
                        "domain_address": "ldaps://corp.example.com",
                        "password_secret_arn": "arn:aws:secretsmanager:us-east-2:111122223333:secret:reader",
                        "read_only_user": "cn=reader,dc=corp,dc=example,dc=com",
                        "server_networks": ["10.20.0.0/24"],
                    }
                ),
                "topology": st.just("flat"),
                "partitions": st.sampled_from(
                    [
                        {"gpu": {"gpu_health_checks": True}},
                        {"gpu": {"gpu_health_checks_by_group": {"gpu": True}}},
                    ]
                ),
            },
        )
    )
    if "login" in groups and draw(st.booleans()):
        pool = {"grace_minutes": draw(st.integers(3, 120)), "ssh_networks": ["10.200.0.0/16"]}
        orchestrator["login_pools"] = {"login": pool}
    if orchestrator.get("os") == "rocky9":
        for group in groups.values():
            group["image"] = "ami-0123456789abcdef0"
    storage: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "lustre": st.sampled_from(
                    [
                        {
                            "deployment": "persistent-2-ssd",
                            "capacity_gib": 38400,
                            "throughput_mbps_per_tib": 125,
                            "efa": True,
                        },
                        {"deployment": "scratch-2", "capacity_gib": 1200},
                        {
                            "deployment": "existing",
                            "id": "fs-0123456789abcdef0",
                            "dns_name": "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
                            "mount_name": "abcdefgh",
                            "security_group_id": "sg-0a1b2c3d4e5f60718",
                        },
                    ]
                ),
                "openzfs": st.just(
                    {"deployment": "single-az-ha-2", "capacity_gib": 128, "throughput_mbps": 320}
                ),
                "accounting_database": st.just({"kind": "rds-mysql", "second_zone_id": "use2-az1"}),
            },
        )
    )
    network: dict[str, Any] = {"zone_id": "use2-az3", "egress": draw(st.sampled_from(["nat", "closed"]))}
    if draw(st.booleans()):
        storage.pop("accounting_database", None)
        network["vpc"] = {"id": "vpc-0123456789abcdef0", "cidr": CIDR}
        network["subnet"] = {"id": "subnet-0123456789abcdef0", "cidr": CIDR}
        network["security_group"] = {"id": "sg-0123456789abcdef0"}
    return {
        "name": draw(st.sampled_from(["train", "a", "cluster-with-a-longer-name"])),
        "region": "us-east-2",
        "tags": draw(st.sampled_from([{}, {"project": "p", "cost-center": "1"}])),
        "network": network,
        "storage": storage,
        "orchestrator": orchestrator,
        "governance": draw(st.fixed_dictionaries({}, optional=_GOVERNANCE)),
        "node_groups": groups,
        "software": {"release": "2026.11"},
    }
