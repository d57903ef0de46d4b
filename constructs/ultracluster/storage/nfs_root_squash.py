"""Root squash of an OpenZFS file system, by a call: CloudFormation may replace the file system for it."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from aws_cdk import custom_resources as cr
from constructs import Construct

from ultracluster.security.sdk_calls import SdkCalls

EXPORT = ("rw", "crossmnt")
"""Options of the root volume's export, besides what root may."""


class NfsRootSquashSetting(Construct):
    """Calls UpdateVolume when the setting is made, changes and goes; then the export is as it was made.

    Exempt clients come first: the first of several networks that a client is in decides (exports(5)).
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        file_system: fsx.CfnFileSystem,
        clients: str,
        exempt: Sequence[str],
        key: kms.IKey,
    ) -> None:
        """Set it.

        Args:
            file_system: its root volume is exported.
            clients: IPv4 network of all clients.
            exempt: hosts and networks whose root stays root.
            key: encrypts the log of the call.
        """
        super().__init__(scope, construct_id)
        volume = file_system.attr_root_volume_id
        arn = Stack.of(self).format_arn(
            service="fsx", resource="volume", resource_name=f"{file_system.ref}/{volume}"
        )
        squashed = [*((client, "no_root_squash") for client in exempt), (clients, "root_squash")]
        SdkCalls.of(self, key=key).add(
            self,
            "Resource",
            may=("fsx:UpdateVolume", arn),
            always=_call(volume, squashed),
            on_delete=_call(volume, [(clients, "no_root_squash")], may_be_gone=True),
        )


def _call(volume: str, exports: Sequence[tuple[str, str]], *, may_be_gone: bool = False) -> cr.AwsSdkCall:
    return cr.AwsSdkCall(
        service="FSx",
        action="updateVolume",
        parameters={
            "VolumeId": volume,
            "OpenZFSConfiguration": {
                "NfsExports": [
                    {
                        "ClientConfigurations": [
                            {"Clients": clients, "Options": [*EXPORT, squash]} for clients, squash in exports
                        ]
                    }
                ]
            },
        },
        physical_resource_id=cr.PhysicalResourceId.of(f"root-squash-{volume}"),
        ignore_error_codes_matching="VolumeNotFound" if may_be_gone else None,
    )
