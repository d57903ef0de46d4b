"""Which key of ParallelCluster's configuration decides on a change."""

from __future__ import annotations

from typing import Any

import pytest

from ultracluster.change.parallelcluster_keys import changed_key, chef_attributes, source

OLD: dict[str, Any] = {
    "HeadNode": {
        "InstanceType": "m5.xlarge",
        "Iam": {"AdditionalIamPolicies": [{"Policy": "a"}]},
        "CustomActions": {"OnNodeUpdated": {"Sequence": [{"Script": "a"}]}},
    },
    "Scheduling": {
        "SlurmQueues": [
            {"Name": "gpu", "Image": {"CustomAmi": "ami-1"}, "ComputeResources": [{"Name": "p5"}]}
        ]
    },
}
NEW: dict[str, Any] = {
    "HeadNode": {
        "InstanceType": "m5.large",
        "Iam": {"AdditionalIamPolicies": [{"Policy": "b"}]},
        "CustomActions": {"OnNodeUpdated": {"Sequence": [{"Script": "b"}]}},
    },
    "Scheduling": {"SlurmQueues": [{"Name": "gpu", "ComputeResources": [{"Name": "p6"}]}]},
    "LoginNodes": {"Pools": [{"Name": "login"}]},
}


@pytest.mark.parametrize(
    ("path", "key", "policy", "names", "element"),
    [
        ("HeadNode InstanceType", "HeadNode.InstanceType", "UNSUPPORTED", (), False),
        # what names an element is another: one goes, one comes
        ("HeadNode Iam AdditionalIamPolicies [0] Policy", "HeadNode.Iam.AdditionalIamPolicies[]", "SUPPORTED",
         ("0",), True),
        # below a key that is not in the table: that of the section
        ("HeadNode CustomActions OnNodeUpdated Sequence [0] Script", "HeadNode.CustomActions.OnNodeUpdated",
         "SUPPORTED", (), False),
        # a section that goes as a whole
        ("Scheduling SlurmQueues [gpu] Image CustomAmi", "Scheduling.SlurmQueues[].Image",
         "QUEUE_UPDATE_STRATEGY", ("gpu",), False),
        ("Scheduling SlurmQueues [gpu] ComputeResources [p5]", "Scheduling.SlurmQueues[].ComputeResources[]",
         "RESIZE_UPDATE_STRATEGY_ON_REMOVE", ("gpu", "p5"), True),
        # a section that comes
        ("LoginNodes Pools [login] Name", "LoginNodes", "LOGIN_NODES_STOP", (), False),
        ("Whatever Else", "", "UNSUPPORTED", (), False),
    ],
)  # fmt: skip
def test_the_key_that_decides(
    path: str, key: str, policy: str, names: tuple[str, ...], element: bool
) -> None:
    found = changed_key(tuple(path.split()), OLD, NEW)
    assert (found.key, found.policy, found.names, found.element) == (key, policy, names, element)


def test_the_table_says_where_it_comes_from() -> None:
    assert "aws-parallelcluster 3.16.1" in source()
    assert "cluster.slurm.reconfigure_timeout" in chef_attributes()
