"""`extends:` stays with the environments, and shows nothing of what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ultracluster.config import Finding, InvalidEnvironmentError, load
from ultracluster.config.base_files import EXTENDS_FROM
from ultracluster.config.source import MOST_BASES, MOST_FILES, read

SECRET = "aws_secret_access_key = wJalrXUtnFEMI"  # noqa: S105 - what must not be shown
BASE = "name: base\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(EXTENDS_FROM, raising=False)
    folder = tmp_path / "environments"
    folder.mkdir()
    (tmp_path / "credentials").write_text(f"[default]\n{SECRET}\n: : {SECRET}\n")
    (tmp_path / "outside.yaml").write_text(f"password: {SECRET}\n")
    return folder


def refused(home: Path, extends: str) -> Finding:
    file = home / "dev.yaml"
    file.write_text(f"extends: {extends}\nname: dev\n")
    with pytest.raises(InvalidEnvironmentError) as caught:
        read(file)
    assert "wJalr" not in str(caught.value)
    assert "wJalr" not in repr(caught.value.findings)
    assert "\x1b" not in str(caught.value)
    return caught.value.findings[0]


@pytest.mark.parametrize(
    "extends",
    [
        "../credentials",
        "../outside.yaml",
        "/etc/passwd",
        "../environments/../outside.yaml",
        "../nothing.yaml",
        "/proc/self/environ",
    ],
)
def test_it_leads_out_of_no_folder(extends: str, home: Path) -> None:
    finding = refused(home, extends)

    assert finding.code == "CFG008"
    assert finding.location is not None
    assert finding.location.line == 1
    assert "lies outside" in finding.message  # whether it exists is not said
    assert EXTENDS_FROM in finding.instead


@pytest.mark.parametrize("target", ["credentials", "outside.yaml"])
def test_nor_through_a_link(target: str, home: Path) -> None:
    (home / "link.yaml").symlink_to(home.parent / target)

    assert "outside" in refused(home, "link.yaml").message


@pytest.mark.parametrize("target", ["credentials", "outside.yaml"])
def test_a_file_that_is_itself_a_link_elsewhere_shows_no_line(target: str, home: Path) -> None:
    """As in a pull request whose files a job validates, with the job's secrets around it."""
    file = home / "link.yaml"
    file.symlink_to(home.parent / target)

    with pytest.raises(InvalidEnvironmentError) as caught:
        load(file)
    assert "wJalr" not in str(caught.value)
    assert "wJalr" not in repr(caught.value.findings)


def test_a_file_of_the_folder_that_is_none_of_ours_shows_no_line(home: Path) -> None:
    (home / "secret.yaml").write_text(f"apiVersion: v1\nkind: Secret\ndata: {{key: {SECRET}}}\n")
    (home / "broken.yaml").write_text(f"[default]\n{SECRET}\n")
    (home / "secret.txt").write_text(SECRET)

    assert "none of the keys" in refused(home, "secret.yaml").message
    assert refused(home, "broken.yaml").code == "CFG002"
    assert "by its name" in refused(home, "secret.txt").message


def test_within_the_folder_and_below_it(home: Path) -> None:
    (home / "team").mkdir()
    (home / "base.yaml").write_text(BASE + "region: us-east-1\n")
    (home / "team" / "dev.yaml").write_text("extends: ../base.yaml\nname: dev\n")

    assert read(home / "team" / "dev.yaml").data == {"name": "dev", "region": "us-east-1"}


def test_further_folders_when_the_user_names_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.parent / "shared").mkdir()
    (home.parent / "shared" / "base.yaml").write_text(BASE)
    file = home / "dev.yaml"
    file.write_text("extends: ../shared/base.yaml\nregion: us-east-1\n")
    with pytest.raises(InvalidEnvironmentError, match=EXTENDS_FROM):
        read(file)

    monkeypatch.setenv(EXTENDS_FROM, f"/nowhere:{home.parent / 'shared'}")

    assert read(file).data == {"name": "base", "region": "us-east-1"}


def test_outside_of_a_project_the_folder_of_the_file_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "dev.yaml").write_text("extends: base.yaml\n")
    monkeypatch.chdir(tmp_path)

    assert read(Path("dev.yaml")).data == {"name": "base"}


def test_a_loop_and_a_long_row(home: Path) -> None:
    (home / "a.yaml").write_text("extends: dev.yaml\nname: a\n")
    assert "extend each other" in refused(home, "a.yaml").message

    for number in range(MOST_FILES + 5):
        (home / f"n{number}.yaml").write_text(f"extends: n{number + 1}.yaml\nname: x\n")
    assert "in a row" in refused(home, "n0.yaml").message


def test_several_files_are_read_one_over_the_other(home: Path) -> None:
    (home / "base.yaml").write_text(BASE)
    (home / "types.yaml").write_text("name: types\nregion: us-east-1\naccount: '1'\n")
    (home / "x.yaml").write_text("extends: [types.yaml, base.yaml]\nregion: us-west-2\n")

    assert read(home / "x.yaml").data == {"name": "base", "region": "us-west-2", "account": "1"}


def test_lists_of_lists_end(home: Path) -> None:
    for number in range(MOST_FILES):
        (home / f"n{number}.yaml").write_text(f"extends: [n{number + 1}.yaml, n{number + 1}.yaml]\nname: x\n")
    (home / f"n{MOST_FILES}.yaml").write_text("name: x\n")

    with pytest.raises(InvalidEnvironmentError, match=f"more than {MOST_BASES} files"):
        read(home / "n1.yaml")


@pytest.mark.parametrize(
    "value",
    ['"a\\0b.yaml"', "'" + "x" * 5000 + ".yaml'", "a/" * 500 + "x.yaml", '"\\e[2J.yaml"', "'~/x.yaml'"],
)
def test_names_that_no_file_has(value: str, home: Path) -> None:
    assert refused(home, value).code == "CFG008"
