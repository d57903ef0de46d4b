"""Cluster health: which node is sick, for every node (what Grafana's public board 21645 shows, and more)."""

from __future__ import annotations

from tools.dashboards.board import Board, Section
from tools.dashboards.panels import BAD, GOOD, WARN, Limits, bars, graph, number, states
from tools.dashboards.queries import of, rate
from tools.dashboards.tables import Column, table

ANY = Limits(bad=1)
RESULTS = {"0": ("ok", GOOD), "1": ("warning", WARN), "2": ("critical", BAD), "3": ("unknown", "gray")}
REASONS = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
ANSWERS = of("up", 'job="node"')
NOT_READY = of("ultracluster_node_release_info", 'state!="ready"')
FREE = of("node_filesystem_avail_bytes", 'mountpoint="/"')
SIZE = of("node_filesystem_size_bytes", 'mountpoint="/"')
IDLE = rate("ultracluster_node_cpu_seconds_total", 'mode="idle"')


def slowed(bit: int) -> str:
    """GPUs of each node that give this reason (a bit of NVML's mask) for a slower clock."""
    return f"sum by (node) (floor({of(REASONS)} / {bit}) % 2) > 0"


NOW = Section(
    title="Now",
    needs="all",
    panels=[
        number(
            "Nodes that report",
            f"sum(max by (node) ({ANSWERS})) or vector(0)",
            "Nodes whose exporter answered its agent's last scrape.",
            limits=Limits(bad=1, low=True),
        ),
        number(
            "Nodes that fell silent",
            f"count(max by (node) (last_over_time({ANSWERS}[6h])) unless max by (node) ({ANSWERS} == 1)) or vector(0)",
            "Nodes that reported in the last six hours and do not now: gone, rebooting, or their agent is down.",
            limits=ANY,
        ),
        number(
            "Firing alerts",
            'count(ALERTS{cluster="$cluster",alertstate="firing"}) or vector(0)',
            "Alerts that fire now; the table names them.",
            limits=ANY,
        ),
        table(
            "Alerts that fire",
            ["alertname", "severity", "node", "node_group"],
            [Column(name="firing", expression='ALERTS{cluster="$cluster",alertstate="firing"}')],
            "Each alert has a runbook of its name in docs/runbooks: what to run, in which order.",
            width=12,
        ),
    ],
)
CHECKS = Section(
    title="Health checks",
    needs="health",
    panels=[
        number(
            "Critical checks",
            f"count({of('ultracluster_health_result')} == 2) or vector(0)",
            "Health checks that say critical now, over all nodes.",
            limits=ANY,
        ),
        table(
            "Checks that are not ok",
            ["node", "node_group", "check", "code"],
            [
                Column(
                    name="result",
                    expression=f"max by (node, node_group, check, code) ({of('ultracluster_health_result')}) > 0",
                    words=RESULTS,
                )
            ],
            "What the node's own health checks found. Unknown means that a check could not run, not that it failed.",
            width=12,
        ),
        states(
            "Worst check of each node",
            f"max by (node) ({of('ultracluster_health_result')} != 3)",
            "{{node}}",
            "The worst result of any check over time. Checks that could not run are left out.",
            words=RESULTS,
        ),
    ],
)
SOFTWARE = Section(
    title="Software",
    needs="release",
    panels=[
        number(
            "Nodes without their release",
            f"count({NOT_READY}) or vector(0)",
            "Nodes that are not ready with the software release of this environment: something required failed, or "
            "something wanted is missing.",
            limits=Limits(warn=1),
        ),
        number(
            "Missing components",
            f"sum({of('ultracluster_node_components_missing')}) or vector(0)",
            "Components of the release that nodes run without.",
            limits=Limits(warn=1),
        ),
        table(
            "Nodes that are not ready",
            ["node", "node_group", "release", "state"],
            [Column(name="nodes", expression=f"max by (node, node_group, release, state) ({NOT_READY})")],
            "`ultracluster doctor --reason` says what is missing on each.",
            width=16,
            height=4,
        ),
    ],
)
SLURM = Section(
    title="Slurm's view of the nodes",
    needs="slurm",
    panels=[
        bars(
            "Nodes by state",
            'count by (state) (ultracluster_slurm_node_state{cluster="$cluster"})',
            "{{state}}",
            "How many nodes slurmctld has in each state.",
        ),
        table(
            "Drained nodes",
            ["slurm_node", "check", "code"],
            [
                Column(
                    name="drained for",
                    expression='time() - max by (slurm_node) (ultracluster_slurm_node_drained_timestamp_seconds{cluster="$cluster"}) '
                    "* on (slurm_node) group_right () "
                    'max by (slurm_node, check, code) (ultracluster_slurm_node_drained{cluster="$cluster"})',
                    unit="s",
                    limits=Limits(warn=3600, bad=86400),
                )
            ],
            "Nodes that take no job, the check that drained them, and for how long.",
            width=12,
        ),
    ],
)
KUBERNETES = Section(
    title="Kubernetes' view of the nodes",
    needs="kubernetes",
    panels=[
        table(
            "Conditions that are not as they should be",
            ["node", "condition"],
            [
                Column(
                    name="true",
                    expression='max by (node, condition) (kube_node_status_condition{cluster="$cluster",condition!="Ready",'
                    'status="true"} == 1 or kube_node_status_condition{cluster="$cluster",condition="Ready",status=~"false|unknown"} == 1)',
                )
            ],
            "Pressure, network or accelerator conditions that hold, and nodes that are not Ready.",
            width=12,
        ),
        graph(
            "Nodes that take no new pods",
            [('sum(kube_node_spec_unschedulable{cluster="$cluster"})', "unschedulable")],
            "Nodes that are cordoned: by a person, by a repair, or by an update.",
            limits=Limits(warn=1),
        ),
    ],
)
GPUS = Section(
    title="GPUs",
    needs="gpu",
    panels=[
        number(
            "Missing GPUs",
            f"sum(clamp_min({of('ultracluster_gpu_count_expected')} - {of('ultracluster_gpu_count')}, 0)) or vector(0)",
            "GPUs that the instance types have and the nodes do not see: a GPU fell off the bus (XID 79), or the driver is not loaded.",
            limits=ANY,
        ),
        number(
            "XIDs",
            f"count(time() - {of('ultracluster_xid_last_timestamp_seconds')} < $__range_s) or vector(0)",
            "GPUs and codes with an XID error in the kernel's log in the time that is shown.",
            limits=Limits(warn=1),
            decimals=0,
        ),
        number(
            "Uncorrectable ECC errors",
            f"sum({of('DCGM_FI_DEV_ECC_DBE_VOL_TOTAL')}) or vector(0)",
            "Double-bit errors since the driver was loaded. The program that met one was ended.",
            limits=ANY,
        ),
        number(
            "Failed row remaps",
            f"sum({of('DCGM_FI_DEV_ROW_REMAP_FAILURE')}) or vector(0)",
            "GPUs that have no spare rows left: they are to be replaced.",
            limits=ANY,
        ),
        number(
            "Hottest GPU",
            f"max({of('DCGM_FI_DEV_GPU_TEMP')})",
            "The GPU slows itself down above its own limit, mostly between 85 and 90 °C.",
            unit="celsius",
            limits=Limits(warn=80, bad=87),
        ),
        number(
            "Slowest clock under load",
            f"min({of('DCGM_FI_DEV_SM_CLOCK')} and on (cluster, node, gpu) {of('DCGM_FI_DEV_GPU_UTIL')} > 50)",
            "The lowest SM clock of any busy GPU: one slow GPU slows a whole job.",
            unit="rotmhz",
        ),
        table(
            "Every GPU",
            ["node", "gpu"],
            [
                Column(
                    name="°C",
                    expression=f"max by (node, gpu) ({of('DCGM_FI_DEV_GPU_TEMP')})",
                    limits=Limits(warn=80, bad=87),
                ),
                Column(
                    name="memory °C",
                    expression=f"max by (node, gpu) ({of('DCGM_FI_DEV_MEMORY_TEMP')})",
                    limits=Limits(warn=90, bad=95),
                ),
                Column(
                    name="power",
                    expression=f"max by (node, gpu) ({of('DCGM_FI_DEV_POWER_USAGE')})",
                    unit="watt",
                    decimals=0,
                ),
                Column(
                    name="SM clock",
                    expression=f"max by (node, gpu) ({of('DCGM_FI_DEV_SM_CLOCK')})",
                    unit="rotmhz",
                ),
                Column(
                    name="last XID",
                    expression=f"max by (node, gpu) ({of('DCGM_FI_DEV_XID_ERRORS')})",
                    limits=ANY,
                ),
                Column(
                    name="uncorrectable ECC",
                    expression=f"max by (node, gpu) ({of('DCGM_FI_DEV_ECC_DBE_VOL_TOTAL')})",
                    limits=ANY,
                ),
                Column(
                    name="remap waits for a reset",
                    expression=f"max by (node, gpu) ({of('DCGM_FI_DEV_ROW_REMAP_PENDING')})",
                    limits=Limits(warn=1),
                ),
                Column(
                    name="remap failed",
                    expression=f"max by (node, gpu) ({of('DCGM_FI_DEV_ROW_REMAP_FAILURE')})",
                    limits=ANY,
                ),
            ],
            "One line for each GPU. Sort by a column to find the odd one; a node's name leads to its boards.",
            height=12,
        ),
        graph(
            "Temperature, hottest GPU of each node",
            [(f"max by (node) ({of('DCGM_FI_DEV_GPU_TEMP')})", "{{node}}")],
            "A node that is hotter than its neighbours under the same load has a cooling problem.",
            unit="celsius",
            limits=Limits(warn=80, bad=87),
            floor=None,
        ),
        graph(
            "Memory temperature, hottest GPU of each node",
            [(f"max by (node) ({of('DCGM_FI_DEV_MEMORY_TEMP')})", "{{node}}")],
            "Temperature of the GPU's own memory.",
            unit="celsius",
            limits=Limits(warn=90, bad=95),
            floor=None,
        ),
        graph(
            "Power of each node's GPUs",
            [(f"sum by (node) ({of('DCGM_FI_DEV_POWER_USAGE')})", "{{node}}")],
            "A node far below the others of its job waits for something; one at its cap is throttled.",
            unit="watt",
        ),
        graph(
            "SM clock, slowest GPU of each node",
            [(f"min by (node) ({of('DCGM_FI_DEV_SM_CLOCK')})", "{{node}}")],
            "Idle GPUs clock down; under load all nodes should be alike.",
            unit="rotmhz",
            lowest=True,
        ),
        graph(
            "GPUs slowed by heat, power brake or hardware",
            [
                (slowed(64), "{{node}} heat (hardware)"),
                (slowed(32), "{{node}} heat (software)"),
                (slowed(128), "{{node}} power brake"),
            ],
            "How many GPUs of a node run slower because they must. Caused by cooling or power supply, not by the program.",
            limits=ANY,
        ),
        graph(
            "Share of time throttled",
            [
                (f"max by (node) ({rate('DCGM_FI_DEV_POWER_VIOLATION')}) / 1e9", "{{node}} power"),
                (f"max by (node) ({rate('DCGM_FI_DEV_THERMAL_VIOLATION')}) / 1e9", "{{node}} heat"),
            ],
            "Of each second, how long the most throttled GPU of a node was held back by its power cap (normal for "
            "dense training, up to a point) or by heat (never normal).",
            unit="percentunit",
            ceiling=1,
        ),
    ],
)
GPU_ERRORS = Section(
    title="GPU errors",
    needs="gpu",
    panels=[
        table(
            "XIDs since each node's boot",
            ["node", "gpu", "xid"],
            [
                Column(
                    name="count", expression=f"max by (node, gpu, xid) ({of('ultracluster_xid_total')}) > 0"
                )
            ],
            "XIDs of the kernel's log. docs/faults.md says what each means and what is done about it.",
            width=12,
        ),
        graph(
            "Corrected memory errors per second",
            [(f"sum by (node) ({rate('DCGM_FI_DEV_ECC_SBE_VOL_TOTAL')})", "{{node}}")],
            "Single-bit errors are corrected and harm nothing; a rate that grows announces worse.",
        ),
        graph(
            "Remapped rows",
            [
                (
                    f"sum by (node) ({of('DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS')}) > 0",
                    "{{node}} after an uncorrectable error",
                ),
                (
                    f"sum by (node) ({of('DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS')}) > 0",
                    "{{node}} after corrected errors",
                ),
            ],
            "Rows of GPU memory that were replaced by spare ones. Takes effect with a reset of the GPU.",
        ),
        graph(
            "NVLink errors per second",
            [
                (f"sum by (node) ({rate('DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL')})", "{{node}} CRC"),
                (f"sum by (node) ({rate('DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL')})", "{{node}} replay"),
                (
                    f"sum by (node) ({rate('DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL')})",
                    "{{node}} recovery",
                ),
            ],
            "Replays cost time; recoveries announce a link that is about to fail (XID 74).",
            limits=Limits(warn=1),
        ),
        graph(
            "PCIe replays per second",
            [(f"sum by (node) ({rate('DCGM_FI_DEV_PCIE_REPLAY_COUNTER')})", "{{node}}")],
            "Packets that had to be sent again between processor and GPU.",
            limits=Limits(warn=1),
        ),
    ],
)
NEURON = Section(
    title="Trainium",
    needs="neuron",
    panels=[
        number(
            "Missing devices",
            f"sum(clamp_min({of('ultracluster_neuron_devices_expected')} - {of('ultracluster_neuron_devices')}, 0)) or vector(0)",
            "Neuron devices that the instance types have and the nodes do not see.",
            limits=ANY,
        ),
        graph(
            "Memory errors of devices",
            [(f"sum by (node, event_type) ({of('hardware_ecc_events_total')})", "{{node}} {{event_type}}")],
            "ECC events of memory and SRAM, corrected and uncorrected, since the driver was loaded.",
        ),
        graph(
            "Failed executions per second",
            [(f"sum by (node, error_type) ({rate('execution_errors_total')})", "{{node}} {{error_type}}")],
            "Executions of the Neuron runtime that ended with an error, by its kind.",
            limits=Limits(warn=1),
        ),
        graph(
            "NeuronCore use",
            [(f"avg by (node) ({of('neuroncore_utilization_ratio')})", "{{node}}")],
            "How busy the cores of each node are.",
            unit="percentunit",
            ceiling=1,
        ),
    ],
)
HOSTS = Section(
    title="Hosts",
    needs="all",
    panels=[
        graph(
            "Free memory",
            [(f"{of('node_memory_MemAvailable_bytes')} / {of('node_memory_MemTotal_bytes')}", "{{node}}")],
            "What programs may still take. Data loaders that grow without end show here before the kernel kills them.",
            unit="percentunit",
            limits=Limits(warn=0.1, bad=0.03, low=True),
            ceiling=1,
            width=8,
        ),
        graph(
            "Free space of the root volume",
            [
                (
                    f"{FREE} / {SIZE}",
                    "{{node}}",
                )
            ],
            "A full root volume stops logs, containers and the scheduler's daemon.",
            unit="percentunit",
            limits=Limits(warn=0.15, bad=0.05, low=True),
            ceiling=1,
            width=8,
        ),
        graph(
            "Processors in use",
            [
                (
                    f"1 - sum by (node) ({IDLE}) / sum by (node) ({of('ultracluster_node_cpus')})",
                    "{{node}}",
                )
            ],
            "Data loaders need processors, too: near 100 % they hold the accelerators up.",
            unit="percentunit",
            ceiling=1,
            width=8,
        ),
        graph(
            "Clock's distance from the right time",
            [(f"abs({of('node_timex_offset_seconds')})", "{{node}}")],
            "Clocks that differ make requests to AWS fail, and logs of nodes hard to put side by side.",
            unit="s",
            limits=Limits(warn=0.1, bad=1),
            width=12,
        ),
        graph(
            "Collectors that failed",
            [(f"{of('ultracluster_collector_up')} == 0", "{{node}} {{collector}}")],
            "What a collector does not see is missing on the other boards, too. Empty is right.",
            width=12,
        ),
    ],
)
BOARD = Board(
    name="health",
    title="Cluster health",
    description="Which node is sick. Red first: from the top down, checks, GPUs, their errors, hosts.",
    sections=[NOW, CHECKS, SLURM, KUBERNETES, GPUS, GPU_ERRORS, NEURON, SOFTWARE, HOSTS],
)
