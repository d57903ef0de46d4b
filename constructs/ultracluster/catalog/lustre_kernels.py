"""Kernels for which FSx for Lustre has a client; `lustre_kernels.json` next to it has source and date."""

from __future__ import annotations

from functools import partial

from ultracluster.catalog.files import catalog_file

_document = partial(catalog_file, "lustre_kernels")


def lustre_kernels(os: str) -> tuple[tuple[str, str], ...]:
    """Ranges of kernels of an operating system, lowest and highest; the highest stands for its series.

    Empty where the matrix does not name the system.
    """
    ranges: str = _document()["kernels"].get(os, "")
    pairs = (one.partition("..") for one in ranges.split())
    return tuple((low, high) for low, _, high in pairs)


def lustre_efa_kernel(os: str) -> str | None:
    """The lowest kernel with which Lustre uses EFA on an operating system; None where any will do."""
    return _document()["efa_ubuntu_kernel"] if os.startswith("ubuntu") else None


def lustre_client(os: str) -> str | None:
    """Version of the client for an operating system; None where it depends on the kernel, or is unknown."""
    return _document()["servers"]["only_client"].get(os)


def lustre_servers(os: str, client: str) -> tuple[str, ...]:
    """Server versions that a client (`2.15.6-1fsx35`) on an operating system reaches; empty where the matrix
    does not have the client."""
    servers, minor = _document()["servers"], ".".join(client.split(".")[:2])
    return tuple(servers["systems"].get(os) or servers["clients"].get(minor, ()))
