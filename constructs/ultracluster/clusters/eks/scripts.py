"""The lifecycle scripts of EKS nodes as one file for each group in S3, and the user data that runs them.

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
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from ultracluster.lifecycle.bundles import NODE_FILE, NodeFiles
from ultracluster.security.assets import allow_reading_assets

ENTRY = "eks_user_data"
SUFFIX = ".run"
"""Of the files; nothing else among the CDK's assets has it."""


class NodeScripts(Construct):
    """For each group the scripts with its `cluster.json`, behind the script that unpacks them.

    Attributes:
        uris: `s3://` URI of the file by group; its name is the hash of its content, so a change of one group
            launches no node of another.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, configurations: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Make the assets.

        Args:
            configurations: what the scripts of a group's nodes read as `cluster.json`, by group; all known at
                synth.
        """
        super().__init__(scope, construct_id)
        releases = (
            configuration["release"]
            for configuration in configurations.values()
            if "release" in configuration
        )
        bundles = NodeFiles.of(ENTRY, release=next(releases, None)).bundles(
            configurations, configurations, one_file=True
        )
        self._bucket: s3.IBucket | None = None
        self.uris: dict[str, str] = {}
        self._digests = {name: bundle.sha256 for name, bundle in bundles.items()}
        with TemporaryDirectory() as folder:  # the CDK copies each at once
            for name, bundle in bundles.items():
                # one path for all would not do: the CDK reads a path once
                file = Path(folder) / f"{name}{SUFFIX}"
                file.write_bytes(bundle.files[NODE_FILE])
                asset = assets.Asset(self, f"File-{name}", path=str(file))
                self._bucket, self.uris[name] = asset.bucket, asset.s3_object_url

    def grant_read(self, role: iam.IRole) -> None:
        """Let nodes copy such files, also older ones: a node may start while its group is being updated."""
        if self._bucket:
            allow_reading_assets(role, self._bucket.bucket_arn, f"*{SUFFIX}", sid="ReadScripts")

    def user_data(self, group: str) -> str:
        """A shell script that brings the node to its release, or keeps it out of the cluster.

        What runs as root is what was synthesised: its digest is compared, wherever the file comes from. A
        right of the node's role and its network may come a minute or two later than the node.
        """
        region = Stack.of(self).region
        return (
            "#!/usr/bin/env bash\n"
            "set -euo pipefail\n"
            "state=/var/lib/ultracluster file=/var/lib/ultracluster/node.run\n"
            "unit=/etc/systemd/system/nodeadm-run.service.d\n"
            "# a node joins only when this has run to its end, also after a reboot; the log says why not\n"
            'mkdir -p "$state" "$unit"\n'
            'printf \'[Unit]\\nConditionPathExists=%s\\n\' "$state/ready" >"$unit/ultracluster.conf"\n'
            "systemctl daemon-reload\n"
            'fail() { echo "FAILED user_data: $1" >&2; exit 1; }\n'
            "for left in {9..0}; do\n"
            f"  aws s3 cp --region {region} --no-progress '{self.uris[group]}' \"$file\" && break\n"
            '  ((left > 0)) || fail "the scripts of this node cannot be read: see the lines above"\n'
            "  sleep $((5 + RANDOM % 20))\n"
            "done\n"
            f"sha256sum --status --check <<<'{self._digests[group]}  '\"$file\" ||\n"
            '  fail "the scripts are not those that were deployed: nothing of them runs here"\n'
            f'bash "$file" {ENTRY} --group {group}\n'
            'touch "$state/ready"\n'
        )
