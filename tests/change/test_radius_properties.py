"""Whatever two templates hold, they can be compared."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import create_only_from_authorities as authorities
from ultracluster.catalog.data_kinds import kinds_with_data
from ultracluster.change import blast_radius, paired

pytestmark = pytest.mark.slow

FACTS = json.loads(authorities.TABLE.with_name("change_facts.json").read_text())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Ref", "Fn::GetAtt", "Fn::Sub", "Key", "Name", "a", "InstanceGroups"])
            | st.text(),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)
TYPES = st.sampled_from(
    sorted({fact["type"] for fact in FACTS["facts"]} | set(kinds_with_data()) | {"X", "Custom::X"})
)
RESOURCE = st.fixed_dictionaries(
    {"Type": TYPES | JSON, "Properties": JSON},
    optional={"DeletionPolicy": JSON, "UpdateReplacePolicy": JSON, "Condition": JSON, "Metadata": JSON},
)
SECTION = st.dictionaries(st.sampled_from(["A", "B", "C"]), JSON, max_size=3)
TEMPLATE = JSON | st.fixed_dictionaries(
    {"Resources": st.dictionaries(st.sampled_from(["A", "B", "C"]), RESOURCE | JSON, max_size=3)},
    optional={"Outputs": SECTION | JSON, "Parameters": SECTION | JSON, "Mappings": JSON},
)
TEMPLATES = st.dictionaries(st.sampled_from(["dev-a", "dev-b", "prod-a"]), TEMPLATE, max_size=3)


@given(TEMPLATES)
def test_nothing_changes_between_a_template_and_itself(templates: Any) -> None:
    assert blast_radius(templates, templates) == []


@given(TEMPLATES, TEMPLATES)
def test_any_two_templates_can_be_compared(before: Any, after: Any) -> None:
    found = blast_radius(paired(before, after), after)

    assert [one.verdict.rank for one in found] == sorted((one.verdict.rank for one in found), reverse=True)
    assert all(one.reason for one in found)
