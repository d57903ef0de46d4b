"""The models in a CDK app: the class says its kind, and references may be tokens; a file has neither."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk import App, CfnParameter, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from pydantic import ValidationError
from rules_support import changed, environment_data, loaded

from ultracluster.config import InvalidEnvironmentError
from ultracluster.config.base import FROM_FILE, Model, is_token
from ultracluster.config.capacity import CapacityBlock, OnDemand, Reservation, Spot, TrainingPlan
from ultracluster.config.kubernetes import Eks, HyperPodEks, PublicEndpoint
from ultracluster.config.nodes import AutomaticPatching, NodeGroup, ScheduledPatching, Taint
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.pcs import Pcs
from ultracluster.config.schema import environment_schema
from ultracluster.config.storage import DataRepository, ExistingLustre, Persistent2SsdLustre, RdsMySql

pytestmark = pytest.mark.slow

LATER = "${Token[TOKEN.17]}"
KINDS = {
    "Eks": Eks(),
    "HyperPodEks": HyperPodEks(),
    "HyperPodSlurm": HyperPodSlurm(),
    "ParallelCluster": ParallelCluster(),
    "Pcs": Pcs(),
    "OnDemand": OnDemand(),
    "Spot": Spot(),
    "Reservation": Reservation(),
    "ScheduledPatching": ScheduledPatching(schedule="cron(0 3 ? * SUN *)"),
    "AutomaticPatching": AutomaticPatching(),
    "PublicEndpoint": PublicEndpoint(cidrs=("203.0.113.0/24",)),
    "RdsMySql": RdsMySql(),
    "Persistent2SsdLustre": Persistent2SsdLustre(capacity_gib=4800, throughput_mbps_per_tib=250),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_class_says_its_kind_and_a_file_names_it(name: str) -> None:
    definition = environment_schema()["$defs"][name]
    tag = "deployment" if "deployment" in definition["properties"] else "kind"
    assert getattr(KINDS[name], tag)
    assert tag in definition["required"]
    assert "default" not in definition["properties"][tag]


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("orchestrator.kind", "orchestrator.kind"),
        ("storage.lustre.deployment", "storage.lustre.deployment"),
    ],
)
def test_a_file_without_its_kind_is_refused(path: str, missing: str) -> None:
    data = environment_data("dev")
    *above, last = path.split(".")
    part: Any = data
    for key in above:
        part = part[key]
    del part[last]
    with pytest.raises(InvalidEnvironmentError) as raised:
        loaded(data)
    assert [(one.code, ".".join(map(str, one.path))) for one in raised.value.findings] == [
        ("CFG006", missing)
    ]


def test_references_may_be_tokens() -> None:
    stack = Stack(App(), "stack")
    reservation = ec2.CfnCapacityReservation(
        stack, "Reservation", instance_count=1, instance_platform="Linux/UNIX", instance_type="p5.48xlarge"
    )
    image = CfnParameter(stack, "Image").value_as_string
    group = NodeGroup(
        role="compute",
        instance_type="p5.48xlarge",
        count=1,
        image=image,
        capacity=Reservation(id=reservation.ref),
    )
    assert is_token(group.image) and group.image_in_template == image and group.image_parameter is None
    assert CapacityBlock(id=LATER).id == LATER
    assert TrainingPlan(arn=LATER).arn == LATER
    assert DataRepository(bucket=LATER).bucket == LATER
    existing = ExistingLustre(id=LATER, dns_name=LATER, mount_name=LATER, security_group_id=LATER)
    assert existing.mount_name == LATER


ROLE = "arn:aws:iam::111122223333:role/researchers"


def test_objects_of_the_cdk_name_themselves() -> None:
    stack = Stack(App(), "stack")
    role = iam.Role.from_role_arn(stack, "Role", ROLE)
    made = iam.Role.from_role_name(stack, "Made", "platform")
    train = NodeGroup(role="compute", instance_type=ec2.InstanceType("p5.48xlarge"), count=1)
    # a keyword of a construct is typed for objects of the CDK, a model's field for what a file has
    admins: Any = [role, made, ROLE]
    assert train.instance_type == "p5.48xlarge"
    assert Eks(admins=admins).admins == (ROLE, made.role_arn, ROLE)


NUMBER = -1.8881545897087603e289
"""A number of the CDK that is known only after deploy."""
WRONG: Mapping[str, tuple[type[Model], dict[str, Any], str]] = {
    "a text of another form": (CapacityBlock, {"id": "block"}, "CFG005 id: `block` does not have the form"),
    "a type that is not known": (
        NodeGroup,
        {"role": "compute", "instance_type": LATER, "count": 1},
        "CFG005 instance_type: it must be known at synth",
    ),
    "a count that is not known": (
        NodeGroup,
        {"role": "compute", "instance_type": "p5.48xlarge", "count": NUMBER},
        "CFG005 count: it must be known at synth",
    ),
    "what HyperPod calls it": (
        NodeGroup,
        {"role": "compute", "instance_type": "ml.p5.48xlarge", "count": 1},
        "Instead: instance_type: p5.48xlarge",
    ),
    "a misspelt name": (
        Reservation,
        {"ids": "cr-0123456789abcdef0"},
        "CFG004 ids: there is no `ids`.",
    ),
    "a word of another tool": (
        NodeGroup,
        {"role": "worker", "instance_type": "p5.48xlarge", "count": 1},
        "CFG005 role: worker is none of controller, login, compute, system. Instead: role: compute",
    ),
    "an object": (
        Eks,
        {"admins": [object()]},
        "admins[0]: a text is needed here, not an object of object.",
    ),
    "a text for a list": (DataRepository, {"import_events": "new"}, "CFG005 import_events: a list is needed"),
    "one that is missing": (Taint, {"key": "team"}, "CFG006 effect: `effect` is missing. Instead: effect"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_model_refuses_in_the_words_of_a_file(fault: str) -> None:
    model, given, says = WRONG[fault]
    with pytest.raises(ValueError, match=re.escape(f"{model.__name__}: CFG")) as raised:
        model(**given)
    text = str(raised.value)
    assert says in text and raised.value.__suppress_context__
    assert not re.search("pydantic|validation error|input_value|0x[0-9a-f]+", text), text


def test_a_file_cannot_hold_a_token() -> None:
    with pytest.raises(ValidationError, match="string_pattern_mismatch"):
        CapacityBlock.model_validate({"kind": "capacity-block", "id": LATER}, context=FROM_FILE)
    with pytest.raises(InvalidEnvironmentError, match="does not have the form"):
        loaded(changed(environment_data("dev"), {"node_groups.gpu.image": LATER}))
