"""Words of AWS's events that rules look for."""

from __future__ import annotations

FAILED_STACKS = [
    "CREATE_FAILED",
    "ROLLBACK_IN_PROGRESS",
    "ROLLBACK_FAILED",
    "DELETE_FAILED",
    "UPDATE_FAILED",
    "UPDATE_ROLLBACK_IN_PROGRESS",
    "UPDATE_ROLLBACK_FAILED",
    "IMPORT_ROLLBACK_IN_PROGRESS",
    "IMPORT_ROLLBACK_FAILED",
]
"""A stack that did not become what was asked for (AWS CloudFormation User Guide, Stack status codes). That a
rollback has ended well is no news: it was told when it began."""

HEALTH_SERVICES = ["EC2", "EBS", "FSX", "SAGEMAKER", "EKS", "PCS", "RDS", "VPC", "S3", "IAM", "KMS", "APS"]
"""What a cluster stands on, as AWS Health writes services. Those of PCS and of Amazon Managed Service for
Prometheus are guessed: a name that never comes matches nothing."""
