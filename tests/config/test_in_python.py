"""The models in a CDK app: the class says its kind, and references may be tokens; a file has neither."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import App, CfnParameter, Stack
from aws_cdk import aws_ec2 as ec2
from pydantic import ValidationError
from rules_support import changed, environment_data, loaded

from ultracluster.config import InvalidEnvironmentError
from ultracluster.config.base import FROM_FILE, is_token
from ultracluster.config.capacity import CapacityBlock, OnDemand, Reservation, Spot, TrainingPlan
from ultracluster.config.kubernetes import Eks, HyperPodEks, PublicEndpoint
from ultracluster.config.nodes import AutomaticPatching, NodeGroup, ScheduledPatching
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


def test_what_is_no_token_keeps_its_form() -> None:
    with pytest.raises(ValidationError, match="string_pattern_mismatch"):
        NodeGroup(role="compute", instance_type="p5.48xlarge", count=1, image="my-image")
    with pytest.raises(ValidationError, match="string_pattern_mismatch"):
        CapacityBlock(id="block")
    # a type decides what is made, so it is known at synth
    with pytest.raises(ValidationError, match="string_pattern_mismatch"):
        NodeGroup(role="compute", instance_type=LATER, count=1)


def test_a_file_cannot_hold_a_token() -> None:
    with pytest.raises(ValidationError, match="string_pattern_mismatch"):
        CapacityBlock.model_validate({"kind": "capacity-block", "id": LATER}, context=FROM_FILE)
    with pytest.raises(InvalidEnvironmentError, match="does not have the form"):
        loaded(changed(environment_data("dev"), {"node_groups.gpu.image": LATER}))
