"""What a node is said to do with each component: the table of docs/images.md, case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from ultracluster.catalog.images import Fact, Image, image
from ultracluster.software import load_release
from ultracluster.software.fit import Fit, Node, fit
from ultracluster.software.installing import installing
from ultracluster.software.lock import Release

SLURM = image("hyperpod-slurm-ubuntu22.04-x86_64-20260917")
EKS = image("eks-al2023-nvidia-1.34-x86_64-20261012")
NODE = Node(
    role="compute",
    instance_type="p5.48xlarge",
    architecture="x86_64",
    accelerator="nvidia",
    efa_interfaces=32,
    nvswitch=True,
    lustre="tcp",
    gds=False,
    kubernetes=False,
)
POD_NODE = replace(NODE, kubernetes=True)
URL = "https://example.com/file.tar.gz"


def floor(version: str, mark: str = "confirmed") -> dict[str, str]:
    return {"version": version, "mark": mark, "source": "a test"}


def artifact(os: str = "ubuntu22.04", arch: str = "x86_64", *, locked: bool = True) -> dict[str, Any]:
    one: dict[str, Any] = {"os": [os], "arch": [arch], "name": "file.tar.gz", "url": URL}
    return one | ({"integrity": "checksum", "sha256": "0" * 64} if locked else {"integrity": "to-be-locked"})


def packages(*, key: bool = True) -> dict[str, Any]:
    pinned = {"key_url": "https://example.com/key", "key_fingerprint": "A" * 40 if key else None}
    repository = {"url": "https://packages.example.com/ubuntu", **pinned}
    return {"os": ["ubuntu22.04"], "arch": ["x86_64"], "names": ["part"], "repository": repository}


def release(components: dict[str, dict[str, Any]], **other: Any) -> Release:
    facts = {"constraint": "none", "source": "a test"}
    return Release.model_validate(
        {
            "schema": 2,
            "release": "2026.12",
            "families": ["hyperpod-slurm", "eks-al2023"],
            "date": "2026-12-01",
            "summary": "for tests",
            "components": {name: facts | part for name, part in components.items()},
            **other,
        }
    )


def having(base: Image, **values: str | bool | None) -> Image:
    """`base` with other values, all of them confirmed; None is unknown."""
    facts = {name: None if value is None else _fact(value) for name, value in values.items()}
    return replace(base, values={**base.values, **facts})


def _fact(value: str | bool, mark: Literal["confirmed", "inferred"] = "confirmed") -> Fact:
    return Fact(value, mark, "os", "2026")


def one_fit(
    part: dict[str, Any], on: Image | None, node: Node = NODE, name: str = "container-toolkit"
) -> Fit:
    (found,) = fit(on, release({name: part}), node)
    return found


TOOLKIT: dict[str, Any] = {
    "version": "1.20.1",
    "kind": "packages",
    "need": "wanted",
    "floor": floor("1.19.1"),
    "packages": [packages()],
}
SOURCE: dict[str, Any] = {"packages": [], "kind": "source"}
DRIVER: dict[str, Any] = {
    "version": "595.91.07",
    "kind": "image",
    "need": "required",
    "floor": floor("580.159.03"),
}


@pytest.mark.parametrize(
    ("found", "outcome", "shown", "detail"),
    [
        ("1.20.1", "kept", "1.20.1", ""),
        ("1.21.0", "kept", "1.21.0", ""),
        ("1.19.5", "kept", "1.19.5", "prefers 1.20.1"),
        ("1.19.1", "kept", "1.19.1", "prefers 1.20.1"),
        ("1.18.0", "installs", "1.18.0", "below 1.19.1"),
        (">=1.19.1", "kept", ">=1.19.1", "prefers 1.20.1"),
        (">=1.18.0", "kept", ">=1.18.0", "at least 1.18.0"),
        (False, "installs", None, "has none"),
        (True, "kept", None, "version is not known"),
        (None, "installs", None, "unknown: detected on the node"),
    ],
)
def test_what_can_be_installed(
    found: str | bool | None, outcome: str, shown: str | None, detail: str
) -> None:
    one = one_fit(TOOLKIT, having(SLURM, container_toolkit=found))

    assert (one.outcome, one.found, one.preferred, one.need) == (outcome, shown, "1.20.1", "wanted")
    assert detail in one.detail
    assert (one.source, one.minutes > 0) == (
        ("packages.example.com", True) if outcome == "installs" else ("", False)
    )
    assert one.certain is (found not in (None, ">=1.18.0"))


@pytest.mark.parametrize("need", ["required", "wanted", "optional"])
@pytest.mark.parametrize("mark", ["confirmed", "reported", "inferred"])
@pytest.mark.parametrize("found", ["570.1", False, None, True, "580.200", "600.1"])
def test_only_a_required_component_that_is_surely_short_ends_a_node(
    need: str, mark: str, found: str | bool | None
) -> None:
    part = DRIVER | {"need": need, "floor": floor("580.159.03", mark)}
    node = replace(NODE, components=frozenset({"nvidia-driver"}))
    one = one_fit(part, having(SLURM, nvidia_driver=found), node, "nvidia-driver")

    short = found == "570.1"
    if short or found is False:
        ends = need == "required" and (not short or mark == "confirmed")
        assert one.outcome == ("refuses" if ends else "degraded")
        assert "nothing is installed in its place" in one.detail
        assert one.certain is (not short or mark == "confirmed")
    else:
        assert one.outcome == "kept"


def test_what_is_inferred_of_an_image_is_never_certain() -> None:
    old = replace(SLURM, values={**SLURM.values, "nvidia_driver": _fact("570.1", "inferred")})
    one = one_fit(DRIVER, old, NODE, "nvidia-driver")

    assert (one.outcome, one.certain) == ("refuses", False)


def test_without_a_floor_any_version_works() -> None:
    assert one_fit(TOOLKIT | {"floor": None}, having(SLURM, container_toolkit="1.0")).outcome == "kept"


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ({"kind": "artifact", "artifacts": [artifact(locked=False)]}, "file.tar.gz has no digest"),
        ({"packages": [packages(key=False)]}, "key of packages.example.com is not pinned"),
        (SOURCE | {"artifacts": [artifact("al2023")]}, "nothing for ubuntu22.04 on x86_64"),
        (SOURCE | {"artifacts": [artifact(arch="aarch64")]}, "nothing for ubuntu22.04"),
        ({"packages": [], "kind": "bundled"}, "comes with another component"),
    ],
)  # fmt: skip
def test_what_cannot_be_installed_is_degraded_and_says_why(part: dict[str, Any], why: str) -> None:
    one = one_fit(TOOLKIT | part, having(SLURM, container_toolkit=False))

    assert (one.outcome, one.certain, one.source, one.minutes) == ("degraded", True, "", 0)
    assert why in one.detail


def test_where_nothing_is_reached_nothing_is_installed() -> None:
    lacking = having(SLURM, container_toolkit=False)
    closed = one_fit(TOOLKIT, lacking, replace(NODE, sources="none"))
    assert closed.outcome == "degraded" and "no route" in closed.detail

    unrecorded = one_fit(TOOLKIT, lacking, replace(NODE, sources="mirror"))
    assert unrecorded.outcome == "degraded" and "no packages of a mirror" in unrecorded.detail

    recorded = release({"container-toolkit": TOOLKIT}, package_sets={"ubuntu22.04-x86_64": "0" * 64})
    (one,) = fit(lacking, recorded, replace(NODE, sources="mirror"))
    assert (one.outcome, one.source) == ("installs", "the mirror")


def test_the_systems_own_packages_of_al2023_are_reached_without_the_internet() -> None:
    client = {"version": "2.15.6", "kind": "packages", "need": "required"}
    own = {"os": ["al2023"], "arch": ["x86_64"], "names": ["lustre-client"]}
    node = replace(POD_NODE, lustre="efa", sources="none")
    one = one_fit(client | {"packages": [own]}, EKS, node, "lustre-client")

    assert (one.outcome, one.source) == ("installs", "the system's own repositories")


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ("1.20.1", "kept"),
        ("1.20.1-1", "kept"),
        ("1.19.5", "installs"),
        ("1.21.0", "refuses"),
        (False, "installs"),
    ],
)
def test_strict_takes_the_preferred_version_only(found: str | bool, outcome: str) -> None:
    strict = replace(NODE, strict=True)

    assert one_fit(TOOLKIT, having(SLURM, container_toolkit=found), strict).outcome == outcome


@pytest.mark.parametrize("found", ["1.19.5", False])
def test_strict_ends_a_node_whatever_the_need(found: str | bool) -> None:
    one = one_fit(
        TOOLKIT | {"packages": []}, having(SLURM, container_toolkit=found), replace(NODE, strict=True)
    )

    assert one.outcome == "refuses"


def test_of_an_unknown_image_nothing_is_refused() -> None:
    everything = release({"nvidia-driver": DRIVER, "container-toolkit": TOOLKIT})

    driver, toolkit = fit(None, everything, NODE)
    assert (driver.outcome, driver.certain) == ("kept", False)
    assert (toolkit.outcome, toolkit.certain) == ("installs", False)


EFA: dict[str, Any] = {
    "version": "1.50.0",
    "kind": "artifact",
    "need": "required",
    "floor": floor("1.47.0"),
    "artifacts": [artifact(), artifact("al2023")],
}
PLUGIN: dict[str, Any] = {"version": "1.21.1", "kind": "bundled", "need": "wanted", "floor": floor("1.18.0")}


def test_what_the_efa_installer_brings_comes_with_it() -> None:
    old = having(SLURM, efa_installer="1.40.0", aws_ofi_nccl=False)
    installer, plugin = fit(old, release({"efa-installer": EFA, "aws-ofi-nccl": PLUGIN}), NODE)

    assert installer.outcome == "installs"
    assert (plugin.outcome, plugin.detail) == ("kept", "the EFA installer brings it")


def test_a_plugin_below_its_floor_stays_where_the_installer_stays() -> None:
    old = having(SLURM, efa_installer="1.47.0", aws_ofi_nccl="1.15.0")
    installer, plugin = fit(old, release({"efa-installer": EFA, "aws-ofi-nccl": PLUGIN}), NODE)

    assert (installer.outcome, plugin.outcome) == ("kept", "degraded")


@pytest.mark.parametrize(
    ("module", "outcome"), [("3.3.0", "kept"), ("3.1.0", "kept"), ("2.17.3", "installs"), (">=3.1.0", "kept")]
)
def test_on_eks_the_module_of_efa_decides(module: str, outcome: str) -> None:
    one = one_fit(EFA, having(EKS, efa_kmod=module), POD_NODE, "efa-installer")

    assert (one.outcome, one.found, one.preferred) == (outcome, module, "3.3.0")


def test_on_kubernetes_only_what_reaches_into_the_kernel_is_needed() -> None:
    names = ("nccl", "libfabric", "enroot", "dcgm", "cuda-runtime")
    for one in fit(EKS, release(dict.fromkeys(names, TOOLKIT)), POD_NODE):
        assert (one.outcome, one.certain) == ("not-needed", True)
    for role in ("system", "login"):
        (driver,) = fit(EKS, release({"nvidia-driver": DRIVER}), replace(POD_NODE, role=role))
        assert driver.outcome == "not-needed"


def test_over_tcp_on_kubernetes_the_module_of_lustre_is_enough() -> None:
    client = {"version": "2.15.6", "kind": "packages", "need": "required"}

    assert one_fit(client, EKS, POD_NODE, "lustre-client").outcome == "kept"
    assert one_fit(client, EKS, replace(POD_NODE, lustre="efa"), "lustre-client").outcome == "refuses"
    assert one_fit(client, EKS, replace(POD_NODE, lustre="none"), "lustre-client").outcome == "not-needed"


GDRCOPY: dict[str, Any] = {"version": "2.6", "kind": "image", "need": "wanted", "floor": floor("2.5.1")}


@pytest.mark.parametrize(
    ("library", "module", "node", "outcome"),
    [
        ("2.6", "2.6", NODE, "kept"),
        ("2.6", False, NODE, "degraded"),
        (False, "2.6", NODE, "degraded"),
        (None, "2.6", NODE, "kept"),
        (False, "2.5.2", POD_NODE, "kept"),
        ("2.6", False, POD_NODE, "degraded"),
    ],
)
def test_gdrcopy_is_library_and_module_and_on_kubernetes_the_module(
    library: str | bool | None, module: str | bool, node: Node, outcome: str
) -> None:
    on = having(SLURM, gdrcopy_lib=library, gdrdrv=module)

    assert one_fit(GDRCOPY, on, node, "gdrcopy").outcome == outcome


def test_an_unknown_kernel_is_tried() -> None:
    client = {"version": "2.15.6", "kind": "packages", "need": "required", "packages": [packages()]}
    known = one_fit(client, having(SLURM, lustre_client=False), NODE, "lustre-client")
    odd = having(SLURM, lustre_client=False, kernel="6.11.0-1001-aws")
    tried = one_fit(client, odd, NODE, "lustre-client")

    assert (known.outcome, known.detail, known.certain) == ("installs", "the image has none", True)
    assert (tried.outcome, tried.certain) == ("installs", False)
    assert "6.11.0-1001-aws is not in FSx's matrix and is tried" in tried.detail


def test_lustre_over_efa_needs_a_kernel_that_can() -> None:
    setup = {"version": "unversioned", "kind": "artifact", "need": "optional", "artifacts": [artifact()]}
    node = replace(NODE, lustre="efa")
    new = having(SLURM, fsx_efa_setup=False)
    old = having(new, kernel="5.15.0-1051-aws")

    assert one_fit(setup, new, node, "lustre-efa-setup").outcome == "installs"
    late = one_fit(setup, old, node, "lustre-efa-setup")
    assert late.outcome == "degraded" and "from kernel 6.8 on" in late.detail
    assert one_fit(setup, new, NODE, "lustre-efa-setup").outcome == "not-needed"
    assert one_fit(setup, new, replace(node, role="login"), "lustre-efa-setup").outcome == "not-needed"


def test_what_the_node_is_decides_what_it_needs() -> None:
    def outcome(name: str, **changes: Any) -> str:
        return one_fit(DRIVER | {"floor": None}, SLURM, replace(NODE, **changes), name).outcome

    assert outcome("fabric-manager") == "kept"
    assert outcome("fabric-manager", nvswitch=False) == "not-needed"
    assert outcome("efa-installer", efa_interfaces=0) == "not-needed"
    assert outcome("nvidia-fs", lustre="efa", gds=True) == "kept"
    assert outcome("nvidia-fs", lustre="efa") == outcome("nvidia-fs", gds=True) == "not-needed"
    assert outcome("nvidia-driver", role="login") == "not-needed"
    assert outcome("lustre-client", role="login") == outcome("slurm", role="controller") == "kept"
    neuron = DRIVER | {"accelerator": "neuron", "floor": None}
    assert one_fit(neuron, SLURM, NODE, "neuron-driver").outcome == "not-needed"
    optional = DRIVER | {"need": "optional", "floor": None}
    assert one_fit(optional, SLURM, NODE, "nccl").outcome == "not-needed"
    assert one_fit(optional, SLURM, replace(NODE, components=frozenset({"nccl"})), "nccl").outcome == "kept"


def test_the_newest_of_versions_side_by_side_decides() -> None:
    cuda = {"version": "13.2", "kind": "image", "need": "wanted", "floor": floor("13.0")}
    one = one_fit(cuda, having(SLURM, cuda_all="12.8 13.2 13.0"), NODE, "cuda-runtime")

    assert (one.outcome, one.found) == ("kept", "13.2")


@pytest.mark.parametrize(
    ("instance_type", "gpu", "nccl", "older"),
    [
        ("p5en.48xlarge", "H200", "2.27.5", "2.27.5, P5en and P6-B200 have NCCL 2.28.3 or newer"),
        ("p6-b200.48xlarge", "B200", "2.28.0", "2.28.0, P5en and P6-B200 have NCCL 2.28.3 or newer"),
        ("p5en.48xlarge", "H200", "2.28.3", "2.28.3, the release prefers 2.30.7"),
        ("p5e.48xlarge", "H200", "2.27.5", "2.27.5, the release prefers 2.30.7"),
        ("p5en.48xlarge", "H200", "2.30.7", ""),
        ("p5en.48xlarge", "H200", None, ""),
    ],
)
def test_what_is_kept_below_its_family_or_the_release_is_told_and_ends_no_node(
    instance_type: str, gpu: str, nccl: str | None, older: str
) -> None:
    part = {"version": "2.30.7", "kind": "image", "need": "wanted", "accelerator": "nvidia"}
    node = replace(NODE, instance_type=instance_type, gpu=gpu)
    (found,) = fit(having(SLURM, nccl=nccl), release({"nccl": part}), node)
    assert (found.outcome, found.older) == ("kept", older)


@pytest.mark.parametrize(
    ("has", "preferred", "older"),
    [
        ("2.7.0", "2.7.0amzn2.0", ""),
        ("2.7", "2.7.1", "2.7, the release prefers 2.7.1"),
        ("2.7.0amzn1.0", "2.7.0amzn2.0", "2.7.0amzn1.0, the release prefers 2.7.0amzn2.0"),
    ],
)
def test_a_suffix_that_an_image_leaves_out_is_not_older(has: str, preferred: str, older: str) -> None:
    part = {"version": preferred, "kind": "image", "need": "wanted"}
    (found,) = fit(having(SLURM, libfabric=has), release({"libfabric": part}), NODE)
    assert found.older == older


@pytest.mark.parametrize(("preferred", "older"), [("2.5.2", ""), ("2.6", "2.5, the release prefers 2.6")])
def test_a_module_of_gdrcopy_does_not_state_its_patch_level(preferred: str, older: str) -> None:
    part = {"version": preferred, "kind": "source", "need": "wanted", "floor": floor("2.5")}
    assert one_fit(part, having(EKS, gdrdrv="2.5"), POD_NODE, "gdrcopy").older == older


def test_a_fabric_manager_is_as_old_as_its_driver() -> None:
    part = {"version": "595.91.07", "kind": "image", "need": "required"}
    (found,) = fit(having(SLURM, fabric_manager="580.159.03"), release({"fabric-manager": part}), NODE)
    assert (found.outcome, found.older) == ("kept", "")


@pytest.mark.parametrize("component", ["gdrcopy", "pyxis", "lustre-efa-setup"])
def test_what_is_built_from_source_is_built_on_a_system_that_no_release_names(component: Any) -> None:
    pcs = load_release("pcs-2026.07")
    for machine in ("x86_64", "aarch64"):
        way = installing(
            pcs, component, pcs.components[component], os="ubuntu26.04", machine=machine, sources="internet"
        )
        assert way.source
    toolkit = pcs.components["container-toolkit"]
    assert not installing(
        pcs, "container-toolkit", toolkit, os="ubuntu26.04", machine="x86_64", sources="internet"
    ).source


@pytest.mark.parametrize(("driver", "outcome"), [("570.172.08", "kept"), ("515.65.01", "refuses")])
def test_a_driver_of_cuda_12_does_not_end_a_node_of_h100(driver: str, outcome: str) -> None:
    """CUDA 13, which asks for branch 580, is wanted only."""
    fits = fit(having(SLURM, nvidia_driver=driver), load_release("hyperpod-slurm-2026.09"), NODE)
    assert {one.component: one.outcome for one in fits}["nvidia-driver"] == outcome


@pytest.mark.parametrize(
    ("instance_type", "gpu", "driver", "outcome", "detail"),
    [
        ("p5.48xlarge", "H100", "565.57.01", "kept", "the release prefers 595.91.07"),
        ("p6-b200.48xlarge", "B200", "565.57.01", "refuses", "565.57.01 is below 570"),
        ("p6-b200.48xlarge", "B200", "570.124.06", "kept", "the release prefers 595.91.07"),
        ("p6-b300.48xlarge", "B300", "570.195.03", "refuses", "570.195.03 is below 580"),
        ("p9.48xlarge", "", "525.147.05", "kept", "the release prefers 595.91.07"),
    ],
)
def test_the_floor_of_the_driver_is_that_of_the_family(
    instance_type: str, gpu: str, driver: str, outcome: str, detail: str
) -> None:
    """By its branch: images differ in patch levels."""
    node = replace(NODE, instance_type=instance_type, gpu=gpu)
    fits = fit(having(SLURM, nvidia_driver=driver), load_release("hyperpod-slurm-2026.09"), node)
    found = next(one for one in fits if one.component == "nvidia-driver")
    assert (found.outcome, found.detail.partition(";")[0]) == (outcome, detail)


def test_a_driver_is_right_by_its_branch_in_a_lock_of_ones_own_too() -> None:
    part = {**DRIVER, "version": "595.91.07", "floor": floor("580.159.04")}
    for driver, outcome in (("580.159.03", "kept"), ("575.57.08", "refuses")):
        found = one_fit(part, having(SLURM, nvidia_driver=driver), NODE, "nvidia-driver")
        assert found.outcome == outcome
