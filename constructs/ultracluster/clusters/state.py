"""Where nodes find the documents of the cluster's state, for the clusters whose nodes pull them."""

from __future__ import annotations

from aws_cdk import aws_s3 as s3

from ultracluster.lifecycle.bundles import Bundle
from ultracluster.model import Cluster
from ultracluster.model.state_documents import FOLDER, state_documents

STATE_URI = "state_uri"
"""In `cluster.json`; `--state` among the arguments of PCS's entry."""


def state_bundles(cluster: Cluster) -> list[Bundle]:
    """What is uploaded beside the scripts, below a key that stays; nothing where nodes pull nothing."""
    documents = state_documents(cluster)
    return [Bundle(folder=FOLDER, files=documents)] if documents else []


def deployed(cluster: Cluster, bucket: s3.IBucket) -> dict[str, str]:
    """What nodes are told of it when it is deployed, as a part of `cluster.json`."""
    if not state_documents(cluster):
        return {}
    return {STATE_URI: f"s3://{bucket.bucket_name}/{cluster.cluster_name}/{FOLDER}"}


def arguments(cluster: Cluster, bucket: s3.IBucket) -> list[str]:
    """The same for the entry of PCS."""
    return [word for uri in deployed(cluster, bucket).values() for word in ("--state", uri)]
