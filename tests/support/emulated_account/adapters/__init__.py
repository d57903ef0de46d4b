"""Resource types that this account adds to moto's: one module each subject."""

from __future__ import annotations

from emulated_account.adapter import Adapter
from emulated_account.adapters.bucket_policy import BucketPolicy
from emulated_account.adapters.by_api import (
    Function,
    Key,
    LayerVersion,
    RouteTable,
    SubnetRouteTableAssociation,
)
from emulated_account.adapters.fsx_lustre import FileSystem
from emulated_account.adapters.hyperpod import Cluster
from emulated_account.adapters.rows import ROWS
from emulated_account.adapters.security_group_rules import SecurityGroupEgress, SecurityGroupIngress
from emulated_account.adapters.stored import STORED

ADAPTERS: dict[str, type[Adapter]] = {
    one.resource_type: one
    for one in (
        BucketPolicy,
        Cluster,
        FileSystem,
        Function,
        Key,
        LayerVersion,
        RouteTable,
        SecurityGroupEgress,
        SecurityGroupIngress,
        SubnetRouteTableAssociation,
        *ROWS,
        *STORED,
    )
}
