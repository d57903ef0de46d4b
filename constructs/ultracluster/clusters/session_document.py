"""How people open a shell on a node (Systems Manager User Guide, "Session document schema")."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from ultracluster.config.environment import Access


class SessionDocument(Construct):
    """A Session Manager document that opens a login shell as an ordinary user instead of root's ssm-user.

    Attributes:
        name: name of the document, for `--document-name`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        user: str,
        access: Access,
        key: kms.IKey | None = None,
    ) -> None:
        """Make the document.

        Args:
            user: who a session logs in as; the image must have it, Session Manager creates no user.
            access: time-outs.
            key: encrypts the session's data on top of TLS; the nodes' role must be able to decrypt.
        """
        super().__init__(scope, construct_id)
        document = ssm.CfnDocument(
            self,
            "Resource",
            document_type="Session",
            document_format="JSON",
            update_method="NewVersion",
            content={
                "schemaVersion": "1.0",
                "description": "A login shell on a node of the cluster",
                "sessionType": "Standard_Stream",
                "inputs": {
                    "runAsEnabled": True,
                    "runAsDefaultUser": user,
                    "idleSessionTimeout": str(access.idle_timeout_minutes),
                    "maxSessionDuration": str(access.max_session_minutes),
                    "kmsKeyId": key.key_arn if key else "",
                    "shellProfile": {"linux": "exec bash --login"},
                },
            },
        )
        self.name = document.ref
