"""Job: how fast it steps, and which of its nodes holds the others up."""

from __future__ import annotations

from tools.dashboards.board import Board, Section
from tools.dashboards.panels import Limits, bars, graph, number
from tools.dashboards.queries import CLUSTER, JOB, of, of_job, rate


def own(metric: str) -> str:
    """A metric that the chosen job reports itself."""
    return of(metric, where=JOB)


def in_cluster(metric: str, *more: str) -> str:
    return of(metric, *more, where=CLUSTER)


def rate_in_cluster(metric: str) -> str:
    return rate(metric, where=CLUSTER)


SLOWEST = f"max by (cluster, node) ({own('ultracluster_training_compute_seconds')})"
TRAINING = Section(
    title="Steps",
    needs="all",
    panels=[
        number(
            "Step time",
            f"max({own('ultracluster_training_step_seconds')})",
            "Time of one step, of the slowest rank.",
            unit="s",
        ),
        number(
            "Tokens per second",
            f"max({own('ultracluster_training_tokens_per_second')})",
            "Of the whole job, as it reports it.",
        ),
        number(
            "Model FLOPs utilisation",
            f"max({own('ultracluster_training_mfu_ratio')})",
            "Share of the accelerators' peak that goes into the model, as the job works it out.",
            unit="percentunit",
            limits=Limits(bad=0.15, warn=0.3, low=True),
        ),
        number(
            "Loss",
            f"min({own('ultracluster_training_loss')})",
            "The last loss that rank 0 reported.",
            decimals=3,
        ),
        number(
            "Step", f"max({own('ultracluster_training_step')})", "The last step that was done.", decimals=0
        ),
        number(
            "Waiting share",
            f"avg({own('ultracluster_training_wait_seconds')}) / avg({own('ultracluster_training_step_seconds')})",
            "How much of a step the average rank waits for the others or for data.",
            unit="percentunit",
            limits=Limits(warn=0.2, bad=0.4),
        ),
        graph(
            "Step time",
            [
                (f"max({own('ultracluster_training_step_seconds')})", "slowest rank"),
                (f"quantile(0.5, {own('ultracluster_training_step_seconds')})", "median"),
            ],
            "A step that grows: look at stragglers below, then at the fabric, then at Lustre.",
            unit="s",
        ),
        graph(
            "Tokens per second and utilisation",
            [(f"max({own('ultracluster_training_tokens_per_second')})", "tokens/s")],
            "Throughput of the whole job.",
        ),
        graph(
            "Loss",
            [(f"min({own('ultracluster_training_loss')})", "loss")],
            "As rank 0 reports it.",
            floor=None,
        ),
        graph(
            "Checkpoints",
            [(f"max({own('ultracluster_training_checkpoint_seconds')})", "last checkpoint")],
            "How long the last checkpoint held up training.",
            unit="s",
        ),
    ],
)
STRAGGLERS = Section(
    title="Stragglers",
    needs="all",
    panels=[
        bars(
            "Compute time of each node to the job's median",
            f"sort_desc({SLOWEST} / on (cluster) group_left () quantile by (cluster) (0.5, {SLOWEST}))",
            "{{node}}",
            "Its own work alone, without waiting. 1 is the median; a node at 1.1 makes every step of the job 10 % longer.",
            limits=Limits(warn=1.05, bad=1.15),
        ),
        graph(
            "Compute time of each node to the job's median",
            [(f"{SLOWEST} / on (cluster) group_left () quantile by (cluster) (0.5, {SLOWEST})", "{{node}}")],
            "Whether a straggler has always been one, or became one.",
            limits=Limits(warn=1.05, bad=1.15),
            floor=None,
        ),
        graph(
            "Waiting time of each node",
            [(f"max by (node) ({own('ultracluster_training_wait_seconds')})", "{{node}}")],
            "The node that waits least is the one that the others wait for.",
            unit="s",
            lowest=True,
        ),
    ],
)
GPUS = Section(
    title="GPUs of the job",
    needs="gpu",
    panels=[
        graph(
            "SM activity",
            [(of_job(f"avg by (cluster, node) ({in_cluster('DCGM_FI_PROF_SM_ACTIVE')})"), "{{node}}")],
            "Share of time in which the multiprocessors work. High with slow steps: the program; low: it waits.",
            unit="percentunit",
            ceiling=1,
            lowest=True,
        ),
        graph(
            "Tensor core activity",
            [
                (
                    of_job(f"avg by (cluster, node) ({in_cluster('DCGM_FI_PROF_PIPE_TENSOR_ACTIVE')})"),
                    "{{node}}",
                )
            ],
            "Share of time in which matrices are multiplied: what training pays for.",
            unit="percentunit",
            ceiling=1,
            lowest=True,
        ),
        graph(
            "NVLink throughput",
            [
                (
                    of_job(f"sum by (cluster, node) ({in_cluster('DCGM_FI_PROF_NVLINK_TX_BYTES')})"),
                    "{{node}} out",
                ),
                (
                    of_job(f"sum by (cluster, node) ({in_cluster('DCGM_FI_PROF_NVLINK_RX_BYTES')})"),
                    "{{node}} in",
                ),
            ],
            "Between the GPUs of a node.",
            unit="Bps",
        ),
        graph(
            "Power to the job's median",
            [
                (
                    of_job(f"sum by (cluster, node) ({in_cluster('DCGM_FI_DEV_POWER_USAGE')})")
                    + " / on (cluster) group_left () quantile by (cluster) (0.5, "
                    + of_job(f"sum by (cluster, node) ({in_cluster('DCGM_FI_DEV_POWER_USAGE')})")
                    + ")",
                    "{{node}}",
                )
            ],
            "A node that draws less than the others of its job works less: another way to see a straggler.",
            floor=None,
            lowest=True,
        ),
        graph(
            "SM clock, slowest GPU of each node",
            [(of_job(f"min by (cluster, node) ({in_cluster('DCGM_FI_DEV_SM_CLOCK')})"), "{{node}}")],
            "A GPU that is throttled clocks lower than the others.",
            unit="rotmhz",
            lowest=True,
        ),
        graph(
            "GPU memory in use",
            [(of_job(f"sum by (cluster, node) ({in_cluster('DCGM_FI_DEV_FB_USED')})"), "{{node}}")],
            "A job that runs out of memory later grows here first.",
            unit="mbytes",
        ),
    ],
)
NEURON = Section(
    title="Trainium of the job",
    needs="neuron",
    panels=[
        graph(
            "NeuronCore use",
            [(of_job(f"avg by (cluster, node) ({in_cluster('neuroncore_utilization_ratio')})"), "{{node}}")],
            "How busy the cores of each of its nodes are.",
            unit="percentunit",
            ceiling=1,
        ),
    ],
)
EFA = Section(
    title="EFA of the job's nodes",
    needs="efa",
    panels=[
        graph(
            "Throughput",
            [
                (
                    of_job(
                        f"sum by (cluster, node) ({rate_in_cluster('node_amazonefa_tx_bytes')} "
                        f"+ {rate_in_cluster('node_amazonefa_rdma_write_bytes')})"
                    ),
                    "{{node}} out",
                ),
                (
                    of_job(
                        f"sum by (cluster, node) ({rate_in_cluster('node_amazonefa_rx_bytes')} "
                        f"+ {rate_in_cluster('node_amazonefa_rdma_write_recv_bytes')})"
                    ),
                    "{{node}} in",
                ),
            ],
            "Sends and RDMA writes over all EFA devices of a node.",
            unit="Bps",
        ),
        graph(
            "Packets sent again, and peers that do not answer",
            [
                (
                    of_job(f"sum by (cluster, node) ({rate_in_cluster('node_amazonefa_retrans_pkts')})"),
                    "{{node}} sent again",
                ),
                (
                    of_job(
                        f"sum by (cluster, node) ({rate_in_cluster('node_amazonefa_unresponsive_remote_events')})"
                    ),
                    "{{node}} unresponsive peer",
                ),
            ],
            "Some packets are always sent again; one node with many more than the others has a bad device or path.",
            unit="pps",
        ),
    ],
)
LUSTRE = Section(
    title="Lustre of the job's nodes",
    needs="lustre",
    panels=[
        graph(
            "Reads",
            [
                (
                    of_job(
                        f"sum by (cluster, node) ({rate_in_cluster('ultracluster_lustre_read_bytes_total')})"
                    ),
                    "{{node}}",
                )
            ],
            "What data loaders read.",
            unit="Bps",
        ),
        graph(
            "Writes",
            [
                (
                    of_job(
                        f"sum by (cluster, node) ({rate_in_cluster('ultracluster_lustre_write_bytes_total')})"
                    ),
                    "{{node}}",
                )
            ],
            "Checkpoints show as peaks.",
            unit="Bps",
        ),
    ],
)
FIRST = rate("ultracluster_inference_time_to_first_token_seconds_bucket", where=JOB)
BETWEEN = rate("ultracluster_inference_inter_token_seconds_bucket", where=JOB)
INFERENCE = Section(
    title="Inference",
    needs="all",
    closed=True,
    panels=[
        graph(
            "Time to the first token",
            [
                (f"histogram_quantile(0.5, sum by (model, le) ({FIRST}))", "{{model}} median"),
                (f"histogram_quantile(0.95, sum by (model, le) ({FIRST}))", "{{model}} 95 %"),
            ],
            "How long users wait for an answer to begin.",
            unit="s",
        ),
        graph(
            "Time between tokens",
            [
                (f"histogram_quantile(0.5, sum by (model, le) ({BETWEEN}))", "{{model}} median"),
                (f"histogram_quantile(0.95, sum by (model, le) ({BETWEEN}))", "{{model}} 95 %"),
            ],
            "How fast an answer goes on.",
            unit="s",
        ),
    ],
)
SERVER_FIRST = (
    "sum by (model_name, le) ("
    f"{rate('vllm:time_to_first_token_seconds_bucket', where=CLUSTER)} "
    f"or {rate('sglang:time_to_first_token_seconds_bucket', where=CLUSTER)})"
)
SERVER_BETWEEN = (
    "sum by (model_name, le) ("
    f"{rate('vllm:inter_token_latency_seconds_bucket', where=CLUSTER)} "
    f"or {rate('sglang:inter_token_latency_seconds_bucket', where=CLUSTER)})"
)
SERVERS = Section(
    title="Model servers",
    needs="all",
    closed=True,
    panels=[
        graph(
            "Time to the first token of vLLM and SGLang",
            [
                (f"histogram_quantile(0.5, {SERVER_FIRST})", "{{model_name}} median"),
                (f"histogram_quantile(0.95, {SERVER_FIRST})", "{{model_name}} 95 %"),
            ],
            "How long users wait for an answer to begin. Of all servers of the cluster.",
            unit="s",
        ),
        graph(
            "Time between tokens of vLLM and SGLang",
            [
                (f"histogram_quantile(0.5, {SERVER_BETWEEN})", "{{model_name}} median"),
                (f"histogram_quantile(0.95, {SERVER_BETWEEN})", "{{model_name}} 95 %"),
            ],
            "How fast an answer goes on.",
            unit="s",
        ),
        graph(
            "Requests that wait",
            [
                (f"sum by (model_name) ({in_cluster('vllm:num_requests_waiting')})", "{{model_name}} (vLLM)"),
                (f"sum by (model_name) ({in_cluster('sglang:num_queue_reqs')})", "{{model_name}} (SGLang)"),
            ],
            "More than a few for long: more replicas, or shorter prompts.",
        ),
        graph(
            "Cache of keys and values in use",
            [
                (f"max by (model_name) ({in_cluster('vllm:kv_cache_usage_perc')})", "{{model_name}} (vLLM)"),
                (f"max by (model_name) ({in_cluster('sglang:token_usage')})", "{{model_name}} (SGLang)"),
            ],
            "Of the fullest replica. A full one makes requests wait or start again.",
            unit="percentunit",
            ceiling=1,
        ),
    ],
)
BOARD = Board(
    name="job",
    title="Job",
    description="One job: its steps, its stragglers, and what its nodes do with GPUs, fabric and file system.",
    variables=("job",),
    sections=[TRAINING, STRAGGLERS, GPUS, NEURON, EFA, LUSTRE, INFERENCE, SERVERS],
)
