"""`software lock --for`: what is recorded for an environment, what stays, and what is said of the rest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from moto import mock_aws
from project import ROOT

from ultracluster.account import aws
from ultracluster.config import Environment, load
from ultracluster.software import InvalidLockError, completed, environment_lock, load_release, read_lock
from ultracluster.software.lock import release_file
from ultracluster.software.locked_images import with_locked_images
from ultracluster.software.node_image import image_release
from ultracluster.supply import environment_lock as module
from ultracluster.supply.environment_lock import lock_environment, places
from ultracluster.supply.locking import Locked, Options

ZIP = "configure-efa-fsx-lustre-client.zip"
AMD, ARM = "enroot_4.2.1-1_amd64.deb", "enroot_4.2.1-1_arm64.deb"
TODAY = date(2026, 11, 22)
Run = Callable[..., dict[str, Locked]]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_pause")]


class Place:
    """An environment's file in a folder of its own, and a release whose addresses are the shop's."""

    def __init__(self, folder: Path, shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.shop, self.monkeypatch = folder, shop, monkeypatch
        self.release = ""

    def environment(self, name: str) -> Path:
        text = (ROOT / "environments" / f"{name}.yaml").read_text()
        text = text.replace('version: "3.16.1"', 'version: "3.16.3"')  # the image that fits the release
        file = self.folder / "environments" / f"{name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        self.serve(load(file).environment.software.release)
        return file

    def serve(self, name: str, **changes: Any) -> None:
        """The release with the shop's addresses; `changes` of artifacts by component."""
        content = json.loads(release_file(name).read_text())
        for component, part in content["components"].items():
            for row in part.get("artifacts", ()):
                if "url" in row:
                    self.shop.files.setdefault(row["name"], f"content of {row['name']}".encode())
                    row["url"] = self.shop.url(row["name"])
                for key, value in changes.get(component.replace("-", "_"), {}).items():
                    row[key] = value
                    if value is None:
                        del row[key]
        file = self.folder / f"{name}.lock"
        file.write_text(json.dumps(content))
        self.monkeypatch.setattr(module, "load_release", lambda _: read_lock(file))

    def lock(self, name: str) -> dict[str, Any]:
        return json.loads((self.folder / "environments" / f"{name}.lock").read_text())


@pytest.fixture
def place(tmp_path: Path, shop: Any, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)  # where the locks of environments are looked for
    return Place(tmp_path, shop, monkeypatch)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def lock(file: Path, *, account: Any = None, today: date = TODAY, **options: Any) -> dict[str, Locked]:
        config: Environment = load(file).environment
        cache = Options(tmp_path / "cache", **options)
        return {one.name: one for one in lock_environment(config, file, cache, account=account, today=today)}

    return lock


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_what_an_arm_group_could_need_is_recorded_and_completes_the_release(
    place: Place, run: Run, shop: Any
) -> None:
    file = place.environment("parallelcluster-gb200")
    done = run(file)
    assert {one.state for one in done.values()} == {"locked"}
    assert set(done) == {ARM, f"enroot+caps{ARM.removeprefix('enroot')}"}
    lock = place.lock("parallelcluster-gb200")
    assert lock["files"][ARM] == {
        "sha256": sha256(shop.files[ARM]),
        "size": len(shop.files[ARM]),
        "recorded": "2026-11-22",
        "from": shop.url(ARM),
    }
    assert (lock["environment"], lock["release"]) == ("parallelcluster-gb200", "parallelcluster-3.16.1")
    release = completed(load_release("parallelcluster-3.16.1"), environment_lock(file))
    assert release.unlocked_on("ubuntu24.04", "aarch64") == ()


def test_a_second_run_downloads_and_changes_nothing(place: Place, run: Run, shop: Any) -> None:
    file = place.environment("prod")
    run(file)
    before = file.with_suffix(".lock").read_bytes()
    shop.sent.clear()
    done = run(file, today=date(2027, 1, 1))
    assert {one.state for one in done.values()} == {"unchanged"}
    assert (shop.sent, file.with_suffix(".lock").read_bytes()) == ([], before)


def test_what_is_recorded_changes_only_when_its_source_is_asked_again(
    place: Place, run: Run, shop: Any
) -> None:
    file = place.environment("parallelcluster-gb200")
    run(file)
    before = file.with_suffix(".lock").read_bytes()
    shop.files[ARM] = b"another package"
    assert run(file)[ARM].state == "unchanged"
    assert file.with_suffix(".lock").read_bytes() == before
    done = run(file, again=True, today=date(2026, 12, 1))
    assert done[ARM].state == "changed"
    assert "of 2026-11-22" in done[ARM].message
    assert place.lock("parallelcluster-gb200")["files"][ARM]["sha256"] == sha256(b"another package")
    assert [one.state for name, one in done.items() if name != ARM] == ["unchanged"]


def test_a_file_that_its_maker_changes_is_that_of_today(place: Place, run: Run, shop: Any) -> None:
    """The release has a digest of some day; nodes are given the one that AWS serves before the deploy."""
    file = place.environment("prod")
    done = run(file)
    assert done[ZIP].state == "locked"
    assert "the release recorded another" in done[ZIP].message
    release = completed(load_release("hyperpod-slurm-2026.09"), environment_lock(file))
    (found,) = release.components["lustre-efa-setup"].artifacts
    assert found.sha256 == sha256(shop.files[ZIP])


def test_one_that_is_as_the_release_records_it_says_so(place: Place, run: Run, shop: Any) -> None:
    file = place.environment("prod")
    place.serve("hyperpod-slurm-2026.09", lustre_efa_setup={"sha256": sha256(shop.files[ZIP])})
    assert run(file)[ZIP].message == "as the release records it"


def test_where_nothing_is_open_nothing_is_written(place: Place, run: Run, shop: Any) -> None:
    """Lustre over TCP, x86-64: all that dev could need is locked in its release."""
    file = place.environment("dev")
    assert run(file) == {}
    assert not file.with_suffix(".lock").exists()
    assert shop.sent == []


def test_out_of_reach_it_is_one_line_for_each_file(
    place: Place, run: Run, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = place.environment("parallelcluster-gb200")
    shop.files.clear()
    done = run(file)
    assert {one.state for one in done.values()} == {"failed"}
    assert len(done) == 2
    assert "HTTP 404" in done[ARM].message
    assert not file.with_suffix(".lock").exists()


def test_what_cannot_be_asked_again_stays(place: Place, run: Run, shop: Any) -> None:
    file = place.environment("prod")
    run(file)
    before = file.with_suffix(".lock").read_bytes()
    del shop.files[ZIP]
    done = run(file, again=True)
    assert done[ZIP].state == "skipped"
    assert "what is recorded stays" in done[ZIP].message
    assert file.with_suffix(".lock").read_bytes() == before


def test_what_could_be_recorded_is_though_another_failed(place: Place, run: Run, shop: Any) -> None:
    file = place.environment("parallelcluster-gb200")
    del shop.files[ARM]
    done = run(file)
    assert done[ARM].state == "failed"
    assert set(place.lock("parallelcluster-gb200")["files"]) == {f"enroot+caps{ARM.removeprefix('enroot')}"}


def test_a_key_that_the_release_leaves_open_is_pinned(
    place: Place, run: Run, shop: Any, signers: Any
) -> None:
    right, stranger = signers
    file = place.environment("prod")
    shop.files["fsx.key"] = right.key
    name = "hyperpod-slurm-2026.09"
    content = json.loads((place.folder / f"{name}.lock").read_text())
    for row in content["components"]["nccl"]["packages"]:
        row["repository"]["key_url"] = shop.url("fsx.key")
        del row["repository"]["key_fingerprint"]
    (place.folder / f"{name}.lock").write_text(json.dumps(content))
    url = shop.url("fsx.key")
    assert run(file)[url].state == "locked"
    assert place.lock("prod")["keys"][url] == {"fingerprint": right.fingerprint, "recorded": "2026-11-22"}

    shop.files["fsx.key"] = stranger.key
    assert run(file)[url].state == "unchanged"
    assert run(file, again=True)[url].state == "changed"
    assert place.lock("prod")["keys"][url]["fingerprint"] == stranger.fingerprint


def test_the_lock_of_another_environment_is_not_touched(place: Place, run: Run) -> None:
    file = place.environment("prod")
    run(file)
    other = file.with_name("parallelcluster-gb200.yaml")
    place.environment("parallelcluster-gb200")
    file.with_suffix(".lock").rename(other.with_suffix(".lock"))
    before = other.with_suffix(".lock").read_bytes()
    with pytest.raises(
        InvalidLockError, match="is of environment prod, not parallelcluster-gb200: remove it"
    ):
        run(other)
    assert other.with_suffix(".lock").read_bytes() == before


def test_the_lock_of_another_release_is_made_anew(place: Place, run: Run, shop: Any) -> None:
    file = place.environment("parallelcluster-gb200")
    run(file)
    lock = file.with_suffix(".lock")
    lock.write_text(lock.read_text().replace('"parallelcluster-3.16.1"', '"2026.11"'))
    assert run(file)[ARM].state == "locked"
    assert place.lock("parallelcluster-gb200")["release"] == "parallelcluster-3.16.1"


def test_a_write_that_fails_leaves_the_old_lock(
    place: Place, run: Run, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = place.environment("prod")
    run(file)
    before = file.with_suffix(".lock").read_bytes()
    shop.files[ZIP] = b"new"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        run(file, again=True)
    assert file.with_suffix(".lock").read_bytes() == before
    assert not list(file.parent.glob(".*.lock.*"))


def test_one_that_somebody_made_read_only_stays(place: Place, run: Run) -> None:
    file = place.environment("parallelcluster-gb200")
    run(file)
    lock = file.with_suffix(".lock")
    lock.write_text(lock.read_text().replace('"parallelcluster-3.16.1"', '"2026.11"'))
    before = lock.read_bytes()
    lock.chmod(0o444)
    with pytest.raises(PermissionError, match="it is read-only"):
        run(file)
    assert lock.read_bytes() == before


def test_places_are_those_of_the_groups() -> None:
    environment = load(ROOT / "environments" / "parallelcluster-gb200.yaml").environment
    found = places(environment, load_release(environment.software.release))
    assert ("ubuntu22.04", "aarch64") in found
    assert {system for system, _ in found} == {"ubuntu22.04"}


EKS = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64"


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with mock_aws():
        yield aws.Account(region="us-east-2")


class Parameters:
    """Public parameters, which SSM lets nobody write: an answer for each name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.values: dict[str, str] = {}
        self.asked: list[str] = []
        real: Any = BaseClient._make_api_call

        def answer(client: Any, operation: str, asked: dict[str, Any]) -> Any:
            if operation != "GetParameter" or not asked["Name"].startswith("/aws/service/"):
                return real(client, operation, asked)
            self.asked.append(asked["Name"])
            if asked["Name"] not in self.values:
                raise client.exceptions.ParameterNotFound(
                    {"Error": {"Code": "ParameterNotFound", "Message": ""}}, operation
                )
            return {"Parameter": {"Name": asked["Name"], "Value": self.values[asked["Name"]]}}

        monkeypatch.setattr(BaseClient, "_make_api_call", answer)

    def eks(self, variant: str, day: str, image: str, patch: int = 12) -> None:
        base = f"{EKS}/{variant}/amazon-eks-node-al2023-x86_64-{variant}-1.36-v{day}"
        self.values |= {f"{base}/image_id": image, f"{base}/release_version": f"1.36.{patch}-{day}"}


@pytest.fixture
def parameters(monkeypatch: pytest.MonkeyPatch) -> Parameters:
    return Parameters(monkeypatch)


def eks_day(file: Path) -> str:
    return image_release(load(file).environment, "train")[0].rpartition("-")[2]


def test_the_release_of_ekss_image_is_resolved_from_its_date(
    place: Place, run: Run, account: Any, parameters: Parameters
) -> None:
    file = place.environment("eks-p5en")
    day = eks_day(file)
    parameters.eks("nvidia", day, "ami-00000000000000001")
    parameters.eks("standard", day, "ami-00000000000000002")
    done = run(file, account=account)
    images = place.lock("eks-p5en")["images"]
    assert images["train"]["image"] == "ami-00000000000000001"
    assert images["train"]["release"] == f"1.36.12-{day}"
    assert images["train"]["parameter"].startswith(f"{EKS}/nvidia/")
    assert images["system"]["image"] == "ami-00000000000000002"
    assert done[f"1.36.12-{day}"].state == "locked"

    before = file.with_suffix(".lock").read_bytes()
    parameters.asked.clear()
    run(file, account=account)
    run(file)  # without credentials: what is there stays
    assert (parameters.asked, file.with_suffix(".lock").read_bytes()) == ([], before)

    parameters.eks("nvidia", day, "ami-00000000000000003", patch=13)
    assert run(file, account=account, again=True)[f"1.36.13-{day}"].state == "changed"


def test_a_date_that_the_region_does_not_have(
    place: Place, run: Run, account: Any, parameters: Parameters
) -> None:
    file = place.environment("eks-p5en")
    done = run(file, account=account)
    failed = [one for one in done.values() if one.state == "failed"]
    assert {one.component for one in failed} == {"system", "train"}
    assert all("this Region has no such parameter" in one.message for one in failed)
    assert not file.with_suffix(".lock").exists()


@pytest.mark.parametrize(("name", "groups"), [("eks-p5en", 2), ("pcs-p6-b200", 1)])
def test_without_credentials_images_that_lack_have_failed(
    name: str, groups: int, place: Place, run: Run
) -> None:
    file = place.environment(name)
    images = {one.name: one for one in run(file).values() if one.name.startswith("/aws/")}
    assert len(images) == groups  # two groups of PCS have the same parameter
    assert {(one.state, one.message) for one in images.values()} == {
        ("failed", f"{one}: not asked, without an account") for one in images
    }


def test_the_image_of_each_group_of_pcs_is_locked_and_boots(
    place: Place, run: Run, account: Any, parameters: Parameters
) -> None:
    named = "/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id"
    parameters.values[named] = "ami-00000000000000009"
    file = place.environment("pcs-p6-b200")
    run(file, account=account)
    row = {"image": "ami-00000000000000009", "parameter": named, "recorded": TODAY.isoformat()}
    assert place.lock("pcs-p6-b200")["images"] == {"login": row, "train": row}
    groups = with_locked_images(load(file).environment).node_groups.values()
    assert {group.image_in_template for group in groups} == {"ami-00000000000000009"}
    # asked again without an account, it stays
    assert {one.state for one in run(file, again=True).values() if one.name == named} == {"skipped"}
    assert place.lock("pcs-p6-b200")["images"] == {"login": row, "train": row}


def test_a_parameter_of_ekss_image_that_the_file_names_is_asked_as_it_stands(
    place: Place, run: Run, account: Any, parameters: Parameters
) -> None:
    named = f"{EKS}/nvidia/recommended/image_id"
    parameters.values[named] = "ami-00000000000000009"
    file = place.environment("eks-p5en")
    file.write_text(
        file.read_text().replace("    role: compute\n", f"    role: compute\n    image: {named}\n")
    )
    run(file, account=account)
    assert place.lock("eks-p5en")["images"]["train"] == {
        "image": "ami-00000000000000009",
        "parameter": named,
        "recorded": TODAY.isoformat(),
    }


def test_a_parameter_that_holds_no_image_is_one_line(
    place: Place, run: Run, account: Any, parameters: Parameters
) -> None:
    file = place.environment("eks-p5en")
    parameters.eks("nvidia", eks_day(file), "pending")
    done = run(file, account=account)
    (failed,) = [one for one in done.values() if one.component == "train"]
    assert failed.state == "failed" and "'pending', which is no AMI id" in failed.message
    assert not file.with_suffix(".lock").exists()


@pytest.mark.parametrize("damage", ["{", '{"schema": 1}', "[]"])
def test_a_damaged_lock_is_not_touched_and_says_what_to_do(damage: str, place: Place, run: Run) -> None:
    file = place.environment("prod")
    file.with_suffix(".lock").write_text(damage)
    with pytest.raises(InvalidLockError, match="\nremove it, or take back the one that was committed"):
        run(file)
    assert file.with_suffix(".lock").read_text() == damage
