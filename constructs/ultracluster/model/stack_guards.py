"""Policies of stacks that hold data: CloudFormation refuses what would replace or delete such a resource.

They hold for everyone who updates a stack, a plain `cdk deploy` among them. A policy cannot be given in a
template, nor for one update by change set, which is how the CDK deploys (CloudFormation User Guide, "Prevent
updates to stack resources"; "Execute a change set"): the stack `<environment>-protection` sets it, and
`ultracluster deploy` opens it for what was accepted and closes it again.
"""

from __future__ import annotations

import json
from typing import Final

from ultracluster.catalog.data_kinds import kinds_with_data

EKS_SWITCH: Final = "Custom::EksDeletionProtection"
"""The custom resource that switches the protection of an EKS cluster on while it exists."""
GUARDED_PARTS: Final = ("foundation", "observability", "buckets", "storage")
"""Parts of an environment whose stacks have such a policy."""
LOSING: Final = ("Update:Replace", "Update:Delete")
"""Actions of an update that lose the resource."""
ALLOW: Final[dict[str, str]] = {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}
"""The statement of a policy that refuses nothing."""
OPEN: Final = json.dumps({"Statement": [ALLOW]})
"""Allows everything: a policy can be replaced, not removed."""


def closed() -> str:
    """Refuses to replace or delete what holds data; everything else goes on."""
    types = {"StringEquals": {"ResourceType": kinds_with_data()}}
    deny = {"Effect": "Deny", "Action": LOSING, "Principal": "*", "Resource": "*", "Condition": types}
    return json.dumps({"Statement": [ALLOW, deny]})
