"""Stack policies as a stack sets them: closed when it is made, open when it is deleted."""

from __future__ import annotations

import json

import pytest
from foreign import foreign_stack, refusal, resources

from ultracluster.model.stack_guards import OPEN, closed
from ultracluster.security.stack_policies import StackPolicies


def test_each_stack_gets_its_policy_and_loses_it_with_the_construct() -> None:
    stack = foreign_stack()
    StackPolicies(stack, "Policies", stacks=["a-storage", "a-buckets"])

    calls = [one["Properties"] for one in resources(stack, "Custom::AWS").values()]
    set_up = {json.loads(one["Create"])["parameters"]["StackName"]: one for one in calls}
    assert set(set_up) == {"a-storage", "a-buckets"}
    for one in calls:
        create, update, delete = (json.loads(one[name]) for name in ("Create", "Update", "Delete"))
        assert create == update and create["action"] == "setStackPolicy"
        assert create["parameters"]["StackPolicyBody"] == closed()
        assert delete["parameters"]["StackPolicyBody"] == OPEN
    rights = json.dumps(resources(stack, "AWS::IAM::Policy"))
    assert "cloudformation:SetStackPolicy" in rights and ":stack/a-storage/*" in rights
    assert refusal(stack) == ""


def test_no_stack_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"stacks=\[\.\.\.\]"):
        StackPolicies(foreign_stack(), "Policies", stacks=[])
