"""XIDs in groups, as the table of faults has them."""

from __future__ import annotations

from ultracluster.catalog.node_faults import node_faults
from ultracluster.metrics.xids import GROUPS, meaning_template, xid_groups


def groups(*accelerators: str) -> dict[str, set[str]]:
    return {name: set(codes) for name, codes in xid_groups(accelerators).items()}


def test_codes_are_where_the_table_has_them() -> None:
    found = groups("H100")

    assert found["replace"] == {"54"}
    assert "79" in found["reboot"]
    assert {"48", "95", "119"} <= found["reset"]
    assert found["requeue"] == {"94"}
    assert "63" in found["warn"]
    assert "56" in found["unused"]
    assert {"13", "31", "43"} <= found["application"]


def test_generations_that_differ_are_told_apart() -> None:
    assert "95" in groups("A100")["reboot"]
    assert "142" in groups("B200")["replace"]
    assert "142" in groups("H100")["warn"]
    assert "142" in groups()["warn"], "an unknown GPU takes no critical row of another one"
    assert "142" in groups("A100", "B200")["warn"], "of several the mildest"


def test_what_only_the_text_tells_apart_is_the_mildest() -> None:
    assert "64" in groups("H100")["warn"]


def test_every_code_is_in_one_group() -> None:
    codes = [code for found in groups("H100").values() for code in found]
    table = {code for row in node_faults() if row.check == "xid" for code in row.codes if code.isdigit()}

    assert len(codes) == len(set(codes))
    assert set(codes) == table
    assert tuple(groups("H100")) == GROUPS


def test_meanings_are_a_template_of_prometheus() -> None:
    text = meaning_template({"79": "GPU has fallen off the bus", "48": "an error {x}"})

    assert text == (
        '{{ if eq $labels.xid "79" }}GPU has fallen off the bus'
        '{{ else if eq $labels.xid "48" }}an error (x){{ end }}'
    )
    assert meaning_template({}) == ""
