"""The lifecycle scripts of EKS nodes as one file in S3, and the user data that runs them.

They are an asset of the CDK, known before anything is deployed: nodes need neither the file system nor a
bucket of the environment to exist. User data runs before nodeadm joins the node (awslabs/amazon-eks-ami).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from ultracluster.lifecycle.one_file import one_file
from ultracluster.lifecycle.scripts import scripts_folder

ENTRY = "eks_user_data"


class NodeScripts(Construct):
    """The folder of scripts with its `cluster.json` behind the script that unpacks it.

    Attributes:
        uri: `s3://` URI of the file, whose name is the hash of its content.
    """

    def __init__(self, scope: Construct, construct_id: str, *, configuration: Mapping[str, Any]) -> None:
        """Make the asset.

        Args:
            configuration: what the scripts read as `cluster.json`; all known at synth.
        """
        super().__init__(scope, construct_id)
        with TemporaryDirectory() as folder:  # the CDK copies it at once
            file = Path(folder) / "ultracluster.run"
            file.write_bytes(one_file(scripts_folder(), dict(configuration)).content)
            self._asset = assets.Asset(self, "File", path=str(file))
        self.uri = self._asset.s3_object_url

    def grant_read(self, role: iam.Role) -> None:
        """Let nodes copy this one file."""
        object_arn = self._asset.bucket.arn_for_objects(self._asset.s3_object_key)
        role.add_to_policy(
            iam.PolicyStatement(sid="ReadScripts", actions=["s3:GetObject"], resources=[object_arn])
        )

    def user_data(self, group: str) -> str:
        """A shell script that brings the node to its release, or keeps it out of the cluster."""
        region = Stack.of(self).region
        return (
            "#!/usr/bin/env bash\n"
            "set -euo pipefail\n"
            "file=/var/tmp/ultracluster.run state=/var/lib/ultracluster\n"
            "unit=/etc/systemd/system/nodeadm-run.service.d\n"
            "# a node joins only when this has run to its end, also after a reboot; the log says why not\n"
            'mkdir -p "$state" "$unit"\n'
            'printf \'[Unit]\\nConditionPathExists=%s\\n\' "$state/ready" >"$unit/ultracluster.conf"\n'
            "systemctl daemon-reload\n"
            f"aws s3 cp --region {region} --no-progress '{self.uri}' \"$file\"\n"
            f'bash "$file" {ENTRY} --group {group}\n'
            'touch "$state/ready"\n'
        )
