"""What stands alone is clean by itself: strict validation and cdk-nag find nothing in another team's app."""

from __future__ import annotations

from pathlib import Path

import pytest
from aws_cdk import App, Stack, Validations
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks
from foreign import HOME, imported_vpc
from templates import app_in, cfn_lint, finish

from ultracluster import (
    AccountingDatabase,
    ClusterKey,
    ClusterNetwork,
    DataBucket,
    DataRepositories,
    DataRepository,
    DeletionProtection,
    EfaSecurityGroup,
    LustreFileSystem,
    OpenZfsFileSystem,
)
from ultracluster.config.storage import RootSquash


def everything(app: App) -> Stack:
    stack = Stack(app, "research", env=HOME)
    network = ClusterNetwork(
        stack,
        "Network",
        zone_id="use1-az6",
        second_zone_id="use1-az4",
        flow_log_key=ClusterKey.of(stack, None),
    )
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=network.vpc)
    lustre = LustreFileSystem(
        stack,
        "Scratch",
        vpc=network.vpc,
        subnet=network.subnet,
        capacity_gib=38_400,
        efa=True,
        log_level="warn-error",
        root_squash=RootSquash(uid=1000, gid=1000),
    )
    DataRepositories(
        stack,
        "Links",
        file_system=lustre,
        repositories={"/data": DataRepository(import_events=("new", "changed", "deleted"))},
        bucket=DataBucket(stack, "Data").bucket,
    )
    home = OpenZfsFileSystem(stack, "Home", vpc=network.vpc, subnet=network.subnet, capacity_gib=512)
    accounting = AccountingDatabase(stack, "Accounting", vpc=network.vpc, subnets=network.database_subnets)
    for server in (lustre, home, accounting):
        server.connections.allow_default_port_from(nodes)
    DeletionProtection(stack, "Protection", database=accounting)
    return stack


@pytest.mark.parametrize("flags", [True, False], ids=["our flags", "no flags"])
def test_nothing_is_found(tmp_path: Path, flags: bool) -> None:
    app = app_in(tmp_path) if flags else App(outdir=str(tmp_path), analytics_reporting=False)
    everything(app)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))

    made = finish(app, tmp_path)

    assert made.findings == set()
    assert cfn_lint([tmp_path / "research.template.json"], "us-east-1") == ""


def test_in_a_vpc_and_with_things_that_exist(tmp_path: Path) -> None:
    app = app_in(tmp_path)
    stack = Stack(app, "research", env=HOME)
    vpc = imported_vpc(stack)
    key = kms.Key(stack, "Key", enable_key_rotation=True)
    bucket = s3.Bucket.from_bucket_name(stack, "Data", "our-data")
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=vpc)
    lustre = LustreFileSystem(
        stack,
        "Scratch",
        vpc=vpc,
        subnet=vpc.private_subnets[0],
        capacity_gib=4800,
        key=key,  # type: ignore[arg-type]
        data_repositories={"/data": DataRepository()},
        data_bucket=bucket,
    )
    lustre.connections.allow_default_port_from(nodes)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))

    assert finish(app, tmp_path).findings == set()
