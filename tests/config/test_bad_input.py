"""Bad input: one readable finding each, with file, line and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ultracluster.config import Finding, InvalidEnvironmentError, load, parse
from ultracluster.config.remedy import apply
from ultracluster.config.source import Source, read
from ultracluster.rules import judge_rest

GOOD = """\
name: dev
region: us-west-2
network:
  zone_id: usw2-az2
storage:
  lustre:
    deployment: persistent-2-ssd
    capacity_gib: 1200
    throughput_mbps_per_tib: 250
orchestrator:
  kind: hyperpod-slurm
node_groups:
  controller:
    role: controller
    instance_type: m5.2xlarge
    count: 1
software:
  release: "2026.11"
"""

# (what to replace, by what, code, line, path, part of the message, part of the remedy)
CASES = {
    "unknown key": ("region:", "regoin:", "CFG004", 2, "regoin", "there is no `regoin`", "region"),
    "unknown key inside": ("zone_id: u", "zoneid: u", "CFG004", 4, "network.zoneid", "in `network`", "zone_id"),
    "key of another variant": (
        "    deployment: persistent-2-ssd\n    capacity_gib: 1200\n    throughput_mbps_per_tib: 250",
        "    deployment: scratch-2\n    capacity_gib: 1200\n    efa: true",
        "CFG004", 9, "storage.lustre.efa", "belongs to persistent-2-ssd", "deployment: persistent-2-ssd",
    ),
    "wrong type": ("count: 1", "count: one", "CFG005", 16, "node_groups.controller.count", "a number is needed", ""),
    "fraction": ("count: 1", "count: 1.5", "CFG005", 16, "node_groups.controller.count", "whole number", "2"),
    "below its range": ("count: 1", "count: -1", "CFG005", 16, "node_groups.controller.count", "out of range", "0"),
    "list for mapping": ("network:\n  zone_id: usw2-az2", "network: [a]", "CFG005", 3, "network", "keys and values", ""),
    "unit": ("1200", "1.2 TiB", "CFG005", 8, "storage.lustre.capacity_gib", "not the text", "capacity_gib: 1200; the unit is GiB"),
    "decimal unit": ("1200", "1200 GB", "CFG005", 8, "storage.lustre.capacity_gib", "not the text", "1200"),
    "quoted number": ("1200", '"1200"', "CFG005", 8, "storage.lustre.capacity_gib", "not the text", "1200; without"),
    "number for text": ('"2026.11"', "2026.10", "CFG005", 18, "software.release", "reads 2026.10 as a number", '"2026.10"'),
    "wrong choice": ("role: controller", "role: head", "CFG005", 14, "node_groups.controller.role", "none of", ""),
    "misspelt choice": ("role: controller", "role: contoller", "CFG005", 14, "node_groups.controller.role", "none of", "controller"),
    "unknown variant": ("persistent-2-ssd", "persistent-2", "CFG005", 7, "storage.lustre.deployment", "none of", "persistent-2-ssd"),
    "no variant": ("    deployment: persistent-2-ssd\n", "", "CFG006", 6, "storage.lustre.deployment", "is missing", "scratch-1"),
    "missing key": ("  zone_id: usw2-az2\n", "  egress: nat\n", "CFG006", 3, "network.zone_id", "is missing", "use1-az6"),
    "prefix of the service": ("m5.2xl", "ml.m5.2xl", "CFG005", 15, "node_groups.controller.instance_type", "form", "m5.2xlarge"),
    "upper case": ("name: dev", "name: Dev_1", "CFG005", 1, "name", "does not have the form", "dev-1"),
    "image id": ("    count: 1", "    image: ami-1\n    count: 1", "CFG005", 16, "node_groups.controller.image", "form", "a value of the form"),
    "bad group name": ("  controller:\n", "  my_group:\n", "CFG005", 13, "node_groups.my_group", "name `my_group`", "my-group"),
    "not a network": ("  zone_id", "  cidr: 10.0.0.1/16\n  zone_id", "CFG005", 4, "network.cidr", "host bits", ""),
    "duplicate key": ("region:", "name: x\nregion:", "CFG003", 2, "name", "the first is in line 1", "keep one"),
    "tab": ("  zone_id", "\tzone_id", "CFG002", 4, "", "a tab character", "  zone_id: usw2-az2"),
    "open bracket": ("usw2-az2", "[usw2-az2", "CFG002", 5, "", "not YAML", ""),
    "date for a number": ("count: 1", "count: 2026-11-20", "CFG005", 16, "node_groups.controller.count", "not the text '2026-11-20'", ""),
    "no such date": ("count: 1", "count: 2026-13-41", "CFG005", 16, "node_groups.controller.count", "not the text '2026-13-41'", ""),
    "endless number": ("count: 1", f"count: 1{'0' * 5000}", "CFG005", 16, "node_groups.controller.count", "a whole number is needed", ""),
    "second document": ("software:", "---\nsoftware:", "CFG002", 17, "", "a second YAML document", "one file for each environment"),
    "unknown accelerator": ("m5.2xlarge", "gb300", "CFG005", 15, "node_groups.controller.instance_type", "the form in which EC2 writes a type", "the type that EC2 has of it"),
    "blank type of a controller": ("m5.2xlarge", "", "CFG006", 15, "node_groups.controller.instance_type", "has no value", "instance_type: m5.2xlarge"),
    "variable": ("name: dev", "name: ${ENV}", "CFG009", 1, "name", "is not expanded", "extends:"),
    "refused key": ("zone_id", "placement_group: x\n  zone_id", "CFG004", 4, "network.placement_group", "places instances itself", ""),
    "restricted groups": ("node_groups:", "restricted_instance_groups: {}\nnode_groups:", "CFG004", 12, "restricted_instance_groups", "`node_groups.<name>.restricted: {}`", ""),
    "zone name": ("zone_id: usw2-az2", "availability_zone: us-west-2a", "CFG004", 4, "network.availability_zone", "zone names differ", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_finding(case: str, tmp_path: Path) -> None:
    old, new, code, line, path, message, instead = CASES[case]
    text = GOOD.replace(old, new, 1)
    assert text != GOOD

    finding = _findings(tmp_path, text, code)

    assert (finding.code, finding.dotted) == (code, path)
    assert message in finding.message
    assert instead in finding.instead
    assert finding.location is not None
    assert finding.location.line == line
    assert finding.location.file.endswith("env.yaml")


# cases whose remedy only the writer of the file knows
ASKED = {
    "wrong type", "image id", "list for mapping", "no variant", "missing key", "duplicate key", "tab",
    "open bracket", "date for a number", "no such date", "endless number", "second document",
    "unknown accelerator", "blank type of a controller", "variable",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_remedy_works(case: str, tmp_path: Path) -> None:
    """Each option, applied as it is, ends the finding and brings no new one."""
    old, new, code, _, path, *_ = CASES[case]
    text = GOOD.replace(old, new, 1)

    finding = _findings(tmp_path, text, code)

    assert finding.dotted == path
    assert bool(finding.remedy.options) == (case not in ASKED)
    for option in finding.remedy.options:
        source = read(tmp_path / "env.yaml")
        before = _shape(source)
        after = _shape(Source("env.yaml", data=apply(source.data, option)))
        assert (code, path) not in after
        assert after <= before | ({("CFG006", "network.zone_id")} if case == "zone name" else set())


@pytest.mark.parametrize(
    ("old", "new", "line", "path", "message", "instead"),
    [
        ("zone_id: usw2-az2", "zone_id:", 4, "network.zone_id", "`zone_id` has no value in `network`", "zone_id: use1-az6"),
        ("network:\n  zone_id: usw2-az2", "network:", 3, "network", "`network` has no value", "with zone_id below it"),
        ("kind: hyperpod-slurm", "kind:", 11, "orchestrator.kind", "`kind` has no value", "pcs"),
        ("count: 1", "count:", 16, "node_groups.controller.count", "`count` has no value", "count"),
        ("count: 1", "count: 1\n    labels:", 17, "node_groups.controller.labels", "`labels` has no value", "remove labels"),
        ("role: controller", "role:", 14, "node_groups.controller.role", "`role` has no value", "role"),
        ('release: "2026.11"', "release:", 18, "software.release", "`release` has no value", '2026.11'),
        ("count: 1", "count: 1\n    capacity:", 17, "node_groups.controller.capacity", "has no value", "on-demand"),
    ],
)  # fmt: skip
def test_a_blank_value_is_reported_where_it_stands(
    old: str, new: str, line: int, path: str, message: str, instead: str, tmp_path: Path
) -> None:
    finding = _findings(tmp_path, GOOD.replace(old, new, 1), "CFG006")

    assert finding.dotted == path
    assert message in finding.message
    assert instead in finding.instead
    assert finding.location is not None
    assert finding.location.line == line


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("role", "worker", "compute"),
        ("role", "head", "controller"),
        ("role", "contoller", "controller"),
        ("instance_type", "8xH100", "p5.48xlarge"),
        ("instance_type", "h100", "p5.48xlarge"),
        ("instance_type", "B200", "p6-b200.48xlarge"),
        ("instance_type", "P5.48xlarge", "p5.48xlarge"),
    ],
)
def test_what_was_meant(name: str, given: str, value: str, tmp_path: Path) -> None:
    was = {"role": "role: controller", "instance_type": "instance_type: m5.2xlarge"}[name]
    finding = _findings(tmp_path, GOOD.replace(was, f"{name}: {given}"), "CFG005")

    assert finding.remedy.options[0][0].value == value


def test_an_unlike_word_becomes_no_other(tmp_path: Path) -> None:
    finding = _findings(tmp_path, GOOD.replace("role: controller", "role: boss"), "CFG005")

    assert finding.remedy.lacking == "decision"


@pytest.mark.parametrize(
    ("capacity", "deployment", "gib"),
    [
        ("1.2 TiB", "persistent-2-ssd", 1200),
        ("4.8TiB", "persistent-2-ssd", 4800),
        ("5 TiB", "scratch-2", 7200),
    ],
)
def test_a_size_in_another_unit_becomes_one_that_fsx_makes(
    capacity: str, deployment: str, gib: int, tmp_path: Path
) -> None:
    text = GOOD.replace("capacity_gib: 1200", f"capacity_gib: {capacity}").replace(
        "persistent-2-ssd", deployment
    )
    if deployment == "scratch-2":
        text = text.replace("    throughput_mbps_per_tib: 250\n", "")

    finding = _findings(tmp_path, text, "CFG005")

    assert finding.remedy.options[0][0].value == gib


def test_the_url_of_a_bucket_names_that_bucket(tmp_path: Path) -> None:
    link = "throughput_mbps_per_tib: 250\n    data_repositories:\n      /data: {bucket: 's3://tokens/en/a'}"
    finding = _findings(tmp_path, GOOD.replace("throughput_mbps_per_tib: 250", link), "CFG005")

    assert [(one.path[-1], one.value) for one in finding.remedy.options[0]] == [
        ("bucket", "tokens"), ("prefix", "en/a/")
    ]  # fmt: skip


def test_what_is_wrong_with_the_sense_is_found_beside_the_shape(tmp_path: Path) -> None:
    file = tmp_path / "env.yaml"
    file.write_text(
        GOOD.replace("capacity_gib: 1200", "capacity_gib: 5000").replace("usw2-az2", "us-west-2a")
        .replace("count: 1", "count: one").replace("name: dev", "name: Dev")
    )  # fmt: skip

    with pytest.raises(InvalidEnvironmentError) as caught:
        load(file)
    codes = {(one.code, one.dotted) for one in judge_rest(caught.value)}

    assert {("FSX002", "storage.lustre.capacity_gib"), ("ENV003", "network.zone_id")} <= codes
    assert {("CFG005", "name"), ("CFG005", "node_groups.controller.count")} <= codes
    assert not {code for code, path in codes if path == "node_groups.controller.count"} - {"CFG005"}


def test_nothing_is_said_of_what_stands_in_for_a_wrong_part(tmp_path: Path) -> None:
    file = tmp_path / "env.yaml"
    file.write_text(GOOD.replace("role: controller", "role: boss"))

    with pytest.raises(InvalidEnvironmentError) as caught:
        load(file)

    assert [one.code for one in judge_rest(caught.value) if one.blocks] == ["CFG005"]


def _shape(source: Source) -> set[tuple[str, str]]:
    try:
        parse(source)
    except InvalidEnvironmentError as error:
        return {(one.code, one.dotted) for one in error.findings}
    return set()


def test_all_findings_come_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("region:", "regoin:").replace("count: 1", "count: -1").replace("usw2-az2", "5")
    file = tmp_path / "env.yaml"
    file.write_text(text)

    with pytest.raises(InvalidEnvironmentError) as caught:
        load(file)

    assert {f.dotted for f in caught.value.findings} == {
        "regoin", "region", "network.zone_id", "node_groups.controller.count"
    }  # fmt: skip


def test_the_error_shows_place_line_caret_and_remedy(tmp_path: Path) -> None:
    file = tmp_path / "env.yaml"
    file.write_text(GOOD.replace("count: 1", "count: -1"))

    with pytest.raises(InvalidEnvironmentError) as caught:
        load(file)

    assert str(caught.value) == (
        f"{file}:16:12: error CFG005 node_groups.controller.count\n"
        "  16 |     count: -1\n"
        "     |            ^^\n"
        "  -1 is out of range: count is 0 or more.\n"
        "  instead: count: 0"
    )


@pytest.mark.parametrize(
    ("content", "message"), [("", "is empty"), ("# nothing\n", "is empty"), ("- a\n", "keys and values")]
)
def test_a_file_without_keys(content: str, message: str, tmp_path: Path) -> None:
    assert message in _findings(tmp_path, content, "CFG007").message


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "dev.yaml").write_text(GOOD)

    with pytest.raises(InvalidEnvironmentError) as caught:
        load(tmp_path / "prdo.yaml")

    (finding,) = caught.value.findings
    assert finding.code == "CFG001"
    assert "dev.yaml" in finding.instead


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    file = tmp_path / "env.yaml"
    file.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidEnvironmentError, match="CFG001"):
        load(file)


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_bytes(GOOD.encode() + "# Zürich\n".encode("latin-1"))

    with pytest.raises(InvalidEnvironmentError) as caught:
        load(tmp_path / "env.yaml")

    (finding,) = caught.value.findings
    assert (finding.code, finding.instead) == ("CFG001", "save it as UTF-8")


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 3000,
        "{a: " * 3000,
        "a: " + "[" * 250 + "]" * 250,
        "- " * 9000,
        "? " * 9000,
        "a: " + "[" * 200_000,
    ],
)
def test_brackets_without_end(text: str, tmp_path: Path) -> None:
    assert "deeper than can be read" in _findings(tmp_path, text, "CFG002").message


def test_aliases_that_make_billions(tmp_path: Path) -> None:
    doubled = "".join(f".a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9))

    message = _findings(tmp_path, f".a0: &a0 [x]\n{doubled}tags: *a9\n{GOOD}", "CFG002").message

    assert "more than 10,000 values" in message


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("protect: .nan", "CFG005", "no number that a field can take"),
        ("protect: -.inf", "CFG005", "no number that a field can take"),
        ("protect: 1e400", "CFG005", "no number that a field can take"),
        ("protect: !!int abc", "CFG002", "marked as a whole number and is none"),
        ("protect: !!int 1:30", "CFG002", "marked as a whole number and is none"),
        ("protect: !!int ١", "CFG002", "marked as a whole number and is none"),
        ("protect: !!float x", "CFG005", "no number that a field can take"),
        ("protect: !!bool yes", "CFG002", "neither true nor false"),
        ("protect: !!null x", "CFG002", "holds something"),
        ("protect: 0x" + "f" * 5000, "CFG005", "too great"),
        ("protect: 9223372036854775808", "CFG005", "too great"),
        ("protect: " + "9" * 5000, "CFG005", "too great"),
        ("protect: !thing 1", "CFG002", "which is not used here"),
        ("tags: !!set {a, b}", "CFG002", "is not used here"),
        ("acknowledge: !!python/object:os.system [x]", "CFG002", "is not used here"),
        ("tags: {<<: foo}", "CFG002", "takes keys and values from an alias"),
        ("tags: {<<: [a, b]}", "CFG002", "takes keys and values from an alias"),
        ("account: \u202e123", "CFG002", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("# \u2066 a comment that is read in another order", "CFG002", "U+2066"),
        ("tags: {a: \x1b}", "CFG002", "U+001B a control character"),
        ("tags: {a: \0}", "CFG002", "U+0000 a control character"),
        ('tags: {a: "\\e]52;c;eA=="}', "CFG005", "U+001B a control character"),
        ('tags: {a: "x\\nb"}', "CFG005", "a line break"),
        ('tags: {a: "x\\u200by"}', "CFG005", "U+200B ZERO WIDTH SPACE"),
        ('tags: {"a\\0": x}', "CFG005", "U+0000"),
        ("software: {release: ./a\\0b.lock}", "CFG008", "does not exist"),
        ('software: {release: "./a\\0b.lock"}', "CFG008", "does not exist"),
        (f"software: {{release: ./{'a' * 300}.lock}}", "CFG008", "does not exist"),
    ],
)
def test_a_line_that_is_no_value(line: str, code: str, message: str, tmp_path: Path) -> None:
    key = line.partition(":")[0]
    lines = [one for one in GOOD.splitlines() if not one.startswith(f"{key}:")] if key != "software" else None
    text = "\n".join(lines or GOOD.partition("software:")[0].splitlines())
    finding = _findings(tmp_path, f"{text}\n{line}\n", code)

    assert message in finding.message
    assert finding.location is not None
    assert finding.location.line == text.count("\n") + 2
    assert finding.instead


@pytest.mark.parametrize(
    ("value", "number"), [("-0x10", -16), ("0o17", 15), ("0b11", 3), ("0123", 123), ("+7", 7)]
)
def test_whole_numbers_as_yaml_writes_them(value: str, number: int, tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text(f"protect: {value}\n")

    assert read(tmp_path / "env.yaml").data == {"protect": number}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%YAML 1.1\n---\n", "begins with %"),
        ("# first\n\n%TAG ! tag:x,2000:\n---\n", "begins with %"),
    ],
)
def test_no_line_speaks_to_the_parser(text: str, message: str, tmp_path: Path) -> None:
    """With YAML 1.1 `protect: yes` would be a boolean."""
    assert message in _findings(tmp_path, text + GOOD, "CFG002").message


def test_an_unwritten_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())

    assert load(tmp_path / "env.yaml").environment.name == "dev"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_another_encoding_is_named_or_its_first_character_is(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_bytes(GOOD.encode(encoding))

    with pytest.raises(InvalidEnvironmentError) as caught:
        load(tmp_path / "env.yaml")
    (finding,) = caught.value.findings
    assert finding.code in ("CFG001", "CFG002")
    assert "UTF-8" in finding.instead


def test_a_file_beyond_all_measure(tmp_path: Path) -> None:
    assert "more than 262,144 bytes" in _findings(tmp_path, "#" * 300_000, "CFG001").message


def test_aliases_that_repeat_a_long_text(tmp_path: Path) -> None:
    text = f".x: &a {'y' * 200_000}\nacknowledge: [{'*a, ' * 20}*a]\n{GOOD}"

    assert "too much text" in _findings(tmp_path, text, "CFG002").message


@pytest.mark.parametrize("text", [GOOD + "name: x\n" * 5000, "".join(f"k{n}: 1\n" for n in range(5000))])
def test_a_hundred_findings_are_enough(text: str, tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text(text)

    with pytest.raises(InvalidEnvironmentError) as caught:
        load(tmp_path / "env.yaml")
    assert len(caught.value.findings) == 101
    assert caught.value.findings[-1].code == "CFG010"
    assert len(judge_rest(caught.value)) == 101


LOOKALIKES = {
    "an ARN": (
        "storage:",
        "storage:\n  key: {{arn: 'arn:aws:kms:us-west-2:111122223333:key/{}'}}",
        "storage.key.arn",
    ),
    "a bucket": (
        "storage:",
        "storage:\n  scripts_bucket: {{name: my-bucket{}}}",
        "storage.scripts_bucket.name",
    ),
    "an account": ("region:", "account: '11112222333{}'\nregion:", "account"),
    "a group": (
        "  zone_id",
        "  security_group: {{id: sg-0123456{}}}\n  zone_id",
        "network.security_group.id",
    ),
}


@pytest.mark.parametrize("case", LOOKALIKES)
@pytest.mark.parametrize(
    ("character", "name"), [("\u0430", "CYRILLIC SMALL LETTER A"), ("\u0661", "ARABIC-INDIC DIGIT ONE")]
)
def test_a_letter_that_looks_like_another_is_named(
    case: str, character: str, name: str, tmp_path: Path
) -> None:
    """The expressions of pydantic are Rust's: `\\d` and `\\w` are digits and letters of every script there."""
    old, new, path = LOOKALIKES[case]

    finding = _findings(tmp_path, GOOD.replace(old, new.format(character), 1), "CFG005")

    assert finding.dotted == path
    assert f"U+{ord(character):04X} {name}" in finding.message


@pytest.mark.parametrize(
    "value",
    [
        "60\nProlog=/any/file",
        "60 Prolog=/any/file",
        "60\\",
        "60 # x",
        "6\t0",
        "",
        '"a" b',
        '"a\nb"',
        "\u0661",
    ],
)
@pytest.mark.parametrize("kind", ["parallelcluster", "pcs"])
def test_a_value_of_slurm_is_one_value(kind: str, value: str) -> None:
    """Behind a space slurm.conf takes another parameter, so that PCL040 and its like would not see it."""
    data = {"orchestrator": {"kind": kind, "slurm_settings": {"KillWait": value}}}

    with pytest.raises(InvalidEnvironmentError) as caught:
        parse(Source("x.yaml", data=data))
    found = [one for one in caught.value.findings if one.dotted == "orchestrator.slurm_settings.KillWait"]
    assert ["Slurm reads a value as one word" in one.message for one in found] == [True]


def test_a_date_is_text(tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text(GOOD + "tags:\n  until: 2026-11-20\n")

    assert load(tmp_path / "env.yaml").environment.tags == {"until": "2026-11-20"}


def test_an_overlay_changes_its_base_and_findings_name_the_file_that_holds_the_value(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(GOOD)
    overlay = tmp_path / "big.yaml"
    overlay.write_text(
        "extends: base.yaml\nname: big\nnode_groups:\n  controller: {count: 2}\nstorage:\n  lustre: null\n"
    )

    environment = load(overlay).environment

    assert environment.name == "big"
    assert environment.node_groups["controller"].count == 2
    assert environment.node_groups["controller"].instance_type == "m5.2xlarge"
    assert environment.storage.lustre is None

    (tmp_path / "base.yaml").write_text(GOOD.replace("m5.2xlarge", "M5"))
    with pytest.raises(InvalidEnvironmentError) as caught:
        load(overlay)
    (finding,) = caught.value.findings
    assert finding.location is not None
    assert (Path(finding.location.file).name, finding.location.line) == ("base.yaml", 15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: nowhere.yaml\n", "does not exist"),
        ("extends: env.yaml\n", "extend each other"),
        ("extends: [1, b]\n", "names one file"),
        ("extends: []\n", "names one file"),
        ("extends: [none.yaml]\n", "does not exist"),
        ("extends: .\n", "is not a file"),
    ],
)
def test_extends_that_leads_nowhere(text: str, message: str, tmp_path: Path) -> None:
    assert message in _findings(tmp_path, text + GOOD, "CFG008").message


def test_anchors_live_under_keys_with_a_dot(tmp_path: Path) -> None:
    file = tmp_path / "env.yaml"
    file.write_text(
        ".small: &small\n  role: login\n  instance_type: m5.xlarge\n"
        + GOOD.replace("software:", "  login:\n    <<: *small\n    count: 1\nsoftware:")
    )

    assert load(file).environment.node_groups["login"].instance_type == "m5.xlarge"


def test_an_alias_that_contains_itself(tmp_path: Path) -> None:
    assert (
        "contains itself"
        in _findings(tmp_path, GOOD + ".loop: &a\n  b: 1\nacknowledge: &x [*x]\n", "CFG002").message
    )


@settings(max_examples=examples(25), deadline=None)
@given(st.text(max_size=200))
def test_no_text_breaks_the_loader(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_text(text, encoding="utf-8", errors="replace")

    with pytest.raises(InvalidEnvironmentError):
        load(file)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=examples(25), deadline=None)
@given(
    st.sampled_from(["name", "network", "storage", "node_groups", "orchestrator", "acknowledge", "tags"]),
    VALUES,
)
def test_no_value_breaks_the_models(key: str, value: object) -> None:
    from ultracluster.config import parse
    from ultracluster.config.source import Source

    with pytest.raises(InvalidEnvironmentError) as caught:
        parse(Source("x.yaml", data={key: value}))
    assert str(caught.value)


def _findings(folder: Path, text: str, code: str) -> Finding:
    file = folder / "env.yaml"
    file.write_text(text)
    with pytest.raises(InvalidEnvironmentError) as caught:
        load(file)
    (finding, *_) = [found for found in caught.value.findings if found.code == code] or [None]
    assert finding is not None, str(caught.value)
    return finding


@pytest.mark.parametrize("release", ["./mine.lock", "mine.lock"])
def test_a_release_by_path_with_a_name_that_is_none(release: str, tmp_path: Path) -> None:
    (tmp_path / "mine.lock").write_text("{}")

    finding = _findings(tmp_path, GOOD.replace('"2026.11"', release), "CFG008")

    assert finding.message == f"`{release}` is not named like a release."
    assert finding.instead == "rename it to <word>-2026.11.lock, and give its `release` the same name"


@pytest.mark.parametrize("mark", ["!!int", "!!seq", "!thing"])
def test_a_file_that_is_marked_as_another_type(mark: str, tmp_path: Path) -> None:
    assert "the YAML type" in _findings(tmp_path, f"{mark}\n{GOOD}", "CFG002").message


def test_a_line_of_nothing_but_a_tab(tmp_path: Path) -> None:
    assert _findings(tmp_path, f"\t\n{GOOD}", "CFG002").instead == "remove the tab"
