"""Queues: who waits, for what and how long, and who has the accelerators."""

from __future__ import annotations

from tools.dashboards.board import Board, Section
from tools.dashboards.panels import Limits, bars, graph, number
from tools.dashboards.queries import CLUSTER
from tools.dashboards.tables import Column, table


def here(metric: str) -> str:
    return f"{metric}{{{CLUSTER}}}"


RUNNING = here("ultracluster_slurm_job_node")
QUEUE_USE = f"sum by (cluster_queue, resource) ({here('kueue_cluster_queue_resource_usage')})"
QUEUE_QUOTA = f"sum by (cluster_queue, resource) ({here('kueue_cluster_queue_nominal_quota')})"
SLURM = Section(
    title="Slurm",
    needs="slurm",
    panels=[
        number(
            "Controller answers",
            f"max({here('ultracluster_slurm_up')})",
            "1 where slurmctld answered the last time it was asked.",
            limits=Limits(bad=1, low=True),
        ),
        number(
            "Longest wait",
            f"max({here('ultracluster_slurm_pending_seconds')}) or vector(0)",
            "Of the job that waits longest, in any partition.",
            unit="s",
            limits=Limits(warn=4 * 3600, bad=24 * 3600),
        ),
        number(
            "Running jobs", f"count(count by (job_id) ({RUNNING})) or vector(0)", "Jobs that have nodes now."
        ),
        number(
            "Nodes at work",
            f"count(count by (slurm_node) ({RUNNING})) or vector(0)",
            "Nodes with at least one job.",
        ),
        number(
            "Nodes that take no job",
            f"count(count by (slurm_node) ({here('ultracluster_slurm_node_drained')})) or vector(0)",
            "Drained nodes: paid, and of no use.",
            limits=Limits(warn=1),
        ),
        graph(
            "Longest wait, by reason",
            [
                (
                    f"max by (partition, reason) ({here('ultracluster_slurm_pending_seconds')})",
                    "{{partition}} {{reason}}",
                )
            ],
            "Resources: nothing is free. Priority: others come first. Anything else is about the job itself: its limits, "
            "its reservation, its dependency.",
            unit="s",
        ),
        graph(
            "Nodes by state",
            [(f"count by (state) ({here('ultracluster_slurm_node_state')})", "{{state}}")],
            "Idle nodes beside long waits: the jobs ask for something that idle nodes do not have.",
            stacked=True,
        ),
        graph(
            "Nodes by account",
            [(f"count by (account) (count by (account, slurm_node) ({RUNNING}))", "{{account}}")],
            "Who has the nodes.",
            stacked=True,
        ),
        bars(
            "Share of node time by account, in the time that is shown",
            f"sort_desc(sum by (account) (sum_over_time((count by (account) (count by (account, slurm_node) ({RUNNING})))[$__range:5m])) "
            f"/ on () group_left () sum(sum_over_time((count by (account) (count by (account, slurm_node) ({RUNNING})))[$__range:5m])))",
            "{{account}}",
            "Beside the shares of the environment's teams this says whether the queue is fair.",
            unit="percentunit",
            ceiling=1,
        ),
        table(
            "Running jobs",
            ["job_id", "user", "account", "partition"],
            [Column(name="nodes", expression=f"count by (job_id, user, account, partition) ({RUNNING})")],
            "Who runs what on how many nodes.",
        ),
    ],
)
CONTROLLER = Section(
    title="slurmctld (Slurm 25.11 and newer)",
    needs="slurm",
    closed=True,
    panels=[
        graph(
            "Jobs",
            [
                (f"max({here('slurm_jobs_running')})", "running"),
                (f"max({here('slurm_jobs_pending')})", "pending"),
                (f"max({here('slurm_jobs_hold')})", "held"),
            ],
            "As slurmctld counts them itself.",
        ),
        graph(
            "Pending jobs by partition",
            [(f"max by (partition) ({here('slurm_partition_jobs_pending')})", "{{partition}}")],
            "As slurmctld counts them itself.",
            stacked=True,
        ),
        graph(
            "Time of a scheduling cycle",
            [
                (f"max({here('slurm_schedule_cycle_last')}) / 1e6", "main"),
                (f"max({here('slurm_bf_cycle_last')}) / 1e6", "backfill"),
            ],
            "Seconds that slurmctld plans before it answers again: above a few, commands of users time out.",
            unit="s",
            limits=Limits(warn=5, bad=30),
        ),
        graph(
            "What waits inside slurmctld",
            [
                (f"max({here('slurm_agent_queue_size')})", "messages to nodes"),
                (f"max({here('slurm_slurmdbd_queue_size')})", "messages to slurmdbd"),
                (f"max({here('slurm_server_thread_cnt')})", "threads at work"),
            ],
            "A queue to slurmdbd that grows: the accounting database is down, and records wait in memory.",
        ),
    ],
)
KUEUE = Section(
    title="Kueue",
    needs="kueue",
    panels=[
        graph(
            "Workloads that wait",
            [
                (
                    f"sum by (cluster_queue, status) ({here('kueue_pending_workloads')})",
                    "{{cluster_queue}} {{status}}",
                )
            ],
            "active: will be tried when there is room. inadmissible: does not fit its queue until something changes.",
            stacked=True,
        ),
        graph(
            "Workloads that run",
            [(f"sum by (cluster_queue) ({here('kueue_admitted_active_workloads')})", "{{cluster_queue}}")],
            "Admitted and not finished.",
            stacked=True,
        ),
        graph(
            "Use of each queue's quota",
            [
                (
                    f"{QUEUE_USE} / ({QUEUE_QUOTA} > 0)",
                    "{{cluster_queue}} {{resource}}",
                )
            ],
            "Above 100 % a queue borrows what others do not use, and gives it back when they ask.",
            unit="percentunit",
            limits=Limits(warn=1),
        ),
    ],
)
PODS = Section(
    title="Pods",
    needs="kubernetes",
    panels=[
        graph(
            "Pods that wait",
            [
                (
                    'sum by (namespace) (kube_pod_status_phase{cluster="$cluster",phase="Pending"})',
                    "{{namespace}}",
                )
            ],
            "Pods without a node, or whose image is not there yet.",
            stacked=True,
        ),
        graph(
            "Nodes that take no new pods",
            [(f"sum({here('kube_node_spec_unschedulable')})", "unschedulable")],
            "Cordoned nodes: paid, and of no use.",
            limits=Limits(warn=1),
        ),
    ],
)
BOARD = Board(
    name="queues",
    title="Queues and fairness",
    description="Who waits, for what and how long, and who has the nodes.",
    variables=(),
    since="now-24h",
    sections=[SLURM, CONTROLLER, KUEUE, PODS],
)
