"""Money and goodput: what runs, what stands idle, and how much of the paid time trains."""

from __future__ import annotations

from tools.dashboards.board import Board, Section
from tools.dashboards.panels import Limits, bars, graph, number
from tools.dashboards.queries import CLUSTER, of


def here(metric: str, *more: str) -> str:
    return of(metric, *more, where=f'{CLUSTER},node_group=~"$node_group"')


PRICE = f"max by (cluster, node_group, node) ({here('ultracluster_node_usd_per_hour')})"
BUSY = f"(avg_over_time({here('DCGM_FI_DEV_GPU_UTIL')}[15m]) > bool 5)"
IDLE = f"(1 - avg by (cluster, node_group, node) ({BUSY})) * on (cluster, node_group, node) {PRICE}"
IDLE_NEURON = (
    "(1 - avg by (cluster, node_group, node) "
    f"(avg_over_time({here('neuroncore_utilization_ratio')}[15m]) > bool 0.05)) * on (cluster, node_group, node) {PRICE}"
)
JOB_SIZE = (
    f"count by (cluster, job_id) (count by (cluster, job_id, node) ({here('ultracluster_training_step')}))"
)
USEFUL = (
    f"sum(max by (cluster, job_id) (rate({here('ultracluster_training_useful_seconds_total')}[$__rate_interval])) "
    f"* on (cluster, job_id) {JOB_SIZE})"
)
PAID = f"count({PRICE})"
TRAINS = f"count(count by (node) ({here('ultracluster_training_step')}))"

LEASE = of("ultracluster_lease_end_timestamp_seconds", where=CLUSTER)

BURN = Section(
    title="What it costs",
    needs="all",
    panels=[
        number(
            "Per hour, now",
            f"sum({PRICE})",
            "List prices of the nodes that report. Discounts, plans and what is not a node (file systems, traffic) are not in it; "
            "nodes whose price is not known count nothing.",
            unit="currencyUSD",
            decimals=0,
        ),
        number(
            "In the time that is shown",
            f"sum(avg_over_time((sum({PRICE}))[$__range:5m])) * $__range_s / 3600",
            "The hourly price of the nodes that reported, over the time range at the top right.",
            unit="currencyUSD",
            decimals=0,
        ),
        number("Paid nodes", PAID, "Nodes that report a price."),
        number(
            "Useful share of paid node time",
            f"{USEFUL} / {PAID}",
            "Goodput: seconds of steps that counted, times the nodes of their job, of the seconds of all paid nodes. Repeated steps, "
            "starts, checkpoints, waiting for nodes and idle nodes are what is missing to 100 %. Jobs that do not report count nothing.",
            unit="percentunit",
            limits=Limits(bad=0.5, warn=0.8, low=True),
        ),
        graph(
            "Per hour, by node group",
            [(f"sum by (node_group) ({PRICE})", "{{node_group}}")],
            "List prices of the nodes that report.",
            unit="currencyUSD",
            stacked=True,
        ),
    ],
)
LEASES = Section(
    title="Leases",
    needs="lease",
    panels=[
        number(
            "Next lease ends in",
            f"min({LEASE}) - time()",
            "Capacity blocks and training plans end at a fixed time, and their nodes with them. Save checkpoints before.",
            unit="s",
            limits=Limits(bad=6 * 3600, warn=24 * 3600, low=True),
        ),
        bars(
            "Leases",
            f"sort(min by (lease_group) ({LEASE}) - time())",
            "{{lease_group}}",
            "Time that is left of each node group's capacity block or training plan.",
            unit="s",
            limits=Limits(bad=6 * 3600, warn=24 * 3600, low=True),
        ),
    ],
)
IDLE_GPUS = Section(
    title="Idle GPUs",
    needs="gpu",
    panels=[
        number(
            "Idle, per hour",
            f"sum({IDLE})",
            "GPUs that did nothing for 15 minutes, at their share of their node's price.",
            unit="currencyUSD",
            limits=Limits(warn=50, bad=500),
            decimals=0,
        ),
        number(
            "Idle GPUs",
            f"count(avg_over_time({here('DCGM_FI_DEV_GPU_UTIL')}[15m]) <= 5) or vector(0)",
            "GPUs below 5 % use over 15 minutes.",
            limits=Limits(warn=1),
        ),
        graph(
            "Idle, per hour, by node group",
            [(f"sum by (node_group) ({IDLE})", "{{node_group}}")],
            "What idle GPUs cost. Nights and weekends show; so does a job that hangs.",
            unit="currencyUSD",
            stacked=True,
            width=16,
        ),
    ],
)
IDLE_CORES = Section(
    title="Idle NeuronCores",
    needs="neuron",
    panels=[
        number(
            "Idle, per hour",
            f"sum({IDLE_NEURON})",
            "Cores that did nothing for 15 minutes, at their share of their node's price.",
            unit="currencyUSD",
            limits=Limits(warn=50, bad=500),
            decimals=0,
        ),
        graph(
            "Idle, per hour, by node group",
            [(f"sum by (node_group) ({IDLE_NEURON})", "{{node_group}}")],
            "What idle cores cost.",
            unit="currencyUSD",
            stacked=True,
            width=20,
        ),
    ],
)
GOODPUT = Section(
    title="Goodput",
    needs="all",
    panels=[
        graph(
            "Paid nodes, and what they do",
            [
                (PAID, "paid"),
                (TRAINS, "in a job that reports"),
                (USEFUL, "worth of useful steps"),
            ],
            "The space between the lines is money: between paid and in a job, nodes without work; between a job and useful steps, "
            "starts, checkpoints, repeated steps and waiting.",
        ),
        graph(
            "Lost time, by reason",
            [
                (
                    (
                        f"sum by (reason) (rate({here('ultracluster_training_lost_seconds_total')}[$__rate_interval]) "
                        f"* on (cluster, job_id) group_left () {JOB_SIZE})"
                    ),
                    "{{reason}}",
                )
            ],
            "Nodes' worth of time that jobs spend on steps they did before, on starting, and on checkpoints.",
            stacked=True,
        ),
    ],
)
BOARD = Board(
    name="money",
    title="Money and goodput",
    description="What the cluster costs per hour, what of it stands idle, and how much of the paid time trains.",
    variables=("node_group",),
    since="now-24h",
    sections=[BURN, LEASES, IDLE_GPUS, IDLE_CORES, GOODPUT],
)
