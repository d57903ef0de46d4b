"""Data repository associations of a Lustre file system: folders that are tied to S3.

FSx for Lustre User Guide, "Using data repositories".
"""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import RemovalPolicy
from aws_cdk import aws_fsx as fsx
from constructs import Construct

from ultracluster.config.storage import DataRepository


class DataRepositories(Construct):
    """Associations of one file system, in the stack of the file system or in one after it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        file_system_id: str,
        repositories: Mapping[str, DataRepository],
        own_bucket: str | None = None,
    ) -> None:
        """Make them, one after the other.

        Args:
            file_system_id: `fs-...`.
            repositories: what was asked for, by folder.
            own_bucket: name of the bucket for those that name none.

        Raises:
            ValueError: one names no bucket, and there is no own one.
        """
        super().__init__(scope, construct_id)
        previous: fsx.CfnDataRepositoryAssociation | None = None
        for folder, repository in repositories.items():
            bucket = repository.bucket or own_bucket
            if bucket is None:
                raise ValueError(f"{folder}: give a bucket, or own_bucket for those without")
            association = fsx.CfnDataRepositoryAssociation(
                self,
                f"Repository-{folder.strip('/').replace('/', '-') or 'root'}",
                file_system_id=file_system_id,
                file_system_path=folder,
                data_repository_path=f"s3://{bucket}/{repository.prefix or ''}",
                batch_import_meta_data_on_create=repository.import_existing,
                imported_file_chunk_size=repository.chunk_mib,
                s3=_events(repository),
            )
            # the association goes, its objects and files stay
            association.apply_removal_policy(RemovalPolicy.DESTROY)
            if previous:  # FSx makes one at a time (hashicorp/terraform-provider-aws#24678)
                association.add_resource_dependency(previous)
            previous = association


def _events(repository: DataRepository) -> fsx.CfnDataRepositoryAssociation.S3Property | None:
    def upper(events: tuple[str, ...]) -> list[str]:
        return [event.upper() for event in events]

    association = fsx.CfnDataRepositoryAssociation
    into = association.AutoImportPolicyProperty(events=upper(repository.import_events))
    out = association.AutoExportPolicyProperty(events=upper(repository.export_events))
    if not (repository.import_events or repository.export_events):
        return None
    return association.S3Property(
        auto_import_policy=into if repository.import_events else None,
        auto_export_policy=out if repository.export_events else None,
    )
