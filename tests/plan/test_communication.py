"""Communication of a training step, by link: against papers, and by what must always hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules_support import environment_data, loaded
from typer.testing import CliRunner

from ultracluster.catalog import instance_types
from ultracluster.catalog.sizing import accelerator_domain
from ultracluster.cli.main import app
from ultracluster.model import resolve
from ultracluster.plan.communication import Communication, Layout, Step, communication, read_layout, shape
from ultracluster.plan.groups import GroupPlan, group_plan

TRAIN = group_plan(resolve(loaded(environment_data("prod")).environment).groups["train"])
"""16 nodes with eight H200."""


def group(instance_type: str, nodes: int) -> GroupPlan:
    facts = instance_types()[instance_type]
    assert facts.accelerator
    return GroupPlan(
        **{
            **{name: getattr(TRAIN, name) for name in TRAIN.__slots__},
            "instance_type": instance_type,
            "count": nodes,
            "greatest": nodes,
            "accelerator": facts.accelerator.name,
            "accelerators": facts.accelerator.count * nodes,
            "accelerator_memory_gib": facts.accelerator.memory_gib * nodes,
            "domain": accelerator_domain(facts, nodes),
            "efa_gbps_per_node": facts.network_gbps,
        }
    )


def step(layout: str, parameters: float = 70e9, **changes: float) -> Step:
    values = {"active": parameters, "tokens": 4e6, "mfu": 0.4, **changes}
    return Step(layout=read_layout(layout), parameters=parameters, precision="bf16", **values)


def estimate(layout: str, of: GroupPlan = TRAIN, parameters: float = 70e9, **changes: float) -> Communication:
    return communication(of, step(layout, parameters, **changes))


def sent(found: Communication, kind: str, link: str) -> float:
    return sum(one.gigabytes for one in found.traffic if one.kind == kind and one.link == link) * 1e9


# GPUs, seconds of an iteration and TFLOP/s of each as Smith et al. 2022 publish them for MT-NLG 530B (section
# 2.4); their count has a second forward pass (activation recomputation): 8 of 6 operations a parameter
MT_NLG = [(2240, 60.1, 126), (2800, 50.2, 121), (3360, 44.4, 113)]


@pytest.mark.parametrize(("gpus", "seconds", "tflops"), MT_NLG)
def test_the_step_takes_as_long_as_published(gpus: int, seconds: float, tflops: float) -> None:
    found = estimate(
        f"tp=8,pp=35,dp={gpus // 280}",
        group("p4d.24xlarge", gpus // 8),
        530e9,
        tokens=1920 * 2048,
        mfu=tflops * 6 / 8 / 312,
    )
    assert found.step_seconds == pytest.approx(seconds, rel=0.03)


def test_a_model_of_usual_shape_is_like_llama_3() -> None:
    """Layers and width of 8B, 70B and 405B (The Llama 3 Herd of Models, table 3)."""
    for parameters, layers, width in ((8e9, 32, 4096), (70e9, 80, 8192), (405e9, 126, 16384)):
        assert shape(parameters) == (pytest.approx(layers, rel=0.15), pytest.approx(width, rel=0.15))


def test_tensor_parallelism_sends_what_megatron_counts() -> None:
    """8 b s h (t-1)/t values a layer and microbatch (Narayanan et al. 2021, section 3.2)."""
    layers, width = shape(70e9)
    found = estimate("tp=8,dp=16")
    expected = layers * 8 * (4e6 / 16) * width * 7 / 8 * 2
    assert sent(found, "tensor", "NVLink") == pytest.approx(expected)
    assert not sent(found, "tensor", "EFA")
    assert not found.across


def test_data_parallelism_sends_what_zero_counts() -> None:
    """2 and 3 times the weights (Rajbhandari et al. 2020, section 7), of which one in eight leaves a node."""
    plain, sharded = estimate("dp=128"), estimate("fsdp=128")
    assert sent(plain, "data", "NVLink") == pytest.approx(2 * 70e9 * 2 * 127 / 128)
    assert sent(plain, "data", "EFA") == pytest.approx(2 * 70e9 * 2 * 15 / 16 / 8)
    assert sent(sharded, "data", "EFA") == pytest.approx(1.5 * sent(plain, "data", "EFA"))


def test_a_tensor_group_that_leaves_its_node_is_named() -> None:
    found = estimate("tp=16,dp=8")
    assert found.across == ("tensor",)
    assert sent(found, "tensor", "EFA") > 0


def test_an_ultraserver_keeps_wide_groups_inside() -> None:
    found = estimate("tp=16,dp=9", group("p6e-gb200.36xlarge", 36))
    assert not found.across


def test_experts_send_most_to_other_nodes() -> None:
    found = estimate("dp=128,ep=64", parameters=671e9, active=37e9)
    assert sent(found, "experts", "EFA") == pytest.approx(8 * sent(found, "experts", "NVLink"))
    assert found.dominates
    assert (found.dominates.kind, found.dominates.link) == ("experts", "EFA")


def test_gates_are_taken_before_line_rates() -> None:
    p5, b300 = estimate("dp=8", group("p5.48xlarge", 1)), estimate("dp=16", group("p6-b300.48xlarge", 2))
    assert (p5.link_gbps, p5.link_source) == (410, "acceptance gate")
    assert (b300.efa_gbps, b300.efa_source) == (100, "line rate")
    # the gate of two nodes is above the line rate, for NVLink helps: it is no figure of the fabric
    assert estimate("dp=16", group("p4d.24xlarge", 2)).efa_gbps == 6.25


def test_an_unpublished_link_is_unknown_not_free() -> None:
    found = estimate("tp=16", group("trn1.32xlarge", 1))
    assert found.unknown == ("tensor",)
    assert not found.traffic


WAYS = st.sampled_from([1, 2, 4, 8])


@given(dp=WAYS, tp=WAYS, pp=st.sampled_from([1, 2]), factor=st.sampled_from([2, 10]))
def test_twice_the_model_or_tokens_is_never_less(dp: int, tp: int, pp: int, factor: int) -> None:
    layout = Layout(dp=dp, tp=tp, pp=pp)
    if layout.accelerators > 8 and layout.accelerators % 8:
        return
    base = {
        "layout": layout,
        "parameters": 70e9,
        "active": 70e9,
        "tokens": 1e6,
        "mfu": 0.4,
        "precision": "bf16",
    }
    small = communication(TRAIN, Step(**base))
    for more in ({"tokens": 1e6 * factor}, {"parameters": 70e9 * factor, "active": 70e9 * factor}):
        large = communication(TRAIN, Step(**{**base, **more}))
        assert large.step_seconds == pytest.approx(small.step_seconds * factor)
        assert large.busiest_seconds >= small.busiest_seconds
        assert 0 < large.mfu_without_overlap <= 1
        for one in large.traffic:
            gbps = large.efa_gbps if one.link == "EFA" else large.link_gbps
            assert gbps
            assert one.seconds == pytest.approx(one.gigabytes / gbps)


@given(nodes=st.integers(1, 16), tp=WAYS)
def test_what_a_refusal_offers_is_accepted(nodes: int, tp: int) -> None:
    of = group("p5.48xlarge", nodes)
    for dp in (1, 3, 5, 12, 700):
        try:
            communication(of, step(f"dp={dp},tp={tp}"))
        except ValueError as error:
            nearest = int(str(error).rpartition("dp=")[2].split()[0])
            communication(of, step(f"dp={nearest},tp={tp}"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dp", "write dp=64,tp=8"),
        ("xp=2", "with any of dp, fsdp, tp"),
        ("dp=0", "1 or more"),
        ("dp=2,dp=4", "twice"),
        ("dp=2,fsdp=4", "exclude each other"),
        ("dp=6,ep=4", "ep=2 works"),
    ],
)
def test_no_layout(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_layout(text)


REFUSED = {
    "no model": (["--parallel", "dp=8"], "--model 70B"),
    "too many": (["--model", "70B", "--parallel", "dp=64,tp=8"], "dp=16 works"),
    "half a node": (["--model", "70B", "--parallel", "dp=3,tp=4"], "dp=2 takes 8"),
    "tokens": (["--model", "70B", "--parallel", "dp=8", "--tokens", "4"], "a number of tokens"),
    "active": (["--model", "70B", "--parallel", "dp=8", "--active", "80B"], "70B or less"),
    "precision": (["--model", "70B", "--parallel", "dp=8", "--precision", "fp4"], "bf16 or fp8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_options_end_with_what_works(name: str) -> None:
    options, words = REFUSED[name]
    answer = CliRunner().invoke(app, ["plan", "prod", *options])
    assert answer.exit_code == 2
    assert words in " ".join(answer.output.split())


def test_the_plan_says_what_dominates() -> None:
    options = ["plan", "prod", "--model", "70B", "--parallel", "dp=16,tp=8", "--today", "2026-11-21"]
    answer = CliRunner().invoke(app, options)
    words = " ".join(answer.output.split())
    assert answer.exit_code == 0
    assert "tensor: each sends 2,250 GB over NVLink, 5.5 s (17% of the step)" in words
    assert "longest: tensor over NVLink" in words
    assert "a checkpoint every 60 minutes" in words
