"""Data repository associations of a Lustre file system: folders that are tied to S3.

FSx for Lustre User Guide, "Using data repositories".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.config.lustre import LustreFacts, NewLustre, lustre_of
from ultracluster.config.storage import DataRepository, ExistingLustre
from ultracluster.guard import report
from ultracluster.guard.objects import plain_bucket, take_objects
from ultracluster.security.cluster_key import allow_use
from ultracluster.storage.buckets import DataBucket

if TYPE_CHECKING:
    from ultracluster.storage.lustre_interface import ILustreFileSystem


class DataRepositories(Construct):
    """Associations of one file system, in the stack of the file system or in one after it.

    Attributes:
        associations: by folder.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        file_system: ILustreFileSystem,
        repositories: Mapping[str, DataRepository],
        bucket: s3.IBucket | DataBucket | None = None,
        buckets: Mapping[str, s3.IBucket | DataBucket] | None = None,
    ) -> None:
        """Make them, one after the other.

        Args:
            file_system: made here or elsewhere.
            repositories: what was asked for, by folder of the file system.
            bucket: of those folders that name none, neither here nor in `buckets`; by default none.
            buckets: by folder, instead of the name in its repository. The key of a bucket is told to let FSx
                use it; `bucket` of a repository, a name, says nothing of a key. By default none.

        Raises:
            ValueError: a folder has no bucket.
        """
        super().__init__(scope, construct_id)
        self.associations: dict[str, fsx.CfnDataRepositoryAssociation] = {}
        take_objects(self, locals())
        by_folder = {folder: plain_bucket(bucket_of) for folder, bucket_of in (buckets or {}).items()}
        if unknown := [folder for folder in by_folder if folder not in repositories]:
            raise ValueError(
                f"DataRepositories: buckets has {', '.join(unknown)}, and repositories has "
                f"{', '.join(repositories) or 'nothing'}: both have the same folders"
            )
        if cast("object", scope) is not file_system:  # which judges what it was given itself
            self._judge(file_system, repositories, by_folder)
        shared = plain_bucket(bucket) if bucket else None
        previous: fsx.CfnDataRepositoryAssociation | None = None
        for folder, repository in repositories.items():
            own = by_folder.get(folder) or (None if repository.bucket else shared)
            name = own.bucket_name if own else repository.bucket
            if name is None:
                raise ValueError(
                    f"DataRepositories: {folder} has no bucket. Instead: bucket=<an s3.IBucket> for all "
                    f"folders without one, or DataRepository(bucket=...) for {folder}"
                )
            if own and own.encryption_key:
                allow_use(self, own.encryption_key, "data-repositories")
            association = fsx.CfnDataRepositoryAssociation(
                self,
                f"Repository-{folder.strip('/').replace('/', '-') or 'root'}",
                file_system_id=file_system.file_system_id,
                file_system_path=folder,
                data_repository_path=f"s3://{name}/{repository.prefix or ''}",
                batch_import_meta_data_on_create=repository.import_existing,
                imported_file_chunk_size=repository.chunk_mib,
                s3=_events(repository),
            )
            # the association goes, its objects and files stay
            association.apply_removal_policy(RemovalPolicy.DESTROY)
            if previous:  # FSx makes one at a time (hashicorp/terraform-provider-aws#24678)
                association.add_resource_dependency(previous)
            self.associations[folder] = previous = association

    def _judge(
        self,
        file_system: ILustreFileSystem,
        repositories: Mapping[str, DataRepository],
        buckets: Mapping[str, s3.IBucket],
    ) -> None:
        named = {
            folder: repository.model_copy(update={"bucket": buckets[folder].bucket_name})
            if folder in buckets
            else repository
            for folder, repository in repositories.items()
        }
        config: object = getattr(file_system, "config", None)
        settings = config if isinstance(config, NewLustre) else ExistingLustre.model_construct()
        facts = lustre_of(settings) if isinstance(config, NewLustre) else LustreFacts(settings=settings)
        report(self, replace(facts, data_repositories=named))
        for folder, repository_bucket in named.items():
            report(self, repository_bucket, under=("data_repositories", folder))


def _events(repository: DataRepository) -> fsx.CfnDataRepositoryAssociation.S3Property | None:
    def upper(events: Sequence[str]) -> list[str]:
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
