"""An environment as ParallelCluster's configuration: every setting reaches its key, and traps stay closed.

Whether ParallelCluster accepts it, test_parallelcluster_validators.py says.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml
from rules_support import changed, environment_data, loaded

from ultracluster.catalog import instance_type
from ultracluster.config import Environment
from ultracluster.config.capacity import CapacityBlock, OnDemand, Reservation, Spot
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import resolve
from ultracluster.model.capacity import decide, placement_for
from ultracluster.parallelcluster.configuration_file import cluster_configuration
from ultracluster.parallelcluster.deployed_values import DeployedValues, value_sources
from ultracluster.parallelcluster.queues import CAPACITY_TYPES

TABLE = yaml.safe_load((Path(__file__).parent / "parallelcluster_keys.yaml").read_text(encoding="utf-8"))
VALUES = DeployedValues(
    subnet_id="subnet-0aaaaaaaaaaaaaaa1",
    further_subnet_ids="use1-az4=subnet-0aaaaaaaaaaaaaaa2",
    security_group_id="sg-0aaaaaaaaaaaaaaa1",
    node_policy_arn="arn:aws:iam::111122223333:policy/parallelcluster/nodes",
    head_policy_arn="arn:aws:iam::111122223333:policy/parallelcluster/head",
    login_policy_arn="arn:aws:iam::111122223333:policy/parallelcluster/login",
    scripts_bucket="scripts",
    scripts_prefix="parallelcluster-p5/0123456789ab",
    lustre_id="fs-0aaaaaaaaaaaaaaa1",
    openzfs_volume_id="fsvol-0aaaaaaaaaaaaaaa1",
    database_endpoint="db.example.com",
    database_secret_arn="arn:aws:secretsmanager:us-west-2:111122223333:secret:plain",  # noqa: S106
)
QUEUE = "Scheduling.SlurmQueues.0"
FIRST = f"{QUEUE}.ComputeResources.0"
SECOND = f"{QUEUE}.ComputeResources.1"
SETTINGS = "Scheduling.SlurmSettings"
BLOCK = {"kind": "capacity-block", "id": "cr-0123456789abcdef0"}
DIRECTORY = {
    "domain_name": "corp.example.com",
    "domain_address": "ldaps://corp.example.com",
    "password_secret_arn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:ldap",
    "read_only_user": "cn=reader",
}
NOTHING = object()
AMI = "ami-0123456789abcdef0"
CUSTOM = f"{SETTINGS}.CustomSlurmSettings"


def environment(changes: dict[str, Any] | None = None, *, base: str = "parallelcluster-p5") -> Environment:
    return loaded(changed(environment_data(base), changes or {})).environment


def rendered(changes: dict[str, Any] | None = None, *, base: str = "parallelcluster-p5") -> dict[str, Any]:
    return cluster_configuration(resolve(environment(changes, base=base)), VALUES)


def at(configuration: Any, path: str) -> Any:
    for part in path.split("."):
        try:
            configuration = configuration[int(part) if isinstance(configuration, list) else part]
        except (KeyError, IndexError):
            return NOTHING
    return configuration


@pytest.mark.parametrize(
    ("setting", "value", "path", "key"), TABLE["settings"], ids=lambda row: str(row)[:40]
)
def test_a_setting_reaches_its_key(setting: str, value: Any, path: str, key: Any) -> None:
    change = ... if value is None else value
    assert at(rendered({setting: change}), path) == (NOTHING if key == "nothing" else key)


def test_a_pool_that_people_reach_has_a_group_of_its_own() -> None:
    values = dataclasses.replace(VALUES, ssh_groups="login=sg-1,data=sg-2")
    pools = {"login": {"ssh_networks": ["10.0.0.0/8"]}}
    configuration = cluster_configuration(resolve(environment({"orchestrator.login_pools": pools})), values)

    assert configuration["LoginNodes"]["Pools"][0]["Networking"]["SecurityGroups"] == [
        VALUES.security_group_id, "sg-1",
    ]  # fmt: skip
    (queue,) = configuration["Scheduling"]["SlurmQueues"]
    for part in (configuration["HeadNode"], queue):
        assert part["Networking"]["SecurityGroups"] == [VALUES.security_group_id]
    placeholder = dataclasses.replace(VALUES, ssh_groups="<p5-cluster.SshGroups>")
    assert placeholder.security_groups_of("login")[-1] == "<p5-cluster.SshGroups.login>"


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({}, "180"),
        ({"gpu_health_checks": True}, "900"),
        ({"gpu_health_checks": True, "gpu_health_checks_by_group": {"reserved": False}}, "900"),
        (
            {
                "gpu_health_checks": True,
                "gpu_health_checks_by_group": {"reserved": False, "more": False},
            },
            "180",
        ),
    ],
)
def test_prologs_have_the_time_that_a_gpu_check_takes(settings: dict[str, Any], seconds: str) -> None:
    found = rendered({"orchestrator.partitions": {"train": settings}})
    lines = found["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"]
    assert {"PrologEpilogTimeout": seconds} in lines


@pytest.mark.parametrize(("topology", "param"), [("automatic", True), ("tree", True), ("flat", False)])
def test_without_a_topology_slurm_is_told_nothing_of_switches(topology: str, param: bool) -> None:
    lines = rendered({"orchestrator.topology": topology})["Scheduling"]["SlurmSettings"][
        "CustomSlurmSettings"
    ]
    assert ({"TopologyParam": "SwitchAsNodeRank"} in lines) is param


@pytest.mark.parametrize(
    ("more", "key", "value"),
    [
        ({}, "DomainName", "corp.example.com"),
        ({}, "DomainAddr", "ldaps://corp.example.com"),
        ({}, "DomainReadOnlyUser", "cn=reader"),
        ({}, "PasswordSecretArn", DIRECTORY["password_secret_arn"]),
        ({}, "LdapTlsReqCert", "hard"),
        ({}, "LdapTlsCaCert", NOTHING),
        ({"tls_require_certificate": "demand"}, "LdapTlsReqCert", "demand"),
        ({"tls_ca_certificate": "/ca.pem"}, "LdapTlsCaCert", "/ca.pem"),
        ({"access_filter": "(a=b)"}, "LdapAccessFilter", "(a=b)"),
        ({"generate_ssh_keys": False}, "GenerateSshKeysForUsers", False),
        ({"sssd_settings": {"a": 1}}, "AdditionalSssdConfigs", {"a": 1}),
    ],
)
def test_a_setting_of_the_directory_reaches_its_key(more: dict[str, Any], key: str, value: Any) -> None:
    configuration = rendered({"orchestrator.directory_service": DIRECTORY | more})

    assert at(configuration, f"DirectoryService.{key}") == value


@pytest.mark.parametrize(
    ("setting", "value", "path", "key"),
    [
        ("root_volume_gib", 400, "ComputeSettings.LocalStorage.RootVolume.Size", 400),
        ("root_volume_throughput_mbps", 500, "ComputeSettings.LocalStorage.RootVolume.Throughput", 500),
        ("image", AMI, "Image.CustomAmi", AMI),
        ("capacity", {"kind": "spot"}, "CapacityType", "SPOT"),
        ("capacity", {"kind": "spot", "allocation": "lowest-price"}, "AllocationStrategy", "lowest-price"),
        ("capacity", BLOCK, "CapacityType", "CAPACITY_BLOCK"),
    ],
)  # fmt: skip
def test_a_setting_of_all_groups_is_one_of_the_queue(setting: str, value: Any, path: str, key: Any) -> None:
    changes = {f"node_groups.{group}.{setting}": value for group in ("reserved", "more")}

    assert at(rendered(changes), f"{QUEUE}.{path}") == key


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("capacity", {"kind": "spot"}),
        ("root_volume_gib", 300),
        ("image", AMI),
    ],
)
def test_groups_of_one_queue_that_differ_are_refused(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"groups differ: reserved .*, more .*; give them partitions"):
        rendered({f"node_groups.more.{setting}": value})


def test_a_group_without_a_partition_is_a_queue_of_its_name() -> None:
    queues = rendered({"node_groups.more.partition": ...})["Scheduling"]["SlurmQueues"]

    assert [queue["Name"] for queue in queues] == ["train", "more"]


def test_every_deployed_value_is_used() -> None:
    marks = {
        field.name: f"mark-{field.name.replace('_', '-')}" for field in dataclasses.fields(DeployedValues)
    }
    values = {
        **marks,
        "further_subnet_ids": f"usw2-az3={marks['further_subnet_ids']}",
        "queue_scripts": f"train={marks['queue_scripts']}",
        "further_lustre_ids": f"fast={marks['further_lustre_ids']}",
        "ssh_groups": f"login={marks['ssh_groups']}",
    }
    fast = {"deployment": "scratch-2", "capacity_gib": 1200, "mount_path": "/fast"}
    reached = environment(
        {
            "orchestrator.login_pools": {"login": {"ssh_networks": ["10.0.0.0/8"]}},
            "storage.further_lustre": {"fast": fast},
            "network.further_zones": {"usw2-az3": {"cidr": "10.0.128.0/20"}},
            "node_groups.head.zone_id": "usw2-az3",
        }
    )
    text = str(cluster_configuration(resolve(reached), DeployedValues(**values)))

    assert [name for name, mark in marks.items() if mark not in text] == []


def test_every_node_is_in_our_group_and_subnet_without_ssh() -> None:
    """Our group sends everything to itself, which EFA needs; ParallelCluster's lets the world out, too."""
    configuration = rendered()
    groups = [configuration["HeadNode"], *configuration["LoginNodes"]["Pools"]]
    networks = [part["Networking"] for part in [*groups, *configuration["Scheduling"]["SlurmQueues"]]]

    assert all(network["SecurityGroups"] == [VALUES.security_group_id] for network in networks)
    assert all("AdditionalSecurityGroups" not in network for network in networks)
    assert all(
        VALUES.subnet_id in (network.get("SubnetId"), *network.get("SubnetIds", ())) for network in networks
    )
    assert {part["Ssh"]["AllowedIps"] for part in groups} == {"127.0.0.1/32"}
    assert configuration["Imds"] == {"ImdsSupport": "v2.0"}


def test_nodes_get_the_policy_of_their_role_and_none_of_aws() -> None:
    configuration = rendered()
    pools = configuration["LoginNodes"]["Pools"]
    told = {
        VALUES.head_policy_arn: [configuration["HeadNode"]],
        VALUES.login_policy_arn: pools,
        VALUES.node_policy_arn: configuration["Scheduling"]["SlurmQueues"],
    }

    assert "iam::aws:policy" not in str(configuration)
    assert "S3Access" not in str(configuration)
    for arn, nodes in told.items():
        assert nodes and all(one["Iam"] == {"AdditionalIamPolicies": [{"Policy": arn}]} for one in nodes)


@pytest.mark.parametrize("name", TABLE["capacities"])
def test_placement_and_reservation(name: str) -> None:
    """A managed placement group beside a reservation or a block loses the whole of the capacity."""
    capacity, placement, target = TABLE["capacities"][name]
    configuration = rendered({"node_groups.reserved.capacity": capacity, "node_groups.more": ...})

    assert at(configuration, f"{FIRST}.Networking.PlacementGroup") == placement
    assert at(configuration, f"{FIRST}.CapacityReservationTarget") == (
        NOTHING if target == "nothing" else target
    )
    assert at(configuration, f"{FIRST}.Efa") == {"Enabled": True}
    # of the queue it would hold for all of its compute resources
    assert "PlacementGroup" not in at(configuration, f"{QUEUE}.Networking")


def test_a_placement_group_can_be_declined() -> None:
    changes = {
        "node_groups.reserved.capacity": {"kind": "on-demand"},
        "node_groups.reserved.placement_group": "none",
        "node_groups.more": ...,
    }
    assert at(rendered(changes), f"{FIRST}.Networking.PlacementGroup") == {"Enabled": False}


def test_a_type_without_efa_has_neither_efa_nor_placement() -> None:
    configuration = rendered({"node_groups.more.instance_type": "g6e.xlarge"})

    assert at(configuration, f"{SECOND}.Efa") is NOTHING
    assert at(configuration, f"{SECOND}.Networking") is NOTHING


def test_a_reservation_in_a_group_names_it_without_efa_too() -> None:
    capacity = {"kind": "reservation", "placement_group": "mine"}
    configuration = rendered(
        {"node_groups.more.instance_type": "g6e.xlarge", "node_groups.more.capacity": capacity}
    )

    assert at(configuration, f"{SECOND}.Networking.PlacementGroup") == {"Name": "mine"}


def test_a_block_is_all_there_or_not_at_all() -> None:
    configuration = rendered(
        {
            "node_groups.reserved.capacity": BLOCK,
            "node_groups.reserved.max_count": 8,
            "node_groups.more": ...,
        }
    )

    assert at(configuration, f"{FIRST}.MinCount") == at(configuration, f"{FIRST}.MaxCount") == 4


@pytest.mark.parametrize(
    "capacity",
    [
        OnDemand(),
        Spot(kind="spot"),
        Reservation(kind="reservation"),
        CapacityBlock(kind="capacity-block", id=BLOCK["id"]),
    ],
    ids=lambda capacity: capacity.kind,
)
def test_capacity_types_are_those_of_the_decision_table(capacity: Any) -> None:
    kind = instance_type("p5.48xlarge")
    assert kind
    placement = placement_for(capacity, instance_type=kind, orchestrator="parallelcluster")
    decision = decide(capacity, orchestrator="parallelcluster", placement=placement.kind, instance_type=kind)

    assert decision.purchase == CAPACITY_TYPES.get(capacity.kind, "ONDEMAND")


def test_slurm_settings_have_one_key_per_entry() -> None:
    """With two, ParallelCluster lets pass what it denies."""
    configuration = rendered({"orchestrator.slurm_settings": {"KillWait": 60, "MessageTimeout": 90}})

    entries = at(configuration, CUSTOM)
    assert {len(entry) for entry in entries} == {1}
    assert {"KillWait": "60"} in entries and {"MessageTimeout": "90"} in entries


def test_gb200() -> None:
    configuration = rendered(base="parallelcluster-gb200")

    assert at(configuration, FIRST) == {
        "Name": "gb200",
        "InstanceType": "p6e-gb200.36xlarge",
        "MinCount": 18,
        "MaxCount": 18,
        "DisableSimultaneousMultithreading": True,
        "Efa": {"Enabled": True},
        "Networking": {"PlacementGroup": {"Enabled": False}},
        "CapacityReservationTarget": {"CapacityReservationId": "cr-0fedcba9876543210"},
    }
    assert at(configuration, f"{QUEUE}.CapacityType") == "CAPACITY_BLOCK"
    assert at(configuration, f"{QUEUE}.JobExclusiveAllocation") is True
    entries = at(configuration, CUSTOM)
    assert {"PrologFlags": "Alloc,NoHold"} in entries and {"MessageTimeout": "240"} in entries


def test_head_and_login_nodes_of_a_local_zone_are_in_a_zone_of_the_region() -> None:
    configuration = rendered(base="parallelcluster-gb200")

    other = "subnet-0aaaaaaaaaaaaaaa2"
    assert at(configuration, "HeadNode.Networking.SubnetId") == other
    assert at(configuration, "LoginNodes.Pools.0.Networking.SubnetIds") == [other]
    assert at(configuration, f"{QUEUE}.Networking.SubnetIds") == [VALUES.subnet_id]


def test_what_someone_says_of_slurm_goes_before_our_defaults() -> None:
    configuration = rendered(
        {"orchestrator.slurm_settings": {"MessageTimeout": 300}}, base="parallelcluster-gb200"
    )

    timeouts = [entry for entry in at(configuration, CUSTOM) if "MessageTimeout" in entry]
    assert timeouts == [{"MessageTimeout": "300"}]
    assert {"UnkillableStepTimeout": "1500"} in at(configuration, CUSTOM)


@pytest.mark.parametrize(("imex", "scripts"), [(True, 2), (False, 1)])
def test_the_imex_prolog_is_installed_on_the_head_node_alone(imex: bool, scripts: int) -> None:
    configuration = rendered({"orchestrator.imex": imex}, base="parallelcluster-gb200")
    actions = configuration["HeadNode"]["CustomActions"]

    for name in ("OnNodeConfigured", "OnNodeUpdated"):
        sequence = actions[name].get("Sequence", [actions[name]])
        assert len(sequence) == scripts
        assert any("files/imex_install" in script["Args"] for script in sequence) is imex
    assert str(configuration).count("imex") == (2 if imex else 0)


def test_the_imex_prolog_does_not_need_the_other_scripts() -> None:
    configuration = rendered({"orchestrator.lifecycle": "none"}, base="parallelcluster-gb200")

    assert set(configuration["HeadNode"]["CustomActions"]) == {"OnNodeConfigured", "OnNodeUpdated"}
    assert "CustomActions" not in at(configuration, QUEUE)


def test_scripts_that_changed_change_nothing_that_must_not_change() -> None:
    """ParallelCluster refuses an update in which OnNodeStart or OnNodeConfigured of head or login differ."""
    before = rendered()
    newer = dataclasses.replace(
        VALUES, scripts_prefix="parallelcluster-p5/ba9876543210", queue_scripts="train=ba9876543211"
    )
    after = cluster_configuration(resolve(environment()), newer)

    for part in (lambda c: c["HeadNode"], lambda c: c["LoginNodes"]["Pools"][0]):
        old, new = (part(c)["CustomActions"] for c in (before, after))
        assert {key for key in old if old[key] != new[key]} == {"OnNodeUpdated"}
    old, new = (at(c, f"{QUEUE}.CustomActions") for c in (before, after))
    assert {key for key in old if old[key] != new[key]} == {"OnNodeStart", "OnNodeConfigured"}


def test_queues_have_folders_of_their_own() -> None:
    """A queue is drained when its scripts change: those of head and login nodes may not count."""
    values = dataclasses.replace(VALUES, queue_scripts="train=ba9876543210,other=ba9876543211")
    more = environment({"node_groups.more.partition": "other"})
    first, second = cluster_configuration(resolve(more), values)["Scheduling"]["SlurmQueues"]
    uris = [queue["CustomActions"]["OnNodeStart"]["Args"][0] for queue in (first, second)]

    assert uris == [f"s3://scripts/parallelcluster-p5/ba987654321{number}" for number in (0, 1)]
    placeholders = value_sources(more).placeholders()
    assert placeholders.queue_scripts_uri("train").endswith(
        "/<parallelcluster-p5-cluster.QueueScripts.train>"
    )


def test_actions_name_the_entry_and_the_group() -> None:
    configuration = rendered({"node_groups.more.partition": "other"})
    uri = "s3://scripts/parallelcluster-p5/0123456789ab"

    assert at(configuration, f"{QUEUE}.CustomActions.OnNodeStart") == {
        "Script": f"{uri}/files/from_s3.sh",
        "Args": [uri, "parallelcluster_on_node_start", "--group", "reserved"],
    }
    assert at(configuration, "HeadNode.CustomActions.OnNodeConfigured") == {
        "Script": "s3://scripts/parallelcluster-p5/current/files/from_s3.sh",
        "Args": [
            "s3://scripts/parallelcluster-p5/current",
            "parallelcluster_on_node_configured",
            "--group",
            "head",
        ],
    }


def test_nodes_of_a_queue_of_several_groups_find_their_own() -> None:
    assert at(rendered(), f"{QUEUE}.CustomActions.OnNodeStart.Args")[1:] == ["parallelcluster_on_node_start"]


def test_an_existing_database_brings_its_own_user_and_port() -> None:
    database = {
        "kind": "existing",
        "endpoint": "db.corp.example.com",
        "port": 3307,
        "secret_arn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:db",
        "username": "accounting",
        "security_group_id": "sg-0123456789abcdef0",
    }
    changes = {"storage.accounting_database": database}
    values = value_sources(environment(changes)).placeholders()
    configuration = cluster_configuration(resolve(environment(changes)), values)

    assert at(configuration, f"{SETTINGS}.Database") == {
        "Uri": "db.corp.example.com:3307",
        "UserName": "accounting",
        "PasswordSecretArn": "<parallelcluster-p5-cluster.AccountingPasswordSecretArn>",
        "DatabaseName": "slurm_acct_db",
    }


def test_another_orchestrator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"orchestrator\.kind is hyperpod-slurm"):
        rendered(base="dev")


def test_the_text_says_the_same_to_a_reader_of_yaml_1_1() -> None:
    """PyYAML, which ParallelCluster reads with, takes 12:00:00 for 43200 and no for false."""
    configuration = rendered(
        {
            "orchestrator.partitions.train.slurm_settings": {"MaxTime": "12:00:00", "Hidden": "no"},
            "tags": {"on": "off", "version": "3.10", "long": "word " * 45},
        }
    )

    assert yaml.safe_load(yaml_text(configuration)) == configuration


def test_root_volumes_of_accelerated_queues_are_fast() -> None:
    configuration = rendered()
    slower = rendered(
        {f"node_groups.{name}.root_volume_throughput_mbps": 125 for name in ("reserved", "more")}
    )

    assert at(configuration, f"{QUEUE}.ComputeSettings.LocalStorage.RootVolume") == {
        "Size": 200,
        "Encrypted": True,
        "VolumeType": "gp3",
        "Throughput": 1000,
        "Iops": 4000,
    }
    assert at(slower, f"{QUEUE}.ComputeSettings.LocalStorage.RootVolume") == {"Size": 200, "Encrypted": True}
    assert "Throughput" not in configuration["HeadNode"]["LocalStorage"]["RootVolume"]
