"""Fabric: EFA device by device, NVLink, and the network beside them."""

from __future__ import annotations

from tools.dashboards.board import Board, Section
from tools.dashboards.panels import Limits, bars, graph, number
from tools.dashboards.queries import of, rate
from tools.dashboards.tables import Column, table

OUT = f"sum by (node) ({rate('node_amazonefa_tx_bytes')} + {rate('node_amazonefa_rdma_write_bytes')})"
IN = f"sum by (node) ({rate('node_amazonefa_rx_bytes')} + {rate('node_amazonefa_rdma_write_recv_bytes')})"
BY_DEVICE = (
    f"sum by (node, device) ({rate('node_amazonefa_tx_bytes')} + {rate('node_amazonefa_rdma_write_bytes')})"
)
LIMIT = Limits(bad=1)
OUTSIDE = 'device!~"lo|docker.*|veth.*|cni.*|eni.*"'

EFA = Section(
    title="EFA",
    needs="efa",
    panels=[
        number(
            "Missing EFA devices",
            f"sum(clamp_min({of('ultracluster_efa_devices_expected')} - {of('ultracluster_efa_devices')}, 0)) or vector(0)",
            "Devices that the instance types have and the nodes do not see. NCCL then uses fewer, and the job is slower.",
            limits=LIMIT,
        ),
        number(
            "Peers that do not answer",
            f"sum(increase({of('node_amazonefa_unresponsive_remote_events')}[$__range])) or vector(0)",
            "Times that a peer did not answer in the time that is shown. One node in many pairs is the sick one.",
            limits=LIMIT,
            decimals=0,
        ),
        number(
            "Impaired connections",
            f"sum(increase({of('node_amazonefa_impaired_remote_conn_events')}[$__range])) or vector(0)",
            "Connections that the device found impaired in the time that is shown.",
            limits=Limits(warn=1),
            decimals=0,
        ),
        number(
            "Retransmission timeouts",
            f"sum(increase({of('node_amazonefa_retrans_timeout_events')}[$__range])) or vector(0)",
            "Packets that had to be sent again because no answer came in time.",
            limits=Limits(warn=100, bad=10000),
            decimals=0,
        ),
        number("Sent", f"sum({OUT})", "Over all devices of the chosen nodes.", unit="Bps"),
        number(
            "Failed RDMA operations",
            f"sum(increase({of('node_amazonefa_rdma_read_wr_err')}[$__range]) "
            f"+ increase({of('node_amazonefa_rdma_write_wr_err')}[$__range])) or vector(0)",
            "RDMA reads and writes that ended with an error in the time that is shown.",
            limits=LIMIT,
            decimals=0,
        ),
        graph(
            "Sent by each node", [(OUT, "{{node}}")], "Sends and RDMA writes, over all devices.", unit="Bps"
        ),
        graph("Received by each node", [(IN, "{{node}}")], "Receives and writes of peers.", unit="Bps"),
        graph(
            "Sent by each device",
            [(BY_DEVICE, "{{node}} {{device}}")],
            "Choose one node to read this.",
            unit="Bps",
        ),
        graph(
            "Imbalance within a node",
            [
                (
                    f"max by (node) ({BY_DEVICE}) / (avg by (node) ({BY_DEVICE}) > 1e6)",
                    "{{node}}",
                )
            ],
            "The busiest device to the average of its node, where there is traffic. Near 1 is right; 2 and more: devices stand idle.",
            limits=Limits(warn=1.5, bad=2),
            floor=1,
        ),
        graph(
            "Share of bytes sent again",
            [
                (
                    f"sum by (node) ({rate('node_amazonefa_retrans_bytes')}) / (sum by (node) ({rate('node_amazonefa_tx_bytes')}) > 1e6)",
                    "{{node}}",
                )
            ],
            "Where there is traffic. Compare nodes: one that stands out has a bad device or path.",
            unit="percentunit",
            limits=Limits(warn=0.01, bad=0.05),
        ),
        graph(
            "Timeouts, unresponsive peers, impaired connections",
            [
                (f"sum by (node) ({rate('node_amazonefa_retrans_timeout_events')}) > 0", "{{node}} timeout"),
                (
                    f"sum by (node) ({rate('node_amazonefa_unresponsive_remote_events')}) > 0",
                    "{{node}} unresponsive peer",
                ),
                (
                    f"sum by (node) ({rate('node_amazonefa_impaired_remote_conn_events')}) > 0",
                    "{{node}} impaired",
                ),
            ],
            "Events per second. Many nodes at the same time: the network or one dead peer; one node: that node.",
        ),
        graph(
            "Received packets that were dropped",
            [(f"sum by (node, device) ({rate('node_amazonefa_rx_drops')}) > 0", "{{node}} {{device}}")],
            "Packets for which the receiver had no room: its program does not fetch them fast enough.",
            unit="pps",
            limits=Limits(warn=1),
        ),
        table(
            "Every device",
            ["node", "device", "port"],
            [
                Column(name="sent", expression=rate("node_amazonefa_tx_bytes"), unit="Bps"),
                Column(name="received", expression=rate("node_amazonefa_rx_bytes"), unit="Bps"),
                Column(
                    name="sent again, packets", expression=rate("node_amazonefa_retrans_pkts"), unit="pps"
                ),
                Column(
                    name="unresponsive peers",
                    expression=f"increase({of('node_amazonefa_unresponsive_remote_events')}[$__range])",
                    limits=LIMIT,
                    decimals=0,
                ),
            ],
            "One line for each device and port.",
            width=12,
        ),
    ],
)
NVLINK = Section(
    title="NVLink",
    needs="gpu",
    panels=[
        graph(
            "Throughput of each node",
            [
                (f"sum by (node) ({of('DCGM_FI_PROF_NVLINK_TX_BYTES')})", "{{node}} out"),
                (f"sum by (node) ({of('DCGM_FI_PROF_NVLINK_RX_BYTES')})", "{{node}} in"),
            ],
            "Between the GPUs of a node, over all links.",
            unit="Bps",
        ),
        bars(
            "Errors since the driver was loaded",
            f"sort_desc(sum by (node, gpu) ({of('DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL')} "
            f"+ {of('DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL')} "
            f"+ {of('DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL')}) > 0)",
            "{{node}} GPU {{gpu}}",
            "CRC errors, replays and recoveries. A GPU alone with errors has a bad link; a whole node, a bad switch.",
            limits=Limits(warn=1, bad=1000),
        ),
        graph(
            "PCIe throughput of each node",
            [
                (f"sum by (node) ({of('DCGM_FI_PROF_PCIE_TX_BYTES')})", "{{node}} to the host"),
                (f"sum by (node) ({of('DCGM_FI_PROF_PCIE_RX_BYTES')})", "{{node}} from the host"),
            ],
            "Between GPUs and everything else: GPUDirect traffic to EFA, and copies from host memory.",
            unit="Bps",
        ),
    ],
)
HOST = Section(
    title="Network beside the fabric",
    needs="all",
    panels=[
        graph(
            "Sent",
            [(f"sum by (node) ({rate('node_network_transmit_bytes_total', OUTSIDE)})", "{{node}}")],
            "TCP: logs, S3, and NCCL where it fell back from EFA. A training job that shows up here does not use EFA.",
            unit="Bps",
        ),
        graph(
            "Received",
            [(f"sum by (node) ({rate('node_network_receive_bytes_total', OUTSIDE)})", "{{node}}")],
            "The same, the other way.",
            unit="Bps",
        ),
    ],
)
BOARD = Board(
    name="fabric",
    title="Fabric",
    description="EFA device by device, NVLink and PCIe, and the network beside them: is the fabric slow, and whose fault is it?",
    sections=[EFA, NVLINK, HOST],
)
