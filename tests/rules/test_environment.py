"""Rules on the environment as a whole, each broken and mended."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import GB300
from rules_table import Case, found, table_tests

from ultracluster.catalog import regions
from ultracluster.rules.environment.tags import TAGS_OF_OURS
from ultracluster.rules.sets import ENV
from ultracluster.rules.zones import in_local_zone

ZONE = "network.zone_id"
TYPE = "node_groups.gpu.instance_type"
LACKS = ("ENV032", "ENV033")
"""Of what a Local Zone does not offer."""
PARENT = "network.further_zones"
NEW = "p6e-gb300.36xlarge"
KEY = "arn:aws:kms:us-west-2:111122223333:key/0f6d"
SLURM = "arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm"


def key(arn: str) -> dict[str, Any]:
    return {"storage.key": {"arn": arn}}


def tags(count: int) -> dict[str, Any]:
    return {"tags": {f"key-{number}": "value" for number in range(count)}}


USER = "access.session_user"
CASES = [
    Case(
        "ENV019",
        {"prices": "../nothing.csv"},
        "prices",
        "../nothing.csv does not exist",
        "ultracluster prices update dev",
        {"prices": ...},
    ),
    Case(
        "ENV016",
        {"tags": {"AWS:team": "ml"}},
        "tags.AWS:team",
        "keeps for tags of its own",
        "team",
        {"tags": {"team": "ml"}},
    ),
    Case(
        "ENV016",
        {"tags": {"aws:": "ml"}},
        "tags.aws:",
        "in whatever case",
        "remove aws:",
        {"tags": {"aws-team": "ml"}},
    ),
    *(
        Case(
            "ENV017",
            {"storage.log_bucket": {"name": name}},
            "storage.log_bucket.name",
            why,
            "the name of the bucket",
            {"storage.log_bucket": {"name": "logs.example-s3"}},
        )
        for name, why in (
            ("my..logs", "two dots"),
            ("10.0.0.1", "an IP address"),
            ("xn--logs", "begin with `xn--`"),
            ("amzn-s3-demo-logs", "for itself"),
            ("logs-abc-s3alias", "alias of an access point"),
            ("logs--usw2-az1--x-s3", "directory bucket"),
        )
    ),
    Case(
        "ENV017",
        {"software.mirror": "s3://xn--mirror/a"},
        "software.mirror",
        "`xn--mirror`",
        "the name of the bucket",
        {"software.mirror": "s3://mirror/a"},
    ),
    Case(
        "ENV014",
        {USER: "ec2-user"},
        USER,
        "not on the images of hyperpod-slurm",
        "whom nodes make",
        {USER: ...},
    ),
    Case(
        "ENV014",
        {USER: "ubuntu"},
        USER,
        "not on the images of hyperpod-eks",
        "ultracluster",
        {USER: ...},
        base="hyperpod-eks-p5",
    ),
    Case("ENV014", {USER: "root"}, USER, "opens no session as root", "connect --admin", {USER: ...}),
    Case(
        "ENV003",
        {ZONE: "us-west-2a"},
        ZONE,
        "is the name of a zone, not its id",
        "the id that this account has for it, one of usw2-az1, usw2-az2, usw2-az3, usw2-az4",
        {ZONE: "usw2-az1"},
    ),
    Case(
        "ENV003",
        {ZONE: "us-east-1-dfw-2a"},
        ZONE,
        "is the name of a zone, not its id",
        "usw2-az1",
        {ZONE: "usw2-az1"},
    ),
    Case(
        "ENV003",
        {ZONE: "west-az1"},
        ZONE,
        "does not have the form of a zone id of us-west-2",
        "usw2-az1",
        {ZONE: "usw2-az3"},
    ),
    Case(
        "ENV032",
        {ZONE: "usw2-lax1-az1", "network.egress": "closed"},
        ZONE,
        "the interface endpoints (",
        "network.further_zones.usw2-az2: {cidr: 10.0.128.0/18}",
        {PARENT: {"usw2-az2": {"cidr": "10.0.128.0/18"}}},
    ),
    Case(
        "ENV033",
        {"node_groups.system.zone_id": ...},
        "node_groups.system",
        "m7g.4xlarge would be in use1-dfw2-az1: a Local Zone has few types",
        "zone_id: use1-az4",
        {"node_groups.system.zone_id": "use1-az4"},
        base="wishes/ultraservers-kubernetes",
    ),
    Case(
        "ENV034",
        {**key(KEY.replace("111122223333", "444455556666")), "account": ...},
        "storage.key.arn",
        "the file has ARNs of account 444455556666 and no `account`",
        'account: "444455556666"',
        {"account": "444455556666"},
    ),
    Case(
        "ENV013",
        {"account": "444455556666"},
        "orchestrator.admins[0]",
        "the ARN is of account 111122223333",
        "an ARN of 444455556666",
        {"account": "111122223333"},
        base="eks-trn2",
    ),
    Case(
        "ENV006",
        {TYPE: NEW},
        TYPE,
        f"no instance type `{NEW}`",
        f"declared under instance_types: {{{NEW}: ...}}",
        {"instance_types": {NEW: GB300}},
    ),
    Case(
        "ENV037",
        {"network.zone_id": "use2-wl1-dtw-wlz1"},
        "node_groups.train",
        "in a Wavelength Zone that you manage yourself",
        "a zone of the Region, or a Local Zone",
        {"network.zone_id": "use2-az1"},
        base="eks-p5en",
    ),
    Case(
        "ENV007",
        {"instance_types": {"p5.48xlarge": GB300}},
        'instance_types."p5.48xlarge"',
        "the catalogue now has `p5.48xlarge`",
        "remove p5.48xlarge",
        {"instance_types": {NEW: GB300}, TYPE: NEW},
    ),
    Case(
        "ENV010",
        {"tags": {"Project": "a", "project": "b"}},
        "tags.project",
        "the same key as `Project`",
        "remove project",
        {"tags": {"Project": "a", "projects": "b"}},
    ),
    Case(
        "ENV010",
        {"tags": {"Ultracluster:Environment": "a"}},
        "tags.Ultracluster:Environment",
        "which is set on every resource",
        "rename",
        {"tags": {"ultracluster:team": "a"}},
    ),
    Case(
        "ENV010",
        {"tags": {TAGS_OF_OURS[0]: "a"}},
        f"tags.{TAGS_OF_OURS[0]}",
        "which is set on every resource",
        "rename",
        {"tags": {}},
    ),
    Case(
        "ENV011",
        {"tags": {"owner": "ml & data"}},
        "tags.owner",
        "the value `ml & data` has &",
        "ml - data",
        {"tags": {"owner": "équipe données"}},
    ),
    Case(
        "ENV011",
        {"tags": {"who#": "ml"}},
        "tags.who#",
        "the key `who#` has #",
        "who-",
        {"tags": {"a.b:c/d=e+f-g@h": "ml"}},
    ),
    Case(
        "ENV012",
        key(KEY.replace("arn:aws:", "arn:aws-cn:")),
        "storage.key.arn",
        "partition `aws-cn`",
        "arn:aws:kms:us-west-2:",
        key(KEY),
    ),
    Case(
        "ENV012",
        {
            "node_groups.gpu.capacity": {
                "kind": "training-plan",
                "arn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/a",
            }
        },
        "node_groups.gpu.capacity.arn",
        "cannot use what sagemaker has in another",
        "arn:aws:sagemaker:us-west-2:",
        {
            "node_groups.gpu.capacity": {
                "kind": "training-plan",
                "arn": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/a",
            }
        },
    ),
]


test_breaks_and_is_mended, test_advice_works = table_tests(cases=CASES)


def test_nothing_is_said_of_zones_and_arns_in_a_region_that_does_not_exist() -> None:
    changes = {"region": "us-west-22", ZONE: "use1-az1", **key(KEY)}
    assert [one.code for one in found(ENV, changes)] == ["ENV001"]


def test_a_zone_is_reported_by_one_rule_only() -> None:
    for zone in ("us-west-2a", "use1-az1", "usw2-az9", "usw2-lax1-az1", "nonsense"):
        codes = [one.code for one in found(ENV, {ZONE: zone}) if one.code not in LACKS]
        assert len(codes) == 1, zone


def test_each_zone_that_was_seen_is_clean() -> None:
    for home in regions().values():
        for zone in home.zone_ids:
            codes = {one.code for one in found(ENV, {"region": home.name, ZONE: zone})}
            assert codes <= {"ENV002", "ENV005", *LACKS}, zone
            assert ("ENV005" in codes) == in_local_zone(home, zone) == (zone.count("-") == 2)


def test_a_region_without_a_known_form_of_zone_ids_is_not_judged() -> None:
    assert found(ENV, {"region": "eusc-de-east-1", ZONE: "eusc-de-east-1-az1"}) == []


def test_a_local_zone_without_a_nat_gateway_of_ours_says_nothing_of_one() -> None:
    findings = found(ENV, {ZONE: "usw2-lax1-az1", "network.egress": "closed"})
    assert findings and not [one for one in findings if "NAT gateway" in one.message]


def test_every_arn_of_a_file_is_looked_at() -> None:
    database = {
        "kind": "existing",
        "endpoint": "db.example.com",
        "secret_arn": SLURM,
        "secret_key_arn": KEY,
        "security_group_id": "sg-0123456789abcdef0",
    }
    reservation = {
        "kind": "reservation",
        "resource_group_arn": "arn:aws:resource-groups:us-west-2:111122223333:group/g",
    }
    changes = {
        **key(KEY),
        "storage.accounting_database": database,
        "node_groups.gpu.capacity": reservation,
    }
    moved = {**changes, "region": "us-east-1", ZONE: "use1-az1"}
    assert [one.code for one in found(ENV, moved)] == ["ENV012"] * 4


def test_an_arn_without_a_region_or_an_account_is_of_every_one() -> None:
    arn = "arn:aws:resource-groups:::group/g"
    capacity = {"kind": "reservation", "resource_group_arn": arn}
    changes = {"account": "111122223333", "node_groups.gpu.capacity": capacity}
    assert found(ENV, changes) == []


def test_a_declared_type_of_the_same_family_is_suggested() -> None:
    changes = {"instance_types": {NEW: GB300}, TYPE: "p6e-gb300.63xlarge"}
    (wrong, _) = found(ENV, changes)
    assert wrong.remedy.options[0][0].value == NEW


@pytest.mark.parametrize(("zone_id", "code"), [("use2-az1", "ENV003"), ("use1-az9", "ENV004")])
def test_no_zone_is_advised_where_eks_takes_no_control_plane(zone_id: str, code: str) -> None:
    changes = {"region": "us-east-1", ZONE: zone_id, "orchestrator.second_zone_id": "use1-az2"}

    (finding,) = [one for one in found(ENV, changes, "eks-p5en") if one.code == code]

    assert "use1-az1" in finding.instead
    assert "use1-az3" not in finding.instead
