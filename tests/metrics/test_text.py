"""YAML of rules: read again as it was meant, by any reader of YAML 1.1 or 1.2."""

from __future__ import annotations

from ruamel.yaml import YAML

from ultracluster.metrics.text import yaml_text

MEANT = {
    "expr": 'sum by (node) (a{b=~"x|y"}) > 1e-3 or 0 * b',
    "summary": "{{ $labels.node }}: is `down`, 5 % # of it",
    "lines": "one\n  two\n",
    "word": "no",
    "labels": {"xid": "79", "severity": "page"},
    "list": ["a", {"b": 1}],
}


def test_texts_are_read_again_as_they_were_meant() -> None:
    text = yaml_text(MEANT)

    for version in ((1, 1), (1, 2)):
        yaml = YAML(typ="safe", pure=True)
        yaml.version = version
        assert yaml.load(text) == MEANT
    assert "lines: |\n" in text, "templates stay readable"
    assert all(len(line) < 10_000 for line in text.splitlines())
