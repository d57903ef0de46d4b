"""Slurm's accounting as records of use; tests/slurm_twin/test_usage.py holds it against a real `sacct`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.account.aws import AccountError
from ultracluster.jobs.queue.slurm_accounting import FIELDS, records_of, records_script
from ultracluster.model import Cluster, resolve
from ultracluster.plan.usage import Records, Run

MARK = "|0a1b2c|"
SETTINGS = "AccountingStorageTRES   = cpu,mem,node,billing,gres/gpu\nPrivateData             = none\n"
NODES = """ip-10-1-0-1|gpu|48|380000|gpu:l40s:4(S:0-1)
ip-10-1-0-1|all|48|380000|gpu:l40s:4(S:0-1)
ip-10-1-0-2|gpu|48|380000|gpu:l40s:4(S:0-1)
"""
WHOLE = "billing=48,cpu=48,gres/gpu=4,mem=380000M,node=1"


def cluster(**changes: Any) -> Cluster:
    return resolve(loaded(changed(environment_data("dev"), changes)).environment)


def job(number: str, **more: str) -> str:
    values = {
        "JobID": number, "JobIDRaw": number.split("_")[0], "User": "alice", "UID": "2001",
        "Account": "vision",
        "Partition": "gpu", "State": "COMPLETED", "Start": "1000", "End": "2000", "AllocTRES": WHOLE,
        "NodeList": "ip-10-1-0-1", "JobName": "train",
    } | more  # fmt: skip
    return MARK.join(values[field] for field in FIELDS) + "\n"


def records(
    *jobs: str, queue: str = "", settings: str = SETTINGS, nodes: str = NODES, known: Cluster | None = None
) -> Records:
    text = f"5000\n{settings}{MARK}nodes\n{nodes}{MARK}jobs\n{''.join(jobs)}{MARK}queue\n{queue}"
    return records_of(text, MARK, known or cluster(), "a test")


def only(*jobs: str, **more: Any) -> Run:
    (run,) = records(*jobs, **more).runs
    return run


def test_a_job() -> None:
    found = records(job("42", NodeList="ip-10-1-0-[1-2]", AllocTRES=WHOLE.replace("=4", "=8")))
    assert found.now == 5000 and found.notes == ()
    assert dict(found.groups) == {"ip-10-1-0-1": "gpu", "ip-10-1-0-2": "gpu"}
    (run,) = found.runs
    assert (run.job, run.name, run.user, run.team) == ("42", "train", "alice", "vision")
    assert (run.nodes, run.start, run.end) == (("ip-10-1-0-1", "ip-10-1-0-2"), 1000, 2000)
    assert run.accelerators == 1.0


SHARES = {
    "all": (WHOLE, 1.0, 1.0),
    "one GPU of four": ("cpu=2,gres/gpu=1,mem=4G,node=1", 0.25, 0.25),
    "typed": ("cpu=2,gres/gpu=2,gres/gpu:l40s=2,mem=4G", 0.5, 0.5),
    "all CPUs and no GPU": ("cpu=48,mem=4G,node=1", 1.0, 0.0),
    "half of the memory": ("cpu=1,mem=190000M,node=1", 0.5, 0.0),
    "more than there is": ("cpu=96,mem=4G,node=1", 1.0, 0.0),
    "nothing known": ("", 1.0, 1.0),
    "a terabyte": ("cpu=1,mem=1.50T,node=1", 1.0, 0.0),
}


@pytest.mark.parametrize("name", SHARES)
def test_the_part_of_a_node(name: str) -> None:
    tres, share, accelerators = SHARES[name]
    run = only(job("1", AllocTRES=tres))
    assert (run.share, run.accelerators) == (pytest.approx(share), accelerators)


def test_mig_and_shards_are_parts_of_what_the_node_offers() -> None:
    mig = NODES.replace("gpu:l40s:4(S:0-1)", "gpu:1g.10gb:20,gpu:3g.40gb:8")
    assert only(job("1", AllocTRES="cpu=1,gres/gpu=7,node=1"), nodes=mig).accelerators == 7 / 28


def test_what_gets_no_bill_and_what_each_start_gets() -> None:
    rows = [
        job("1", State="PENDING", Start="Unknown", End="Unknown", NodeList="None assigned"),
        job("2", State="CANCELLED by 2001", Start="None", End="1500", NodeList="None assigned"),
        job("3_[8-10%2]", Start="Unknown", End="Unknown", NodeList="None assigned"),
        job("3_1", JobIDRaw="4"),
        job("3_2", JobIDRaw="5"),
        job("6", State="REQUEUED"),
        job("6", State="RUNNING", Start="2500", End="Unknown"),
        job("7+0"),
        job("7+1", JobIDRaw="8"),
    ]
    found = records(*rows, queue="6 2500\n").runs
    assert [one.job for one in found] == ["3", "3", "6", "6", "7", "7"]
    assert len({one.attempt for one in found}) == 6
    assert [one.end for one in found if one.job == "6"] == [2000, None]


def test_what_runs_for_ever_in_the_database_only() -> None:
    endless = {"State": "RUNNING", "End": "Unknown"}
    again = job("2", Start="900", **endless)  # of a Slurm whose numbers began again
    found = records(job("1", **endless), again, job("2", **endless), queue="2 1000\n")
    assert [one.job for one in found.runs] == ["2"]
    assert any("runawayjobs" in note for note in found.notes)


def test_a_name_is_no_record() -> None:
    forged = (
        "x\n" + job("99", User="bob").replace(MARK, "|guessed|") + f"{'|guessed|'}jobs\n@|; $(id) \x1b[2J"
    )
    found = records(job("1", JobName=forged), job("2")).runs
    assert [(one.job, one.user) for one in found] == [("1", "alice"), ("2", "alice")]
    assert found[0].name.startswith("x") and "\n" not in found[0].name and "\x1b" not in found[0].name


def test_who_is_not_known() -> None:
    assert only(job("1", User="")).user == "uid 2001"
    assert only(job("1", User="", UID="", Account="")).user == ""


def test_what_cannot_be_seen_is_said() -> None:
    private = records(job("1"), settings=SETTINGS.replace("= none", "= usage,jobs"))
    assert any("PrivateData hides jobs" in note for note in private.notes)
    run = records(job("1", AllocTRES="cpu=24,node=1"), settings="")
    assert any("has no gres/gpu" in note for note in run.notes) and run.runs[0].accelerators == 0.5


def test_nodes_that_are_gone_and_groups_that_share_a_partition() -> None:
    gone = records(job("1", NodeList="ip-10-1-0-9", AllocTRES="cpu=12,gres/gpu=1,node=1"))
    assert (dict(gone.groups), gone.runs[0].accelerators) == ({"ip-10-1-0-9": "gpu"}, 0.25)
    two = {"role": "compute", "instance_type": "g6e.48xlarge", "count": 1, "partition": "gpu"}
    known = cluster(**{"node_groups.large": two})
    nodes = f"{NODES}ip-10-1-0-3|gpu|192|1500000|gpu:l40s:8\nqueue-st-large-1|gpu|1|1|(null)\n"
    names = "ip-10-1-0-[1,3,4],queue-st-large-1"
    found = records(job("1", NodeList=names), nodes=nodes, known=known)
    assert dict(found.groups) == {
        "ip-10-1-0-1": "gpu", "ip-10-1-0-3": "large", "queue-st-large-1": "large"
    }  # fmt: skip


def test_an_answer_that_cannot_be_read() -> None:
    with pytest.raises(AccountError, match="cannot be read"):
        records_of("slurm_load_jobs error: Unable to contact slurm controller\n", MARK, cluster(), "a test")
    assert records(job("1", NodeList="n[1-")).runs == ()


def test_times_are_asked_for_in_utc() -> None:
    first, last = datetime(2026, 11, 1, tzinfo=UTC), datetime.fromisoformat("2026-11-02T01:30:00+02:00")
    script = records_script(MARK, first, last)
    assert "--starttime=2026-11-01T00:00:00 --endtime=2026-11-01T23:30:00" in script
    assert "@" not in script.replace(f"@{MARK}", "")
