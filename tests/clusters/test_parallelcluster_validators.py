"""ParallelCluster's own schema and all of its validators, over every configuration that we render.

First the harness is shown faults that it must find; then our environments, shipped and invented, must pass;
last our rules and the validators must say the same of the same mistakes.
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from parallelcluster.account import (
    LUSTRE,
    LUSTRE_GROUP,
    NODES,
    OTHER_SUBNET,
    PLAIN_GROUP,
    Facts,
    block_status,
    reservation,
)
from parallelcluster.cases import BASE, CASES
from parallelcluster.explained import EXPLAINED, EXPLAINED_WITH_A_RESERVATION, unexplained
from parallelcluster.harness import HERE, PYTHON, Case, Found, judged
from parallelcluster.rendered import case_of, validated
from parallelcluster.sample import (
    POLICY,
    REGION,
    SCRIPT,
    SECRET,
    ZONE,
    configuration,
    facts,
    queue,
    sample,
)
from parallelcluster.strategies import environments
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded

from ultracluster.config import Environment, load
from ultracluster.rules import check
from ultracluster.rules.sets import PCL

BLOCK = "cr-0123456789abcdef0"

# --- what the harness must find

Change = Callable[[dict[str, Any], Facts], None]


def on_block(configuration: dict[str, Any], facts: Facts, **counts: int) -> None:
    """The queue's nodes come from a Capacity Block of four."""
    queue(configuration)["CapacityType"] = "CAPACITY_BLOCK"
    del queue(configuration)["Networking"]["PlacementGroup"]
    resource = queue(configuration)["ComputeResources"][0]
    resource |= {"CapacityReservationTarget": {"CapacityReservationId": BLOCK}, **counts}
    facts["reservations"][BLOCK] = reservation(
        BLOCK, kind=resource["InstanceType"], count=4, region=REGION, zone_id=ZONE, block=True
    )


def reserved(configuration: dict[str, Any], facts: Facts, **differently: Any) -> None:
    """The queue's nodes come from a reservation of four."""
    queue(configuration)["Networking"]["PlacementGroup"] = {"Enabled": False}
    queue(configuration)["CapacityReservationTarget"] = {"CapacityReservationId": BLOCK}
    made = {"kind": "p5.48xlarge", "count": 4, "zone_id": ZONE, "region": REGION}
    facts["reservations"][BLOCK] = reservation(BLOCK, **{**made, **differently})


def ultraservers(configuration: dict[str, Any], facts: Facts, *, total: int, unavailable: int = 0) -> None:
    from parallelcluster.account import describe_type

    configuration["HeadNode"]["InstanceType"] = "m7g.2xlarge"
    queue(configuration)["ComputeResources"][0]["InstanceType"] = "p6e-gb200.36xlarge"
    for name in ("m7g.2xlarge", "p6e-gb200.36xlarge"):
        facts["instance_types"][name] = describe_type(name)
    on_block(configuration, facts, MinCount=4, MaxCount=4)
    facts["blocks"][BLOCK] = block_status(BLOCK, total=total, unavailable=unavailable)
    facts["reservations"][BLOCK] |= {
        "TotalInstanceCount": total,
        "AvailableInstanceCount": total - unavailable,
    }


def without(facts: Facts, kind: str, key: str) -> None:
    del facts[kind][key]


def no_placement(configuration: dict[str, Any], _: Facts) -> None:
    del queue(configuration)["Networking"]["PlacementGroup"]


def plain_groups(configuration: dict[str, Any], _: Facts) -> None:
    queue(configuration)["Networking"]["SecurityGroups"] = [PLAIN_GROUP]


def closed_file_system(_: dict[str, Any], facts: Facts) -> None:
    facts["security_groups"][LUSTRE_GROUP]["IpPermissions"] = []


def foreign_file_system(_: dict[str, Any], facts: Facts) -> None:
    facts["file_systems"][LUSTRE]["VpcId"] = "vpc-0bbbbbbbbbbbbbbb1"


def public_addresses(configuration: dict[str, Any], _: Facts) -> None:
    queue(configuration)["Networking"]["AssignPublicIp"] = True


def two_subnets(configuration: dict[str, Any], _: Facts) -> None:
    queue(configuration)["Networking"]["SubnetIds"].append(OTHER_SUBNET)


def unknown_key(configuration: dict[str, Any], _: Facts) -> None:
    configuration["HeadNode"]["Ami"] = "ami-0123456789abcdef0"


def both_groups(configuration: dict[str, Any], _: Facts) -> None:
    queue(configuration)["Networking"]["AdditionalSecurityGroups"] = [NODES]


def denied_setting(configuration: dict[str, Any], _: Facts) -> None:
    configuration["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"] = [{"Prolog": "/opt/check.sh"}]


FAULTS: dict[str, tuple[Change, str]] = {
    "EFA without a word on placement": (no_placement, "EfaPlacementGroupValidator"),
    "a block that grows": (lambda c, f: on_block(c, f, MinCount=2), "ComputeResourceSizeValidator"),
    "an UltraServer's block of 17": (
        lambda c, f: ultraservers(c, f, total=17),
        "UltraserverCapacityBlockSizeValidator",
    ),
    "an UltraServer's block with faulty instances": (
        lambda c, f: ultraservers(c, f, total=18, unavailable=17),
        "CapacityBlockHealthStatusValidator",
    ),
    "a reservation that is too small": (
        lambda c, f: reserved(c, f, count=3),
        "CapacityReservationSizeValidator",
    ),
    "a reservation in another zone": (
        lambda c, f: reserved(c, f, zone_id="use1-az2"),
        "CapacityReservationValidator",
    ),
    "a reservation of another type": (
        lambda c, f: reserved(c, f, kind="p5en.48xlarge"),
        "CapacityReservationValidator",
    ),
    "a reservation of another platform": (
        lambda c, f: reserved(c, f, InstancePlatform="Red Hat Enterprise Linux"),
        "CapacityReservationValidator",
    ),
    "security groups without rules to themselves": (plain_groups, "EfaSecurityGroupValidator"),
    "a file system that lets nobody in": (closed_file_system, "ExistingFsxNetworkingValidator"),
    "a file system in another VPC": (foreign_file_system, "ExistingFsxNetworkingValidator"),
    "public addresses on many network cards": (public_addresses, "MultiNetworkInterfacesInstancesValidator"),
    "EFA over two zones": (two_subnets, "EfaMultiAzValidator"),
    "a secret that is not there": (
        lambda _, f: without(f, "secrets", SECRET),
        "PasswordSecretArnValidator",
    ),
    "a policy that is not there": (
        lambda _, f: without(f, "policies", POLICY),
        "AdditionalIamPolicyValidator",
    ),
    "a Slurm setting of ParallelCluster's own": (denied_setting, "CustomSlurmSettingsValidator"),
    "a key that there is not": (unknown_key, "Schema"),
    "two kinds of security groups": (both_groups, "Schema"),
}


def faulty(name: str, change: Change) -> Case:
    known, config = copy.deepcopy(facts()), configuration()
    change(config, known)
    return sample(name, config, known)


@pytest.fixture(scope="module")
def verdicts() -> dict[str, list[Found]]:
    """What is said of the sample, of what is right about it, and of each fault."""
    right: dict[str, Change] = {
        "sample": lambda *_: None,
        "a block": on_block,
        "a reservation": reserved,
        "UltraServers": lambda c, f: ultraservers(c, f, total=18),
    }
    changes = right | {name: change for name, (change, _) in FAULTS.items()}
    return judged([faulty(name, change) for name, change in changes.items()])


@pytest.mark.parametrize("name", ["sample", "a block", "a reservation", "UltraServers"])
def test_what_is_right_passes(verdicts: dict[str, list[Found]], name: str) -> None:
    reasons = EXPLAINED | (EXPLAINED_WITH_A_RESERVATION if name == "a reservation" else {})
    assert [one for one in verdicts[name] if one.level != "INFO" and one.validator not in reasons] == []


@pytest.mark.parametrize("name", FAULTS)
def test_real_faults_are_found(verdicts: dict[str, list[Found]], name: str) -> None:
    errors = {one.validator for one in verdicts[name] if one.level == "ERROR"}
    assert FAULTS[name][1] in errors, verdicts[name]


def test_a_script_that_is_not_there_is_found() -> None:
    """ParallelCluster only warns of it; to us a warning without a reason is a failure, too."""
    known = facts()
    without(known, "objects", SCRIPT)
    found = judged([sample("no script", configuration(), known)])["no script"]
    assert {one.level for one in unexplained(found) if SCRIPT in one.message or "node.sh" in one.message}, (
        found
    )


def test_a_question_without_an_answer_is_named() -> None:
    config = configuration()
    config["HeadNode"]["Ssh"] = {"KeyName": "mine"}
    with pytest.raises(AssertionError, match=r"ec2\.DescribeKeyPairs"):
        judged([sample("a key pair", config)])


@pytest.mark.parametrize("script", ["limits.py", "validate.py"])
def test_what_packages_print_is_no_part_of_the_answer(script: str) -> None:
    noisy = (
        "import atexit, os, runpy, sys\n"
        "import urllib.request\n"
        "atexit.register(os.write, 1, b'at exit')\n"
        "install = urllib.request.install_opener\n"
        "urllib.request.install_opener = lambda opener: (print('before'), install(opener))\n"
        "runpy.run_path(sys.argv[1], run_name='__main__')\n"
    )
    done = subprocess.run(
        [PYTHON, "-I", "-c", noisy, HERE / script], input="[]", capture_output=True, text=True, check=True
    )
    json.loads(done.stdout)
    assert "before" in done.stderr and "at exit" in done.stderr


def test_an_answer_of_another_form_is_named() -> None:
    known = facts()
    known["file_systems"][LUSTRE] = {**known["file_systems"][LUSTRE], "Vpc": "vpc-0bbbbbbbbbbbbbbb1"}
    with pytest.raises(AssertionError, match="Unknown parameter in FileSystems"):
        judged([sample("a misspelt answer", configuration(), known)])


# --- what we render


def test_shipped_environments_pass() -> None:
    environments = {
        name: environment
        for name in ENVIRONMENTS
        if (environment := load(ROOT / "environments" / f"{name}.yaml").environment).orchestrator.kind
        == "parallelcluster"
    }
    assert environments
    for name, found in validated(environments).items():
        assert unexplained(found, environments[name]) == [], name


ROUNDS = 12


def test_any_valid_environment_passes() -> None:
    """The environments are made first and judged together: starting the validators costs most."""
    valid: dict[str, Environment] = {}
    refused: list[str] = []

    @settings(
        max_examples=examples(ROUNDS), deadline=None, derandomize=True, database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    @given(environments())
    def collect(data: dict[str, Any]) -> None:
        one = loaded(data)
        errors = [finding.code for finding in check(one) if finding.blocks]
        refused.extend(errors)
        if not errors:
            valid[str(len(valid))] = one.environment

    collect()

    assert len(valid) > ROUNDS / 3, f"the strategy mostly makes what the rules refuse: {refused}"
    for name, found in validated(valid).items():
        assert unexplained(found, valid[name]) == [], valid[name]


# --- whether our rules and their validators agree

RENDERING = "rendering"
"""No configuration can say it: rendering refuses what the rules would have."""
AGREES: dict[str, str] = {
    "GRP011": RENDERING,
    "PCL005": "RootVolumeEncryptionConsistencyValidator",
    "PCL006": "Schema",
    "PCL010": "NameValidator",
    "PCL011": "NameValidator",
    "PCL012": "MaxCountValidator",
    "PCL013": "MaxCountValidator",
    "PCL014": "MaxCountValidator",
    "PCL015": RENDERING,
    "GRP020": "CapacityTypeValidator",
    "GRP021": "CapacityTypeValidator",
    "PCL023": "Schema",
    "GRP027": "CapacityReservationValidator",
    "PCL025": "UltraserverCapacityBlockSizeValidator",
    "PCL030": "InstanceTypeOSCompatibleValidator",
    "PCL032": "InstanceArchitectureCompatibilityValidator",
    "PCL033": "HeadNodeMemorySizeValidator",
    "PCL034": "InstanceTypeOSCompatibleValidator",
    "PCL036": "AWSClientError",
    "GRP030": "InstanceTypeBaseAMICompatibleValidator",
    "PCL039": "RootVolumeSizeValidator",
    "PCL040": "CustomSlurmSettingsValidator",
    "PCL041": "CustomSlurmSettingsValidator",
    "PCL042": "CustomSlurmSettingsValidator",
    "PCL043": "CustomSlurmSettingsValidator",
    "PCL045": "CustomSlurmNodeNamesValidator",
    "PCL060": "ClusterNameValidator",
    "PCL061": "RegionValidator",
    "PCL064": "Schema",
    "PCL066": "Schema",
    "PCL067": "ComputeResourceTagsValidator",
    "PCL068": "Schema",
    "MNT001": "DuplicateMountDirValidator",
    "MNT002": "SharedStorageMountDirValidator",
    "PCL080": "DomainNameValidator",
    "PCL081": "DomainAddrValidator",
    "PCL082": "AdditionalSssdConfigsValidator",
    "PCL083": "PasswordSecretArnValidator",
    "PCL094": "DomainAddrValidator",
    "PCL095": "PasswordSecretArnValidator",
}
"""The validator that refuses (or warns of) what the rule reports, of its own or shared."""
OURS_ALONE: dict[str, str] = {
    "PCL084": "a group that is in no partition has no place in the configuration",
    "PCL085": "allowed, and documented: of checks that begin together the first alone runs",
    "PCL086": "the validators do not know how long a check takes",
    "PCL087": "a pool without a group has no place in the configuration",
    "PCL088": "the validators look at no rules of groups but for EFA and file systems",
    "PCL089": "allowed, and documented: two alarms go with the dashboard",
    "PCL090": "a matter of money",
    "PCL091": "the head node writes the topology, of which the package knows nothing",
    "PCL092": "the head node writes the topology, of which the package knows nothing",
    "PCL093": "values of Slurm's parameters are not looked at",
    "PCL096": "documented, and left to the first login",
    "PCL097": "what groups let out to a directory is not looked at",
    "PCL098": "named in a warning as what plain LDAP needs",
    "PCL100": "what was bought is in the account only",
    "PCL099": "a report about updates, of which the package knows nothing",
    "GRP012": "a second head node has no field in the configuration: it would be left out",
    "GRP010": "a system group has no field in the configuration: it would be left out",
    "GRP015": "a login pool has no field for a queue",
    "GRP013": "a login pool has no field for a greatest number",
    "PCL022": "head and login nodes have no field for it: they would be on demand without a word",
    "PCL026": "the validators look at the block and not at how much of it is used",
    "PCL031": "the package judges for its own release only",
    "GRP032": "a matter of money",
    "PCL037": "the account is taken to have the right image",
    "PCL044": "head and login nodes have no field for it",
    "PCL046": "a queue that no group is in has no place in the configuration",
    "PCL051": "which topologies slurmctld will find is not in the package",
    "PCL047": "reported by users, not known to the package",
    "PCL048": "the package asks no validator",
    "PCL049": "the package asks no validator",
    "PCL050": "the package does not ask whether the file of a topology plugin is there",
    "PCL062": "the package judges for its own release only",
    "PCL063": "the custom resource is not part of the package's validators",
    "PCL065": "rendering writes our own database's user",
    "PCL069": "the package judges for its own release only",
    "MNT003": "OverlappingMountDirValidator of 3.16.1 compares the names of file systems, not their paths",
    "PCL073": "the custom resource is not part of the package's validators",
    "SOF008": "scripts are the user's own",
}
"""Rules that no validator has, and why."""


@pytest.fixture(scope="module")
def said() -> dict[str, list[Found]]:
    """What the validators say of the cases of our rules, broken and mended, with the rules passed by."""
    cases: list[Case] = []
    results: dict[str, list[Found]] = {}
    for number, one in enumerate(CASES):
        states = {"broken": one.broken, "mended": {**one.broken, **one.mended}}
        if one.rule in OURS_ALONE:
            del states["mended"]
        for state, changes in states.items():
            name = f"{number} {state}"
            environment = loaded(changed(environment_data("dev"), changes)).environment
            try:
                cases.append(case_of(name, environment))
            except ValueError as error:
                results[name] = [Found("ERROR", RENDERING, str(error))]
    return results | judged(cases)


def test_every_rule_has_its_validator_or_a_reason() -> None:
    tried = {rule.id for rule in PCL.rules} | {one.rule for one in CASES}
    assert tried == AGREES.keys() | OURS_ALONE.keys()
    assert AGREES.keys() & OURS_ALONE.keys() == set()


@pytest.mark.parametrize("rule", AGREES)
def test_rule_and_validator_agree(rule: str, said: dict[str, list[Found]]) -> None:
    numbers = [number for number, one in enumerate(CASES) if one.rule == rule]

    def of(number: int, state: str) -> bool:
        known = [one for one in said[f"{number} {state}"] if one.level != "INFO"]
        return AGREES[rule] in {one.validator for one in known}

    assert any(of(number, "broken") for number in numbers), [said[f"{number} broken"] for number in numbers]
    assert [number for number in numbers if of(number, "mended")] == []


@pytest.mark.parametrize("rule", OURS_ALONE)
def test_what_is_ours_alone_is_let_pass(rule: str, said: dict[str, list[Found]]) -> None:
    """Should a later package know it, too, the rule gets its validator in the table above."""
    for number, one in enumerate(CASES):
        if one.rule == rule:
            assert [found for found in said[f"{number} broken"] if found.level == "ERROR"] == []


def test_the_base_of_the_cases_passes() -> None:
    environment = loaded(changed(environment_data("dev"), BASE)).environment
    assert unexplained(validated({"base": environment})["base"], environment) == []
