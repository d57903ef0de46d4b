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
    "blank zone": ("zone_id: usw2-az2", "zone_id:", "CFG006", 4, "network.zone_id", "`zone_id` has no value in `network`", "zone_id: use1-az6"),
    "blank mapping": ("network:\n  zone_id: usw2-az2", "network:", "CFG006", 3, "network", "`network` has no value", "with zone_id below it"),
    "blank variant": ("kind: hyperpod-slurm", "kind:", "CFG006", 11, "orchestrator.kind", "`kind` has no value", "pcs"),
    "blank count": ("count: 1", "count:", "CFG006", 16, "node_groups.controller.count", "`count` has no value", "count"),
    "blank optional mapping": ("count: 1", "count: 1\n    labels:", "CFG006", 17, "node_groups.controller.labels", "`labels` has no value", "remove labels"),
    "blank choice": ("role: controller", "role:", "CFG006", 14, "node_groups.controller.role", "`role` has no value", "role"),
    "blank text": ('release: "2026.11"', "release:", "CFG006", 18, "software.release", "`release` has no value", "2026.11"),
    "blank optional variant": ("count: 1", "count: 1\n    capacity:", "CFG006", 17, "node_groups.controller.capacity", "has no value", "on-demand"),
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
    "unknown accelerator", "blank type of a controller", "variable", "blank zone", "blank mapping", "blank variant",
    "blank count", "blank choice", "blank text",
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


ROLE, TYPE = "role: controller", "instance_type: m5.2xlarge"
SSD = "persistent-2-ssd\n    capacity_gib: 1200\n    throughput_mbps_per_tib: 250"


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (ROLE, "role: worker", "compute"),
        (ROLE, "role: head", "controller"),
        (ROLE, "role: contoller", "controller"),
        (TYPE, "instance_type: 8xH100", "p5.48xlarge"),
        (TYPE, "instance_type: h100", "p5.48xlarge"),
        (TYPE, "instance_type: B200", "p6-b200.48xlarge"),
        (TYPE, "instance_type: P5.48xlarge", "p5.48xlarge"),
        ("1200", "1.2 TiB", 1200),
        ("1200", "4.8TiB", 4800),
        (SSD, "scratch-2\n    capacity_gib: 5 TiB", 7200),  # the next size that FSx makes
    ],
)
def test_what_was_meant(old: str, new: str, value: str | int, tmp_path: Path) -> None:
    assert _findings(tmp_path, GOOD.replace(old, new), "CFG005").remedy.options[0][0].value == value


def test_the_url_of_a_bucket_names_that_bucket(tmp_path: Path) -> None:
    link = "throughput_mbps_per_tib: 250\n    data_repositories:\n      /data: {bucket: 's3://tokens/en/a'}"
    finding = _findings(tmp_path, GOOD.replace("throughput_mbps_per_tib: 250", link), "CFG005")

    assert [(one.path[-1], one.value) for one in finding.remedy.options[0]] == [
        ("bucket", "tokens"), ("prefix", "en/a/")
    ]  # fmt: skip


def test_what_is_wrong_with_the_sense_is_found_beside_the_shape(tmp_path: Path) -> None:
    text = GOOD.replace("capacity_gib: 1200", "capacity_gib: 5000").replace("usw2-az2", "us-west-2a")
    text = text.replace("count: 1", "count: one").replace("name: dev", "name: Dev")
    codes = {(finding.code, finding.dotted) for finding in judge_rest(_refused(tmp_path, text))}

    assert {("FSX002", "storage.lustre.capacity_gib"), ("ENV003", "network.zone_id")} <= codes
    assert {("CFG005", "name"), ("CFG005", "node_groups.controller.count")} <= codes
    assert not {code for code, path in codes if path == "node_groups.controller.count"} - {"CFG005"}


def test_nothing_is_said_of_what_stands_in_for_a_wrong_part(tmp_path: Path) -> None:
    error = _refused(tmp_path, GOOD.replace("role: controller", "role: boss"))

    assert [finding.code for finding in judge_rest(error) if finding.blocks] == ["CFG005"]
    assert error.findings[0].remedy.lacking == "decision"


def _shape(source: Source) -> set[tuple[str, str]]:
    try:
        parse(source)
    except InvalidEnvironmentError as error:
        return {(one.code, one.dotted) for one in error.findings}
    return set()


def test_all_findings_come_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("region:", "regoin:").replace("count: 1", "count: -1").replace("usw2-az2", "5")

    assert {finding.dotted for finding in _refused(tmp_path, text).findings} == {
        "regoin", "region", "network.zone_id", "node_groups.controller.count"
    }  # fmt: skip


def test_the_error_shows_place_line_caret_and_remedy(tmp_path: Path) -> None:
    error = _refused(tmp_path, GOOD.replace("count: 1", "count: -1"))

    assert str(error) == (
        f"{tmp_path / 'env.yaml'}:16:12: error CFG005 node_groups.controller.count\n"
        "  16 |     count: -1\n"
        "     |            ^^\n"
        "  -1 is out of range: count is 0 or more.\n"
        "  instead: count: 0"
    )


DOUBLED = "".join(f".a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9))
# (the file's content, code, part of the message)
FILES = {
    "empty": ("", "CFG007", "is empty"),
    "comment": ("# nothing\n", "CFG007", "is empty"),
    "list": ("- a\n", "CFG007", "keys and values"),
    "endless list": ("a: " + "[" * 3000, "CFG002", "deeper than can be read"),
    "endless mapping": ("{a: " * 3000, "CFG002", "deeper than can be read"),
    "deep list": ("a: " + "[" * 250 + "]" * 250, "CFG002", "deeper than can be read"),
    "deep block": ("- " * 9000, "CFG002", "deeper than can be read"),
    "deep keys": ("? " * 9000, "CFG002", "deeper than can be read"),
    "great endless list": ("a: " + "[" * 200_000, "CFG002", "deeper than can be read"),
    "aliases of billions": (f".a0: &a0 [x]\n{DOUBLED}tags: *a9\n{GOOD}", "CFG002", "more than 10,000 values"),
    "aliases of a long text": (
        f".x: &a {'y' * 200_000}\nacknowledge: [{'*a, ' * 20}*a]\n{GOOD}", "CFG002", "too much text"
    ),
    "alias that contains itself": (
        GOOD + ".loop: &a\n  b: 1\nacknowledge: &x [*x]\n", "CFG002", "contains itself"
    ),
    "great file": ("#" * 300_000, "CFG001", "more than 262,144 bytes"),
    # with YAML 1.1 `protect: yes` would be a boolean
    "version of YAML": ("%YAML 1.1\n---\n" + GOOD, "CFG002", "begins with %"),
    "directive": ("# first\n\n%TAG ! tag:x,2000:\n---\n" + GOOD, "CFG002", "begins with %"),
    "marked as a number": (f"!!int\n{GOOD}", "CFG002", "the YAML type"),
    "marked as a list": (f"!!seq\n{GOOD}", "CFG002", "the YAML type"),
    "marked as a thing": (f"!thing\n{GOOD}", "CFG002", "the YAML type"),
    "no base": ("extends: nowhere.yaml\n" + GOOD, "CFG008", "does not exist"),
    "own base": ("extends: env.yaml\n" + GOOD, "CFG008", "extend each other"),
    "number as a base": ("extends: [1, b]\n" + GOOD, "CFG008", "names one file"),
    "empty list of bases": ("extends: []\n" + GOOD, "CFG008", "names one file"),
    "list of a base that is missing": ("extends: [none.yaml]\n" + GOOD, "CFG008", "does not exist"),
    "folder as a base": ("extends: .\n" + GOOD, "CFG008", "is not a file"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_read(case: str, tmp_path: Path) -> None:
    content, code, message = FILES[case]
    assert message in _findings(tmp_path, content, code).message


@pytest.mark.parametrize(
    ("content", "codes", "instead"),
    [
        (b"\xff\xfe\x00", {"CFG001"}, ""),
        (GOOD.encode() + "# Zürich\n".encode("latin-1"), {"CFG001"}, "save it as UTF-8"),
        *(
            (GOOD.encode(encoding), {"CFG001", "CFG002"}, "UTF-8")
            for encoding in ("utf-16", "utf-16-le", "utf-32")
        ),
    ],
)
def test_a_file_in_another_encoding(content: bytes, codes: set[str], instead: str, tmp_path: Path) -> None:
    (finding,) = _refused(tmp_path, content).findings
    assert finding.code in codes
    assert instead in finding.instead


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "dev.yaml").write_text(GOOD)

    with pytest.raises(InvalidEnvironmentError) as caught:
        load(tmp_path / "prdo.yaml")

    (finding,) = caught.value.findings
    assert finding.code == "CFG001"
    assert "dev.yaml" in finding.instead


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


def test_an_unwritten_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())

    assert load(tmp_path / "env.yaml").environment.name == "dev"


@pytest.mark.parametrize("text", [GOOD + "name: x\n" * 5000, "".join(f"k{n}: 1\n" for n in range(5000))])
def test_a_hundred_findings_are_enough(text: str, tmp_path: Path) -> None:
    error = _refused(tmp_path, text)

    assert len(error.findings) == 101
    assert error.findings[-1].code == "CFG010"
    assert len(judge_rest(error)) == 101


KEY = "{{arn: 'arn:aws:kms:us-west-2:111122223333:key/{}'}}"
LOOKALIKES = {
    "an ARN": ("storage:", f"storage:\n  key: {KEY}", "storage.key.arn"),
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


WORDS = (
    "60\nProlog=/any/file",
    "60 Prolog=/any/file",
    "60\\",
    "60 # x",
    "6\t0",
    "",
    '"a" b',
    '"a\nb"',
    "\u0661",
)


@pytest.mark.parametrize("value", WORDS)
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


def test_anchors_live_under_keys_with_a_dot(tmp_path: Path) -> None:
    file = tmp_path / "env.yaml"
    file.write_text(
        ".small: &small\n  role: login\n  instance_type: m5.xlarge\n"
        + GOOD.replace("software:", "  login:\n    <<: *small\n    count: 1\nsoftware:")
    )

    assert load(file).environment.node_groups["login"].instance_type == "m5.xlarge"


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
    with pytest.raises(InvalidEnvironmentError) as caught:
        parse(Source("x.yaml", data={key: value}))
    assert str(caught.value)


def _refused(folder: Path, content: str | bytes) -> InvalidEnvironmentError:
    """The refusal of a file with this content."""
    file = folder / "env.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidEnvironmentError) as caught:
        load(file)
    return caught.value


def _findings(folder: Path, text: str, code: str) -> Finding:
    error = _refused(folder, text)
    finding = next((finding for finding in error.findings if finding.code == code), None)
    assert finding is not None, str(error)
    return finding


@pytest.mark.parametrize("release", ["./mine.lock", "mine.lock"])
def test_a_release_by_path_with_a_name_that_is_none(release: str, tmp_path: Path) -> None:
    (tmp_path / "mine.lock").write_text("{}")

    finding = _findings(tmp_path, GOOD.replace('"2026.11"', release), "CFG008")

    assert finding.message == f"`{release}` is not named like a release."
    assert finding.instead == "rename it to <word>-2026.11.lock, and give its `release` the same name"


def test_a_line_of_nothing_but_a_tab(tmp_path: Path) -> None:
    assert _findings(tmp_path, f"\t\n{GOOD}", "CFG002").instead == "remove the tab"
