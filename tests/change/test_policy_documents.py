"""Policy documents compared by meaning: what is taken away, whatever the text looks like."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultracluster.change.policy_documents import grants, in_words, lost

S3 = "arn:aws:s3:::data"


def allow(action: Any = "s3:GetObject", resource: Any = f"{S3}/*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


TLS = {"Bool": {"aws:SecureTransport": "false"}}
ORG = {"StringEquals": {"aws:PrincipalOrgID": ["o-1", "o-2"]}}
JOINED = {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":s3:::data/", {"Ref": "Prefix"}, "/*"]]}
WIDER = {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":s3:::data/*"]]}
NARROWER: list[tuple[str, Any, Any, str]] = [
    ("a statement", document(allow(), allow("kms:Decrypt", "*")), document(allow()), "kms:Decrypt"),
    ("an action", document(allow(["s3:GetObject", "s3:PutObject"])), document(allow()), "s3:PutObject on"),
    ("a resource", document(allow(resource=[S3, f"{S3}/*"])), document(allow()), "s3:GetObject on arn"),
    ("a narrower action", document(allow("s3:Get*")), document(allow()), "s3:Get*"),
    ("a narrower resource", document(allow()), document(allow(resource=f"{S3}/a/*")), "data/*"),
    ("a condition", document(allow()), document(allow(Condition=ORG)), "s3:GetObject"),
    ("a second condition", document(allow(Condition=ORG)), document(allow(Condition={**ORG, **TLS})), "s3"),
    ("fewer values", document(allow(Condition=ORG)),
     document(allow(Condition={"StringEquals": {"aws:PrincipalOrgID": "o-1"}})), "s3:GetObject"),
    ("other values", document(allow(Condition={"StringNotEquals": {"a": "b"}})),
     document(allow(Condition={"StringNotEquals": {"a": ["b", "c"]}})), "s3:GetObject"),
    ("a principal", document(allow(Principal={"AWS": ["a", "b"]})), document(allow(Principal={"AWS": "a"})),
     "s3:GetObject"),
    ("a refusal", document(allow()), document(allow(), {**allow("s3:*", "*"), "Effect": "Deny"}),
     "s3:* is refused"),
    ("a wider refusal", document(allow(), {**allow("s3:*"), "Effect": "Deny", "Condition": TLS}),
     document(allow(), {**allow("s3:*"), "Effect": "Deny"}), "s3:* on arn:aws:s3:::data/* is refused"),
    ("NotAction", document({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}),
     document({"Effect": "Allow", "NotAction": ["iam:*", "sts:*"], "Resource": "*"}), "NotAction"),
    ("joined", document(allow(resource=WIDER)), document(allow(resource=JOINED)), "${AWS::Partition}"),
    ("everything", document(allow()), {}, "s3:GetObject"),
    ("as text", '{"Statement": {"Effect": "Allow", "Action": "a:b", "Resource": "*"}}', "{}", "a:b"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "wide", "narrow", "words"), NARROWER, ids=[row[0] for row in NARROWER])
def test_what_is_taken_away_is_found_and_the_way_back_takes_nothing(
    what: str, wide: Any, narrow: Any, words: str
) -> None:
    assert words in in_words(lost(grants(wide), grants(narrow)))
    if what not in ("other values", "NotAction"):  # of these nobody can tell which is narrower
        assert lost(grants(narrow), grants(wide)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (document(allow(["a:b", "c:d"])), document(allow("c:d"), allow("A:B"))),
        (document(allow(Sid="One")), document(allow(Sid="Two"))),
        (document(allow(["a:b"], [S3])), document(allow("a:b", S3))),
        (document(allow(resource=JOINED)), document(allow(resource=WIDER))),
        (document(allow(Condition={"StringEquals": {"a": "b"}})),
         document(allow(Condition={"StringEquals": {"a": ["c", "b"]}}))),
        (document(allow(Principal={"AWS": "a"})), document(allow(Principal="*"))),
        (document(allow(Principal={"AWS": "*"})), document(allow(Principal="*"))),
        (document(allow(), {**allow(), "Effect": "Deny"}), document(allow())),
    ],
)  # fmt: skip
def test_what_only_looks_different_or_adds_takes_nothing(old: Any, new: Any) -> None:
    assert lost(grants(old), grants(new)) == []


def test_many_are_counted() -> None:
    found = lost(grants(document(allow([f"s3:A{n}" for n in range(9)], "*"))), [])
    assert in_words(found) == "s3:A0, s3:A1, s3:A2 and 6 more"


def test_resources_of_one_action_are_counted() -> None:
    found = lost(grants(document(allow(["a:b", "c:d"], [S3, f"{S3}/*"]), allow("e:f", "*"))), [])
    assert in_words(found) == "a:b on 2 resources, c:d on 2 resources, e:f"


def test_a_huge_document_is_compared_as_a_whole() -> None:
    names = [f"{S3}/{n}" for n in range(200)]
    old, new = (document(allow([f"s3:A{n}" for n in range(50)], some)) for some in (names, names[1:]))

    assert lost(grants(old), grants(old)) == []
    assert len(lost(grants(old), grants(new))) == 1


TEXTS = st.sampled_from(["s3:Get*", "s3:GetObject", "*", "a", "arn:x/*"])
SIDE = TEXTS | st.lists(TEXTS, max_size=3)
STATEMENT = st.fixed_dictionaries(
    {"Effect": st.sampled_from(["Allow", "Deny"])},
    optional={"Action": SIDE, "Resource": SIDE, "NotAction": SIDE, "Principal": SIDE,
              "Condition": st.sampled_from([TLS, ORG, {}])},
)  # fmt: skip
STATEMENTS = st.lists(STATEMENT, max_size=3)


@given(STATEMENTS, STATEMENTS)
def test_only_statements_that_allow_can_be_taken_away_and_only_refusals_take(one: Any, other: Any) -> None:
    assert lost(grants(document(*one)), grants(document(*one))) == []
    more = [*one, *(item for item in other if item["Effect"] == "Allow")]
    assert lost(grants(document(*one)), grants(document(*more))) == []
    found = lost(grants(document(*one)), [])
    assert {item.effect for item in found} <= {"Allow"}
    assert bool(found) == any(item.effect == "Allow" for item in grants(document(*one)))
