"""What HyperPod brings to EKS."""

from __future__ import annotations

from ultracluster.catalog.hyperpod_eks import (
    health_agent_image,
    health_agent_regions,
    hyperpod_kubernetes_agreed,
    hyperpod_kubernetes_pages,
    hyperpod_kubernetes_window,
)
from ultracluster.config.kubernetes import HyperPodEks


def test_the_agents_image_is_in_the_region_that_asks() -> None:
    regions = health_agent_regions()
    assert regions
    assert all(f".{region}." in health_agent_image(region) for region in regions)


def test_the_window_of_releases_is_in_order() -> None:
    first, last = hyperpod_kubernetes_window()
    assert [int(part) for part in first.split(".")] <= [int(part) for part in last.split(".")]


def test_what_is_shipped_is_what_all_pages_agree_on() -> None:
    pages = hyperpod_kubernetes_pages()

    def order(release: str) -> list[int]:
        return [int(part) for part in release.split(".")]

    lasts = sorted((last for _, last, _ in pages), key=order)
    assert len(pages) > 1 and all(page and date for page, _, date in pages)
    assert (lasts[0], lasts[-1]) == (hyperpod_kubernetes_agreed(), hyperpod_kubernetes_window()[1])
    assert HyperPodEks().kubernetes_version == hyperpod_kubernetes_agreed()
