"""What running jobs lose although nothing is replaced is a verdict of its own, and never exit code 0."""

from __future__ import annotations

from typing import Any

import pytest
from blast_radius_support import Properties, changes, resource, stack
from hypothesis import given
from hypothesis import strategies as st

from ultracluster.change import Change, Verdict, blast_radius, worst

SELF = {"GroupId": {"Fn::GetAtt": ["Group", "GroupId"]}, "IpProtocol": "-1"}
INGRESS, EGRESS = "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"


def rule(low: int, high: int, **more: Any) -> Properties:
    return {
        "GroupId": "sg-1",
        "IpProtocol": "tcp",
        "FromPort": low,
        "ToPort": high,
        "CidrIp": "10.0.0.0/8",
        **more,
    }


RULES = [
    (INGRESS, {**SELF, "SourceSecurityGroupId": SELF["GroupId"]}, "every collective"),
    (EGRESS, {**SELF, "DestinationSecurityGroupId": SELF["GroupId"]}, "every collective"),
    (INGRESS, rule(988, 988), "Lustre"),
    (INGRESS, rule(1018, 1023), "Lustre"),
    (INGRESS, rule(2049, 2049), "NFS"),
    (INGRESS, rule(20001, 20003, IpProtocol="udp"), "NFS"),
    (INGRESS, rule(3306, 3306), "accounting"),
    (INGRESS, rule(6817, 6817), "Slurm"),
    (EGRESS, rule(443, 443), "HTTPS"),
    (EGRESS, {"GroupId": "sg-1", "IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}, "every port"),
    (INGRESS, rule(12345, 12345), "the rule ends"),
]


@pytest.mark.parametrize(("kind", "properties", "words"), RULES)
def test_a_rule_that_goes_says_what_it_was_for(kind: str, properties: Properties, words: str) -> None:
    (change,) = blast_radius(stack(R=resource(kind, properties)), stack())

    assert change.verdict is Verdict.AT_RISK and words in change.reason


INLINE = [{**rule(988, 988), "Description": "a"}, rule(22, 22)]


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (INLINE, INLINE[:1], "jobs at risk"),
        (INLINE, [rule(22, 22), rule(988, 988)], "in place"),
        (INLINE, [*INLINE, rule(80, 80)], "in place"),
        (INLINE, [INLINE[1], rule(988, 988, CidrIp="10.1.0.0/16")], "jobs at risk"),
        (INLINE, [], "jobs at risk"),
        (INLINE, {"Fn::If": ["a", [], []]}, "jobs at risk"),
        ([], INLINE, "in place"),
    ],
)
@pytest.mark.parametrize("name", ["SecurityGroupIngress", "SecurityGroupEgress"])
def test_rules_inside_of_a_group(name: str, old: Any, new: Any, verdict: str) -> None:
    (change,) = changes("AWS::EC2::SecurityGroup", {name: old}, {name: new})

    assert change.verdict == verdict and change.path == name


PORT = st.integers(0, 65535)
ANY_RULE = st.fixed_dictionaries(
    {"GroupId": st.just("sg-1") | st.just({"Ref": "Group"})},
    optional={"IpProtocol": st.sampled_from(["-1", "tcp", "udp", 6]), "FromPort": PORT | st.text(max_size=3),
              "ToPort": PORT, "CidrIp": st.just("0.0.0.0/0"),
              "SourceSecurityGroupId": st.just({"Ref": "Group"})},
)  # fmt: skip


@given(st.dictionaries(st.sampled_from("ABCDE"), ANY_RULE, min_size=1), st.data())
def test_no_rule_goes_without_a_word(rules: dict[str, Properties], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(rules)))
    kept = {name: resource(INGRESS, one) for name, one in rules.items()}
    after = {name: one for name, one in kept.items() if name != gone}

    assert worst(blast_radius(stack(**kept), stack(**after))).rank >= Verdict.AT_RISK.rank


# --------------------------------------------------------------------------------------------- rights


def trusted(service: str) -> Properties:
    return {
        "AssumeRolePolicyDocument": {
            "Statement": [{"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}]
        }
    }


def policy(*actions: str, effect: str = "Allow", role: str = "Role", **more: Any) -> Properties:
    statement = {"Effect": effect, "Action": list(actions), "Resource": "*", **more}
    return resource(
        "AWS::IAM::Policy", {"PolicyDocument": {"Statement": [statement]}, "Roles": [{"Ref": role}]}
    )


NODES = resource("AWS::IAM::Role", trusted("ec2.amazonaws.com"))
FUNCTION = resource("AWS::IAM::Role", trusted("lambda.amazonaws.com"))
SSM = ("ssmmessages:CreateDataChannel", "ssmmessages:OpenDataChannel", "s3:GetObject")


def verdicts(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    return blast_radius(stack(**before), stack(**after))


def test_a_right_of_a_node_that_ends_is_named() -> None:
    (change,) = verdicts({"Role": NODES, "P": policy(*SSM)}, {"Role": NODES, "P": policy(*SSM[:2])})

    assert change.verdict is Verdict.AT_RISK
    assert change.reason == "rights end at once, for running nodes, too: s3:GetObject"


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ({"P": policy(*SSM)}, {}, "jobs at risk"),
        ({"P": policy(*SSM)}, {"Q": policy(*SSM)}, "in place"),
        ({"P": policy(*SSM)}, {"Q": policy(*SSM[:1]), "R": policy("s*:*")}, "in place"),
        ({"P": policy(*SSM)}, {"Q": policy(*SSM, role="Other")}, "jobs at risk"),
        ({"P": policy(*SSM)}, {"P": policy(*SSM, "s3:PutObject")}, "in place"),
        ({"P": policy(*SSM)}, {"P": policy(*SSM), "D": policy("s3:*", effect="Deny")}, "jobs at risk"),
        ({"P": policy(*SSM)}, {"P": policy(*SSM, Condition={"Bool": {"a": "true"}})}, "jobs at risk"),
    ],
)
def test_rights_count_by_role_not_by_policy(before: Any, after: Any, verdict: str) -> None:
    found = verdicts({"Role": NODES, **before}, {"Role": NODES, **after})

    assert worst(found) == verdict
    assert (
        worst(verdicts({"Role": FUNCTION, **before}, {"Role": FUNCTION, **after})).rank
        <= Verdict.AT_RISK.rank
    )


def test_a_role_that_no_job_uses_puts_none_at_risk() -> None:
    (change,) = verdicts({"Role": FUNCTION, "P": policy(*SSM)}, {"Role": FUNCTION, "P": policy(*SSM[:2])})

    assert change.verdict == "in place" and "no job uses" in change.reason


def test_policies_inside_of_a_role() -> None:
    inline = [
        {"PolicyName": name, "PolicyDocument": policy(*SSM)["Properties"]["PolicyDocument"]} for name in "ab"
    ]
    both, one, none = (
        resource("AWS::IAM::Role", {**trusted("ec2.amazonaws.com"), "Policies": some})
        for some in (inline, inline[:1], [])
    )

    assert worst(verdicts({"Role": both}, {"Role": one})) == "in place"
    assert worst(verdicts({"Role": both}, {"Role": none})) == "jobs at risk"


def test_who_may_take_a_role() -> None:
    narrowed = trusted("ec2.amazonaws.com")
    narrowed["AssumeRolePolicyDocument"]["Statement"][0]["Condition"] = {"StringEquals": {"a": "b"}}
    (change,) = verdicts({"Role": NODES}, {"Role": resource("AWS::IAM::Role", narrowed)})

    assert change.verdict is Verdict.AT_RISK and "who may take the role narrows" in change.reason


OPEN = {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}]}
OURS = {
    "Statement": [
        {**OPEN["Statement"][0], "Condition": {"StringEquals": {"aws:PrincipalAccount": "111122223333"}}}
    ]
}
ENDPOINT = "AWS::EC2::VPCEndpoint"


@pytest.mark.parametrize(
    ("kind", "old", "new", "verdict"),
    [
        (ENDPOINT, {}, {"PolicyDocument": OURS}, "jobs at risk"),
        (ENDPOINT, {}, {"PolicyDocument": OPEN}, "in place"),
        (ENDPOINT, {"PolicyDocument": OURS}, {}, "in place"),
        (ENDPOINT, {"PolicyDocument": OPEN}, {"PolicyDocument": OURS}, "jobs at risk"),
        (ENDPOINT, {"SubnetIds": ["a", "b"]}, {"SubnetIds": ["a"]}, "jobs at risk"),
        (ENDPOINT, {"SubnetIds": ["a"]}, {"SubnetIds": ["b", "a"]}, "in place"),
        (ENDPOINT, {"RouteTableIds": ["a", "b"]}, {"RouteTableIds": ["b"]}, "jobs at risk"),
        (ENDPOINT, {"SecurityGroupIds": ["a"]}, {"SecurityGroupIds": ["b"]}, "jobs at risk"),
        (ENDPOINT, {"PrivateDnsEnabled": True}, {"PrivateDnsEnabled": False}, "jobs at risk"),
        (ENDPOINT, {"PrivateDnsEnabled": True}, {}, "jobs at risk"),
        (ENDPOINT, {"PrivateDnsEnabled": False}, {"PrivateDnsEnabled": True}, "in place"),
        ("AWS::S3::BucketPolicy", {"PolicyDocument": OPEN}, {"PolicyDocument": OURS}, "jobs at risk"),
        ("AWS::S3::BucketPolicy", {"PolicyDocument": OURS}, {"PolicyDocument": OPEN}, "in place"),
        ("AWS::KMS::Key", {"KeyPolicy": OPEN}, {"KeyPolicy": OURS}, "jobs at risk"),
        ("AWS::KMS::Key", {"KeyPolicy": OURS}, {"KeyPolicy": OPEN}, "in place"),
        ("AWS::IAM::Policy", {"Roles": ["a", "b"]}, {"Roles": ["b"]}, "jobs at risk"),
        ("AWS::IAM::Role", {"ManagedPolicyArns": ["a"]}, {"ManagedPolicyArns": []}, "jobs at risk"),
        ("AWS::IAM::Role", {}, {"PermissionsBoundary": "a"}, "jobs at risk"),
        ("AWS::IAM::Role", {"PermissionsBoundary": "a"}, {}, "in place"),
        ("AWS::RDS::DBInstance", {"VPCSecurityGroups": ["a"]}, {"VPCSecurityGroups": ["b"]}, "jobs at risk"),
    ],
)  # fmt: skip
def test_what_narrows_an_endpoint_a_bucket_or_a_key(kind: str, old: Any, new: Any, verdict: str) -> None:
    (change,) = changes(kind, old, new)

    assert change.verdict == verdict, change.reason


@pytest.mark.parametrize(
    "kind",
    [ENDPOINT, "AWS::EC2::Route", "AWS::EC2::SubnetRouteTableAssociation", "AWS::EC2::VPCGatewayAttachment",
     "AWS::EC2::VPCCidrBlock", "AWS::EKS::AccessEntry", "AWS::EKS::PodIdentityAssociation"],
)  # fmt: skip
def test_a_way_or_an_entry_that_goes(kind: str) -> None:
    assert worst(verdicts({"R": resource(kind)}, {})) == "jobs at risk"


def test_a_new_endpoint_that_refuses_is_no_mere_addition() -> None:
    there = {"Vpc": resource("AWS::EC2::VPC")}
    for document, verdict in ((OURS, "jobs at risk"), (OPEN, "in place"), (None, "in place")):
        new = resource(ENDPOINT, {"PolicyDocument": document} if document else {})
        assert worst(verdicts(there, {**there, "E": new})) == verdict
    assert worst(verdicts({}, {"E": resource(ENDPOINT, {"PolicyDocument": OURS})})) == "in place"


def test_a_first_bucket_policy_refuses_to_those_who_came_before() -> None:
    bucket = {"Bucket": resource("AWS::S3::Bucket")}
    deny = {"Statement": [{**OPEN["Statement"][0], "Effect": "Deny"}]}
    made = resource("AWS::S3::BucketPolicy", {"Bucket": {"Ref": "Bucket"}, "PolicyDocument": deny})

    assert worst(verdicts(bucket, {**bucket, "P": made})) == "jobs at risk"
    assert worst(verdicts({}, {**bucket, "P": made})) == "in place"
