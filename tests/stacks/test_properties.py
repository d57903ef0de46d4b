"""Any environment that the rules let through synthesises, and AWS's schemas accept what comes out."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from depth import examples
from excerpts import Excerpts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rules_support import loaded
from templates import assembly, cfn_lint

from ultracluster.catalog import instance_type, offered_zone_ids
from ultracluster.rules import check

REGION = "us-east-2"
ACCELERATED = ("p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge", "g6e.48xlarge", "g5.48xlarge", "trn2.48xlarge")
ROUNDS = 8


@st.composite
def environments(draw: st.DrawFn) -> dict[str, Any]:
    """Shapes of every kind: existing or made, open or closed, each deployment type, each capacity."""
    continuous = draw(st.booleans())
    kind = draw(st.sampled_from(ACCELERATED))
    zone = draw(st.sampled_from(sorted(offered_zone_ids(kind, REGION)) or ["use2-az1"]))
    network: dict[str, Any] = {"zone_id": zone, "egress": draw(st.sampled_from(["nat", "closed"]))}
    network["cidr"] = draw(st.sampled_from(["10.0.0.0/16", "10.9.0.0/18"]))
    if draw(st.booleans()):
        network["vpc"] = {"id": "vpc-0123456789abcdef0", "cidr": network.pop("cidr")}
        if draw(st.booleans()):
            network["subnet"] = {"id": "subnet-0123456789abcdef0", "cidr": network["vpc"]["cidr"]}
        elif network["egress"] == "nat":
            network["vpc"]["nat_gateway_id"] = "nat-0123456789abcdef0"
        if draw(st.booleans()):
            network["security_group"] = {"id": "sg-0123456789abcdef0"}
    storage: dict[str, Any] = {"lustre": draw(lustres())}
    if draw(st.booleans()):
        storage["key"] = {
            "arn": "arn:aws:kms:us-east-2:111122223333:key/12345678-1234-1234-1234-123456789012"
        }
    if draw(st.booleans()):
        storage["scripts_bucket"] = {"name": "sagemaker-scripts-example"}
    if draw(st.booleans()):
        storage["openzfs"] = {"deployment": "single-az-ha-2", "capacity_gib": 128, "throughput_mbps": 320}
    database = draw(st.sampled_from([None, "rds-mysql", "existing"])) if continuous else None
    if database == "rds-mysql" and "vpc" in network:
        two = ["subnet-0aaaaaaaaaaaaaaa1", "subnet-0aaaaaaaaaaaaaaa2"]
        storage["accounting_database"] = {"kind": database, "subnet_ids": two}
    elif database == "rds-mysql":
        other = "use2-az1" if zone != "use2-az1" else "use2-az2"
        storage["accounting_database"] = {
            "kind": database,
            "second_zone_id": other,
            "multi_az": draw(st.booleans()),
        }
    elif database == "existing":
        storage["accounting_database"] = {
            "kind": database, "endpoint": "db.example.com", "security_group_id": "sg-0fedcba9876543210",
            "secret_arn": "arn:aws:secretsmanager:us-east-2:111122223333:secret:slurm-AbCdEf",
        }  # fmt: skip
    return {
        "name": draw(st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,5})?", fullmatch=True)),
        "region": REGION,
        "protect": draw(st.booleans()),
        "network": network,
        "storage": {key: value for key, value in storage.items() if value},
        "orchestrator": {
            "kind": "hyperpod-slurm",
            "provisioning": "continuous" if continuous else "classic",
            "lifecycle": draw(st.sampled_from(["on-init-complete", "none"])),
            "node_recovery": draw(st.sampled_from(["automatic", "none"])),
        }
        | (
            {}
            if continuous
            else {"slurm_config_strategy": draw(st.sampled_from(["merge", "managed", "overwrite"]))}
        ),
        "node_groups": {
            "controller": {"role": "controller", "instance_type": "m5.4xlarge", "count": 1},
            "login": {"role": "login", "instance_type": "m5.2xlarge", "count": draw(st.integers(0, 3))},
            "gpu": draw(computes(kind, continuous)),
        },
        "software": {"release": "2026.11"},
    }


@st.composite
def lustres(draw: st.DrawFn) -> dict[str, Any] | None:
    repositories = st.dictionaries(
        st.from_regex(r"/[a-z]{1,8}", fullmatch=True),
        st.fixed_dictionaries(
            {"prefix": st.from_regex(r"[a-z]{3,9}/", fullmatch=True)},
            optional={
                "import_events": st.just(["new", "changed"]),
                "export_events": st.just(["new", "deleted"]),
            },
        ),
        max_size=2,
    )
    return draw(
        st.one_of(
            st.none(),
            st.fixed_dictionaries(
                {"deployment": st.just("scratch-2"), "capacity_gib": st.sampled_from([1200, 2400, 7200])},
                optional={"data_repositories": repositories},
            ),
            st.fixed_dictionaries(
                {
                    "deployment": st.just("persistent-2-ssd"),
                    "capacity_gib": st.sampled_from([1200, 4800, 9600]),
                    "throughput_mbps_per_tib": st.sampled_from([125, 250, 500, 1000]),
                },
                optional={
                    "data_repositories": repositories,
                    "metadata_iops": st.sampled_from([1500, 12000, "automatic"]),
                    "compression": st.sampled_from(["none", "lz4"]),
                    "maintenance_window": st.just("7:03:00"),
                    "root_squash": st.just({"uid": 65534, "gid": 65534}),
                },
            ),
            st.just(
                {
                    "deployment": "persistent-2-ssd", "capacity_gib": 19200, "throughput_mbps_per_tib": 250,
                    "efa": True, "backups": {"retention_days": 7, "start_time": "02:30"},
                }
            ),
            st.just(
                {
                    "deployment": "persistent-1-hdd", "capacity_gib": 6000, "throughput_mbps_per_tib": 12,
                    "drive_cache": "read",
                }
            ),
            st.just({"deployment": "intelligent-tiering", "throughput_mbps": 4000, "metadata_iops": 6000}),
            st.just(
                {
                    "deployment": "existing", "id": "fs-0123456789abcdef0", "mount_name": "abcdefgh",
                    "dns_name": "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
                    "security_group_id": "sg-0a1b2c3d4e5f60718", "efa": True,
                }
            ),
        )
    )  # fmt: skip


@st.composite
def computes(draw: st.DrawFn, kind: str, continuous: bool) -> dict[str, Any]:
    known = instance_type(kind)
    assert known is not None
    count = draw(st.integers(2, 12))
    capacities = [{"kind": "on-demand"}]
    capacities += [{"kind": "spot"}] if continuous and known.spot else []
    if known.training_plan:
        capacities.append(
            {"kind": "training-plan", "arn": "arn:aws:sagemaker:us-east-2:111122223333:training-plan/a"}
        )
    group: dict[str, Any] = {
        "role": "compute", "instance_type": kind, "count": count, "partition": "gpu",
        "capacity": draw(st.sampled_from(capacities)), "volume_gib": draw(st.integers(1, 1024)),
    }  # fmt: skip
    if continuous and draw(st.booleans()):
        group["min_count"] = draw(st.integers(1, count))
    if draw(st.booleans()):
        group["deep_health_checks"] = ["instance-stress", "instance-connectivity"]
    if draw(st.booleans()):
        group["efa_interface"] = draw(st.sampled_from(["efa", "efa-only"]))
    if draw(st.booleans()):
        group["patching"] = draw(
            st.sampled_from(
                [
                    {"kind": "scheduled", "schedule": "cron(0 3 ? * SUN *)", "batch_percent": 25},
                    {"kind": "when-idle", "wait_seconds": 60},
                    {"kind": "when-all-idle", "rollback_alarms": ["too-hot"]},
                ]
            )
        )
    return group


def test_any_valid_environment_synthesises_and_passes_every_validator(tmp_path: Path) -> None:
    files: list[Path] = []
    excerpts = Excerpts()
    refused: list[str] = []

    @settings(
        max_examples=examples(ROUNDS), deadline=None, derandomize=True, database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    @given(environments())
    def synthesises(data: dict[str, Any]) -> None:
        one = loaded(data)
        errors = [finding for finding in check(one) if finding.blocks]
        if errors:
            refused.extend(finding.code for finding in errors)
            return
        made = assembly(one.environment)
        folder = Path(mkdtemp(dir=tmp_path))
        found = [excerpts.write_new(file, REGION, one.environment.name, folder) for file in made.files]
        files.extend(filter(None, found))
        assert made.findings == set()

    synthesises()

    assert len(files) > ROUNDS, f"the strategy mostly makes what the rules refuse: {refused}"
    assert cfn_lint(files, REGION) == ""
