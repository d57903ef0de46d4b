"""How people open a shell on a node (Systems Manager User Guide, "Session document schema")."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack, cast

from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from ultracluster.config.environment import Access
from ultracluster.guard import settings_of
from ultracluster.security.cluster_key import ClusterKey


class AccessArguments(TypedDict, total=False):
    """Time-outs of the configuration's model, which says what each means."""

    idle_timeout_minutes: int
    max_session_minutes: int


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
        access: Access | None = None,
        key: kms.IKey | ClusterKey | None = None,
        log_group: logs.ILogGroup | None = None,
        purpose: str = "A login shell on a node of the cluster",
        name: str | None = None,
        **settings: Unpack[AccessArguments],
    ) -> None:
        """Make the document.

        Args:
            user: who a session logs in as; the image must have it, Session Manager creates no user.
            access: time-outs as an environment file has them, instead of `settings`; by default the keywords
                say them.
            key: encrypts the session's data on top of TLS; the nodes' role must be able to decrypt, and
                whoever opens a session to generate data keys with it; by default none.
            log_group: gets what is typed and shown, while it is; it must be encrypted with a key, and the
                nodes' role must be able to write to it; by default none.
            purpose: what the document is for; by default a login shell.
            name: of the document, unique in account and Region; from its place in the app by default.
            settings: `idle_timeout_minutes`, `max_session_minutes`.

        Raises:
            ValueError: settings of the wrong shape.
        """
        super().__init__(scope, construct_id)
        keywords = cast("dict[str, Any]", settings)
        access = settings_of(Access, access, keywords, construct="SessionDocument")
        document = ssm.CfnDocument(
            self,
            "Resource",
            name=name,
            document_type="Session",
            document_format="JSON",
            update_method="NewVersion",
            content={
                "schemaVersion": "1.0",
                "description": purpose,
                "sessionType": "Standard_Stream",
                "inputs": {
                    "runAsEnabled": True,
                    "runAsDefaultUser": user,
                    "idleSessionTimeout": str(access.idle_timeout_minutes),
                    "maxSessionDuration": str(access.max_session_minutes),
                    "kmsKeyId": ClusterKey.of(self, key).key_arn if key else "",
                    **_logged(log_group),
                    "shellProfile": {"linux": "exec bash --login"},
                },
            },
        )
        self.name = document.ref


def _logged(log_group: logs.ILogGroup | None) -> dict[str, object]:
    if log_group is None:
        return {}
    return {
        "cloudWatchLogGroupName": log_group.log_group_name,
        "cloudWatchEncryptionEnabled": True,
        "cloudWatchStreamingEnabled": True,
    }
