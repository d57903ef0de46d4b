"""Where the model of a server comes from, and which places are refused."""

from __future__ import annotations

import pytest
from kubernetes_support import environment

from ultracluster.config.hyperpod_eks import HyperPodInference
from ultracluster.model import resolve
from ultracluster.serving.model_source import plain_model, source_of

INFERENCE = HyperPodInference(model_buckets=("models",))
CLUSTER = resolve(environment({}))
GROUP = "train"


@pytest.mark.parametrize("model", ["/fsx/llama", "hf:a/b"])
def test_a_plain_server_reads_folders_and_hugging_face(model: str) -> None:
    assert plain_model(CLUSTER, model, GROUP) == model.removeprefix("hf:")


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("s3://models/a", "a plain server reads folders and Hugging Face"),
        ("/data/a", "is not on Lustre"),
        ("/fsx/a b", "characters that are not allowed"),
        ("/fsx/", "is not on Lustre"),
        ("/fast/a", "is not on Lustre"),
    ],
)
def test_a_plain_server_reads_nothing_else(model: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        plain_model(CLUSTER, model, GROUP)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("s3://models", "names a bucket and no folder"),
        ("s3://others/llama", "pods may not read others"),
        ("/fsx/llama", "--file-system fs-"),
        ("/home/llama", "is not on Lustre"),
        ("/fsx/../etc", "is not on Lustre"),
        ("llama", "no s3://bucket/folder"),
    ],
)
def test_an_endpoint_reads_what_the_operator_mounts(model: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        source_of(CLUSTER, INFERENCE, model, GROUP, None, None)


def test_the_folder_of_a_bucket() -> None:
    source = source_of(CLUSTER, INFERENCE, "s3://models/a/b/", GROUP, None, None)
    assert (source.kind, source.place, source.folder) == ("s3", "models", "a/b")
