"""The picture of a plan: everything named, nothing on top of something else."""

from __future__ import annotations

import datetime as dt
import struct
import sys
import zlib
from functools import cache
from importlib.machinery import ModuleSpec
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import resvg_py
import typer
from needs import need
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from ultracluster.cli.plan import plan as command
from ultracluster.model import resolve
from ultracluster.plan import picture_icons
from ultracluster.plan.environment_plan import Plan, plan
from ultracluster.plan.picture import NARROW, WIDTH, PictureError, draw, png, save_picture
from ultracluster.plan.picture_canvas import FONT, Box, Canvas, shorten, text_width, wrap
from ultracluster.plan.picture_icons import ICONS, icon
from ultracluster.plan.picture_symbols import symbol

pytestmark = pytest.mark.slow

SVG = "{http://www.w3.org/2000/svg}"
LONG = "a-very-long-name-of-a-node-group-that-nobody-would-read-aloud"
CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "many nodes": ("prod", {"node_groups.train.count": 512, "node_groups.train.min_count": 512}),
    "long names": (
        "prod",
        {
            f"node_groups.{LONG}": environment_data("prod")["node_groups"]["train"],
            "storage.lustre.data_repositories": {
                f"/{'x' * number}{LONG}": {
                    "bucket": f"{LONG}-{number}",
                    "prefix": f"{LONG}/" * 3,
                    "import_events": ["new", "changed", "deleted"],
                    "export_events": ["new", "changed", "deleted"],
                }
                for number in range(1, 9)
            },
        },
    ),
    "no storage": ("dev", {"storage": {}}),
    "one group": ("dev", {"node_groups.controller": ..., "node_groups.login": ...}),
    "existing": (
        "dev",
        {
            "network.vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"},
            "network.subnet": {"id": "subnet-0123456789abcdef0", "cidr": "10.0.0.0/20"},
        },
    ),
    "elastic and existing storage": (
        "dev",
        {
            "storage.lustre": {
                "deployment": "intelligent-tiering",
                "throughput_mbps": 4000,
                "metadata_iops": 6000,
            },
            "storage.openzfs": {
                "deployment": "existing",
                "id": "fs-0123456789abcdef0",
                "dns_name": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
                "security_group_id": "sg-0123456789abcdef0",
            },
        },
    ),
    "ParallelCluster with data": (
        "parallelcluster-p5",
        {"storage.lustre.data_repositories": {"/data": {"bucket": "tokens", "import_events": ["new"]}}},
    ),
    "a long name without the internet": (
        "parallelcluster-p5",
        {"name": LONG[:30], "network.egress": "closed"},
    ),
    "huge and elastic": (
        "parallelcluster-p5",
        {"node_groups.more.max_count": 6000, "node_groups.reserved.count": 0},
    ),
}
CASES = [*ENVIRONMENTS, *CHANGES]


@cache
def planned(case: str) -> Plan:
    name, changes = CHANGES.get(case, (case, {}))
    found = loaded(changed(environment_data(name), changes)).environment
    return plan(resolve(found), today=dt.date(2026, 11, 21))


@cache
def drawn(case: str) -> tuple[str, Canvas]:
    return draw(planned(case), icons=lambda name: f"icon:{name}")


@pytest.mark.parametrize("case", CASES)
def test_it_is_svg_that_names_everything(case: str) -> None:
    found = planned(case)
    svg, canvas = drawn(case)
    root = ElementTree.XML(svg)
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]

    assert root.tag == f"{SVG}svg"
    assert texts.count(found.name) >= 1
    assert sorted(texts) == sorted(label.text for label in canvas.labels)
    for group in found.groups:
        # a name that is too long for its card is cut in the middle
        begins, ends = group.name[:8], group.instance_type.rpartition(".")[2]
        assert any(begins in text for text in texts), group.name
        assert any(ends in text for text in texts), group.name
    for one in (found.lustre, found.home):
        assert one is None or f"FSx for {one.kind} at {one.mount_path}" in texts
    for one in found.repositories:
        assert any(text.startswith(one.folder[:5]) for text in texts)
    assert any(found.zone_id in text for text in texts)
    assert any(found.addresses.subnet in text for text in texts)


@pytest.mark.parametrize("case", CASES)
def test_no_text_lies_on_another_or_outside(case: str) -> None:
    svg, canvas = drawn(case)
    size = ElementTree.XML(svg).attrib
    page = Box(0, 0, float(size["width"]), float(size["height"]))

    overlapping = [(a.text, b.text) for a, b in combinations(canvas.labels, 2) if a.box.overlaps(b.box)]
    assert overlapping == []
    assert [label.text for label in canvas.labels if not page.holds(label.box)] == []


@pytest.mark.parametrize("case", CASES)
def test_cards_hold_their_text_and_keep_apart(case: str) -> None:
    _, canvas = drawn(case)

    assert [(a, b) for a, b in combinations(canvas.shapes, 2) if a.overlaps(b)] == []
    for label in canvas.labels:
        touched = [card for card in canvas.shapes if card.overlaps(label.box)]
        assert all(card.holds(label.box) for card in touched), label


@pytest.mark.parametrize("case", CASES)
def test_no_column_is_empty(case: str) -> None:
    """The VPC reaches to the right border, or something below the title stands beside it."""
    svg, canvas = drawn(case)
    beside = [card for card in canvas.shapes if card.x > 880 and card.y > 88]

    assert float(ElementTree.XML(svg).attrib["width"]) == (WIDTH if beside else NARROW)


def test_the_way_out_of_a_narrow_picture_ends_at_the_internet() -> None:
    svg, canvas = drawn("parallelcluster-p5")
    (internet,) = [card for card in canvas.shapes if card.y < 88]
    (nat, *_) = [card for card in canvas.shapes if card.y > 88]
    (way,) = [one for one in ElementTree.XML(svg).iter(f"{SVG}polyline") if "marker-start" not in one.attrib]
    (x, y), (up, end) = (map(float, point.split(",")) for point in way.attrib["points"].split())

    assert x == up
    assert internet.x < x < internet.right
    assert nat.x < x < nat.right
    assert (y, end) == (nat.y, internet.bottom)


def test_arrows_between_lustre_and_s3_point_to_where_the_data_goes() -> None:
    """prod imports one folder and exports another."""
    root = ElementTree.XML(drawn("prod")[0])
    ways = [one for one in root.iter(f"{SVG}polyline") if " 902," in one.attrib["points"]]
    ends = [way.attrib["points"].split()[-1].split(",")[0] for way in ways]
    cards = {box.x for box in drawn("prod")[1].shapes}

    imported, exported = planned("prod").repositories
    assert imported.import_events
    assert not imported.export_events
    assert exported.export_events
    assert not exported.import_events
    assert all("marker-start" not in way.attrib and "marker-end" in way.attrib for way in ways)
    assert float(ends[0]) < 902  # Lustre is on the left
    assert float(ends[1]) in cards  # S3's own card


def test_cost_and_first_boot_of_small_groups_are_not_cut() -> None:
    texts = [label.text for label in drawn("parallelcluster-p5")[1].labels]

    assert any("nothing to install" in text for text in texts)
    assert not [text for text in texts if "USD" in text and "…" in text]


@pytest.mark.parametrize("case", CASES)
def test_every_colour_has_one_for_the_dark(case: str) -> None:
    """But for those of symbols, which have a ground of their own."""
    root = ElementTree.XML(drawn(case)[0])
    style = root.findtext(f"{SVG}style") or ""
    shapes = root.iterfind(f"{SVG}g//*")
    used = {(name, one.attrib[name]) for one in shapes for name in ("fill", "stroke") if name in one.attrib}

    assert style.startswith("@media screen and (prefers-color-scheme:dark){")
    missing = [one for one in used if one[1] != "none" and '[{}="{}"]'.format(*one) not in style]
    assert missing == []


def test_the_same_plan_is_the_same_picture(snapshot: SnapshotAssertion) -> None:
    svg = draw(planned("dev"), icons=lambda name: f"icon:{name}")[0]

    assert svg == drawn("dev")[0]
    assert svg == snapshot


def test_every_symbol_is_one_of_awss_icons() -> None:
    for name in ICONS:
        assert icon(name).startswith("data:image/png;base64,iVBORw0KGgo"), name


@pytest.mark.usefixtures("font")
def test_png_is_twice_as_large(tmp_path: Path) -> None:
    file = tmp_path / "dev.png"
    save_picture(planned("dev"), file)

    width, height, packed = unpacked(file.read_bytes())
    assert width == 2 * WIDTH
    assert height > 1000
    assert len(set(packed[::401])) > 5  # it is not blank: of one colour, all but the first row would be zero
    assert sorted(tmp_path.iterdir()) == [file]


WORDS = (
    "WWWWMMMM@@@@%%%%",
    "16 EFA interfaces a node: 3,200 Gbit/s, 51.2 Tbit/s in all",
    "iiiillll....",
    "Node subnet 10.64.0.0/17, 294 of 32,763 addresses",
    "FSx for OpenZFS at /home",
    "UltraServer u-p6e-gb200x72",
    "example-training-datasets/tokens/",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "abcdefghijklmnopqrstuvwxyz0123456789",
)


@pytest.fixture(scope="module")
def font() -> None:
    """One of the fonts that pictures name; a machine without a desktop may have none."""
    try:
        png(drawn("dev")[0])
    except PictureError:
        need("fonts-dejavu-core")
        raise


@pytest.mark.usefixtures("font")
@pytest.mark.parametrize("bold", [False, True])
@pytest.mark.parametrize("words", WORDS)
def test_text_takes_no_more_room_than_is_thought(words: str, bold: bool) -> None:
    """Measured in what resvg draws with a font of this machine."""
    weight = ' font-weight="bold"' if bold else ""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="40">'
        f'<text x="10" y="25" font-size="20" font-family="{FONT}"{weight}>{words}</text></svg>'
    )
    width, _, pixels = decoded(resvg_py.svg_to_bytes(svg_string=svg))
    inked = [i // 4 % width for i in range(0, len(pixels), 4) if pixels[i + 3] > 40]

    assert inked
    assert max(inked) - 10 <= text_width(words, 20, bold)


def unpacked(data: bytes) -> tuple[int, int, bytes]:
    """Width, height and rows of a PNG (8 bits a channel, not interlaced), each row as its filter left it."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    place, packed, width, height = 8, b"", 0, 0
    while place < len(data):
        size, kind = struct.unpack(">I4s", data[place : place + 8])
        body = data[place + 8 : place + 8 + size]
        if kind == b"IHDR":
            width, height, depth, color, *_ = struct.unpack(">IIBBBBB", body)
            assert (depth, color) == (8, 6)
        packed += body if kind == b"IDAT" else b""
        place += size + 12
    return width, height, zlib.decompress(packed)


def decoded(data: bytes) -> tuple[int, int, bytes]:
    """Width, height and RGBA of a PNG."""
    width, height, raw = unpacked(data)
    stride = width * 4
    lines, above = [], bytes(stride)
    for start in range(0, height * (stride + 1), stride + 1):
        above = _unfiltered(raw[start], raw[start + 1 : start + 1 + stride], above)
        lines.append(above)
    return width, height, b"".join(lines)


def _unfiltered(kind: int, line: bytes, above: bytes) -> bytes:
    """A row of pixels by the five filters of PNG: none, left, up, their mean, Paeth's guess."""
    if kind == 0:
        return line
    if kind == 2:
        return bytes([(value + up) & 255 for value, up in zip(line, above, strict=True)])
    made, left, corner = bytearray(line), bytes(4), bytes(4)
    for i in range(0, len(line), 4):
        up = above[i : i + 4]
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = bytes([(a + b) // 2 for a, b in zip(left, up, strict=True)])
        else:
            guess = left if up == corner else up if left == corner else _paeth(left, up, corner)
        left = bytes([(a + b) & 255 for a, b in zip(line[i : i + 4], guess, strict=True)])
        made[i : i + 4] = left
        corner = up
    return bytes(made)


def _paeth(left: bytes, up: bytes, corner: bytes) -> bytes:
    return bytes(
        min((a, b, c), key=lambda one: abs(a + b - c - one)) for a, b, c in zip(left, up, corner, strict=True)
    )


def test_what_fits_is_not_cut_and_what_does_not_is() -> None:
    assert shorten("short", 100, 12) == "short"
    cut = shorten(LONG, 100, 12)
    assert "…" in cut
    assert text_width(cut, 12) <= 100
    assert cut.startswith(LONG[:3])
    assert cut.endswith(LONG[-3:])
    assert " ".join(wrap("a b c d", 30)) == "a b c d"
    assert all(text_width(line, 12) <= 60 for line in wrap(f"{LONG} and {LONG}", 60))


def test_without_awss_icons_our_own_symbols_are_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(picture_icons, "find_spec", lambda name: None)
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(
        app, [str(ROOT / "environments" / "dev.yaml"), "--picture", str(tmp_path / "dev.svg")]
    )

    assert result.exit_code == 0, result.stderr
    drawing = (tmp_path / "dev.svg").read_text(encoding="utf-8")
    root = ElementTree.XML(drawing)
    lustre = root.find(f"{SVG}defs/{SVG}g[@id='lustre']")
    assert lustre is not None
    wanted = ElementTree.XML(symbol("lustre"))
    assert [one.attrib for one in lustre.iter()][1:] == [one.attrib for one in wanted.iter()][1:]
    assert "data:" not in drawing


def test_awss_icons_that_moved_are_not_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    elsewhere = ModuleSpec("diagrams", None, origin=str(tmp_path / "diagrams" / "__init__.py"))
    monkeypatch.setattr(picture_icons, "find_spec", lambda name: elsewhere)
    assert icon("s3") == symbol("s3")


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(PictureError, match="pip install resvg-py"):
        png("<svg/>")


def test_a_missing_font_is_told_and_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    real = resvg_py.svg_to_bytes
    monkeypatch.setattr(resvg_py, "svg_to_bytes", lambda **given: real(**given, skip_system_fonts=True))
    with pytest.raises(PictureError, match="fonts-dejavu-core"):
        png(drawn("dev")[0])


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match="cannot be written"):
        save_picture(planned("dev"), tmp_path / "none" / "dev.svg")
