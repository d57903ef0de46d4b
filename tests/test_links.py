"""Links of every Markdown file lead somewhere, and pages that code, comments and messages name are there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from project import ROOT
from rows import for_each

from tools.docs_site.links import anchors_of, line_of, links

pytestmark = pytest.mark.slow

SKIPPED = {"node_modules", "site", "build", "cdk.out", "dist"}


def pages() -> Iterator[Path]:
    """Markdown of the repository, without what was installed or built."""
    for folder, inside, files in os.walk(ROOT):
        inside[:] = [one for one in inside if one not in SKIPPED and not one.startswith(".")]
        yield from (Path(folder) / name for name in files if name.endswith(".md"))


PAGES = sorted(pages())
NAMED = re.compile(r"(?<![\w./-])docs/[\w./-]*(?:#[\w-]+)?")
FOLDERS = ("constructs", "stacks", "lifecycle_scripts", "environments", "examples", "tools")
SUFFIXES = (".py", ".json", ".yaml", ".yml", ".sh", ".txt", ".csv", ".js")
_AWS = "the AWS documentation's own repository"
FOREIGN = {
    "docs/contents/releases": "aws/eks-distro",
    "docs/AWSCloudFormation/latest": _AWS,
    "docs/AmazonRDS/latest": _AWS,
    "docs/eks/latest": _AWS,
    "docs/fsx/latest": _AWS,
    "docs/parallelcluster/latest": _AWS,
    "docs/pcs/latest": _AWS,
    "docs/sagemaker/latest": _AWS,
    "docs/design/metrics.md": "vllm-project/vllm",
    "docs/references/production_metrics.md": "sgl-project/sglang",
    "docs/metrics/": "kubernetes/kube-state-metrics",
    "docs/install/iam_policy.json": "kubernetes-sigs/aws-load-balancer-controller",
    "docs/install.md": "awslabs/mountpoint-s3-csi-driver",
    "docs/CONFIGURATION.md": "awslabs/mountpoint-s3-csi-driver",
    "docs/tagging.md": "kubernetes-sigs/aws-ebs-csi-driver",
    "docs/user-guide": "volcano-sh/volcano",
    "docs/design/hierarchical-queue": "volcano-sh/volcano",
    "docs/queues": "kai-scheduler/KAI-Scheduler",
    "docs/overview.md": "kubernetes-sigs/lws",
    "docs/designs/022-workflow-nvlink-err.md": "NVIDIA/NVSentinel",
    "docs/reference/instance-types.md": "aws/karpenter-provider-aws",
    "docs/PCS-READY-DLAMI.md": "aws-samples",
}
"""Pages of others, that sources of facts name, and whose they are."""


@for_each("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wrong: list[str] = []
    for link in links(text):
        if link.elsewhere:
            continue
        target = (page.parent / link.path).resolve() if link.path else page
        place = f"line {line_of(text, link.start)}: {link.target}"
        if not target.exists() or not target.is_relative_to(ROOT):
            wrong.append(f"{place}: no such file")
        elif link.anchor and target.suffix == ".md" and link.anchor not in anchors_of(target):
            near = [one for one in sorted(anchors_of(target)) if one[:6] == link.anchor[:6]]
            wrong.append(f"{place}: no such heading; near it: {', '.join(near[:3]) or 'none'}")

    assert wrong == []


def named() -> Iterator[tuple[Path, str, int]]:
    """File, page of docs/ and line, wherever one is named outside of Markdown."""
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in SUFFIXES and "__pycache__" not in file.parts and file.is_file():
                text = file.read_text(encoding="utf-8", errors="replace")
                for found in NAMED.finditer(text) if "docs/" in text else ():
                    yield file, found[0].rstrip("."), line_of(text, found.start())


def test_pages_that_code_and_messages_name_are_there() -> None:
    wrong: list[str] = []
    count = 0
    for file, name, line in named():
        path, _, anchor = name.partition("#")
        # what a message completes, as docs/runbooks/{alertname}.md, ends before the bracket
        there = (ROOT / path).exists() or (not path.endswith(".md") and any(ROOT.glob(f"{path}*")))
        there = there and (not anchor or anchor in anchors_of(ROOT / path))
        count += there
        if not there and not name.startswith(tuple(FOREIGN)):
            wrong.append(f"{file.relative_to(ROOT)}:{line}: {name}")

    assert wrong == []
    assert count > 100
