"""Root squash of a Lustre file system, which CloudFormation's schema does not have."""

from __future__ import annotations

from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from aws_cdk import custom_resources as cr
from constructs import Construct

from ultracluster.config.storage import RootSquash
from ultracluster.security.sdk_calls import SdkCalls


class RootSquashSetting(Construct):
    """Calls UpdateFileSystem when the file system is made and whenever the setting changes."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        file_system: fsx.CfnFileSystem,
        squash: RootSquash,
        key: kms.IKey,
    ) -> None:
        super().__init__(scope, construct_id)
        call = cr.AwsSdkCall(
            service="FSx",
            action="updateFileSystem",
            parameters={
                "FileSystemId": file_system.ref,
                "LustreConfiguration": {
                    "RootSquashConfiguration": {
                        "RootSquash": f"{squash.uid}:{squash.gid}",
                        "NoSquashNids": list(squash.exempt_clients),
                    }
                },
            },
            physical_resource_id=cr.PhysicalResourceId.of(f"root-squash-{file_system.ref}"),
        )
        may = ("fsx:UpdateFileSystem", file_system.attr_resource_arn)
        SdkCalls.of(self, key=key).add(self, "Resource", may=may, always=call)
