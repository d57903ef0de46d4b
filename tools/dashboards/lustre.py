"""Lustre as its clients see it, and FSx and its data repository associations as AWS sees them."""

from __future__ import annotations

from tools.dashboards.board import Board, Section
from tools.dashboards.panels import Limits, fsx, graph, number
from tools.dashboards.queries import of, rate
from tools.dashboards.tables import Column, table

STALLED = Limits(bad=1)
CLIENTS = Section(
    title="Clients",
    needs="lustre",
    panels=[
        number(
            "Nodes whose file system hangs",
            f"sum({of('ultracluster_lustre_stalled')}) or vector(0)",
            "Nodes where a look at the file system did not come back in time. Jobs hang there, too.",
            limits=STALLED,
        ),
        number(
            "Slowest answer",
            f"max({of('ultracluster_lustre_probe_seconds')})",
            "How long a look at the file system takes, on the slowest node.",
            unit="s",
            limits=Limits(warn=0.5, bad=5),
        ),
        number(
            "Evictions",
            f"sum(increase({of('ultracluster_lustre_evictions_total')}[$__range])) or vector(0)",
            "Clients that a server threw out in the time that is shown: what they had not written yet is lost.",
            limits=STALLED,
            decimals=0,
        ),
        number(
            "Free space",
            f"min({of('ultracluster_lustre_free_bytes')} / {of('ultracluster_lustre_size_bytes')})",
            "Of the fullest file system.",
            unit="percentunit",
            limits=Limits(warn=0.15, bad=0.05, low=True),
        ),
        number(
            "Reads",
            f"sum({rate('ultracluster_lustre_read_bytes_total')})",
            "Of all chosen nodes.",
            unit="Bps",
        ),
        number(
            "Writes",
            f"sum({rate('ultracluster_lustre_write_bytes_total')})",
            "Of all chosen nodes.",
            unit="Bps",
        ),
        graph(
            "Reads of each node",
            [(f"sum by (node, fs) ({rate('ultracluster_lustre_read_bytes_total')})", "{{node}} {{fs}}")],
            "Nodes of one job read alike; one that reads less waits, or reads from its cache.",
            unit="Bps",
        ),
        graph(
            "Writes of each node",
            [(f"sum by (node, fs) ({rate('ultracluster_lustre_write_bytes_total')})", "{{node}} {{fs}}")],
            "Checkpoints show as peaks.",
            unit="Bps",
        ),
        graph(
            "Operations of each node",
            [
                (f"sum by (node) ({rate('ultracluster_lustre_read_operations_total')})", "{{node}} reads"),
                (f"sum by (node) ({rate('ultracluster_lustre_write_operations_total')})", "{{node}} writes"),
            ],
            "Many operations with few bytes: small files, which Lustre is slow at.",
            unit="ops",
        ),
        graph(
            "Time of an answer",
            [(f"max by (node, fs) ({of('ultracluster_lustre_probe_seconds')})", "{{node}} {{fs}}")],
            "One slow node: that node or its network. All slow: the servers, see below.",
            unit="s",
            limits=Limits(warn=0.5, bad=5),
        ),
        graph(
            "Reconnections",
            [
                (
                    f"sum by (node, fs) (increase({of('ultracluster_lustre_reconnects_total')}[$__rate_interval])) > 0",
                    "{{node}} {{fs}}",
                )
            ],
            "A client that loses its servers and finds them again.",
            limits=Limits(warn=1),
        ),
        graph(
            "Servers that are not connected",
            [
                (
                    f"max by (node, fs) ({of('ultracluster_lustre_targets_not_connected')}) > 0",
                    "{{node}} {{fs}}",
                )
            ],
            "Storage targets that a client has lost. All clients lost the same: a server fails over. One client: that node.",
            limits=Limits(bad=1),
        ),
        graph(
            "Mean time of a metadata operation",
            [
                (
                    f"sum by (node, fs) ({rate('ultracluster_lustre_metadata_seconds_total')}) / (sum by (node, fs) ({rate('ultracluster_lustre_metadata_operations_total')}) > 0)",
                    "{{node}} {{fs}}",
                )
            ],
            "open, close, stat, mkdir and the like, as jobs on the node meet it; what the client's cache answers is in it. All nodes high: small files, or the metadata server. Empty where the client does not time them.",
            unit="s",
        ),
        table(
            "Every client",
            ["node", "fs"],
            [
                Column(
                    name="hangs",
                    expression=f"max by (node, fs) ({of('ultracluster_lustre_stalled')})",
                    words={"0": ("no", "green"), "1": ("yes", "red")},
                ),
                Column(
                    name="over EFA",
                    expression=f"max by (node, fs) ({of('ultracluster_lustre_efa')})",
                    words={"0": ("no", "orange"), "1": ("yes", "green")},
                ),
                Column(
                    name="answer",
                    expression=f"max by (node, fs) ({of('ultracluster_lustre_probe_seconds')})",
                    unit="s",
                ),
                Column(
                    name="free",
                    expression=f"max by (node, fs) ({of('ultracluster_lustre_free_bytes')})",
                    unit="bytes",
                ),
            ],
            "One line for each node and file system.",
            width=12,
        ),
    ],
)
SERVERS = Section(
    title="FSx for Lustre (CloudWatch)",
    needs="lustre",
    panels=[
        fsx(
            "Free space",
            "FreeDataStorageCapacity",
            "Of all storage targets together.",
            statistic="Sum",
            unit="bytes",
        ),
        fsx(
            "Network of the servers",
            "NetworkThroughputUtilization",
            "The busiest object storage server. At 100 % the file system is the bottleneck: it needs more throughput.",
            statistic="Maximum",
            unit="percent",
            limits=Limits(warn=80, bad=95),
        ),
        fsx(
            "Disks of the servers",
            "FileServerDiskThroughputUtilization",
            "The busiest server's disk throughput, of what was provisioned.",
            statistic="Maximum",
            unit="percent",
            limits=Limits(warn=80, bad=95),
        ),
        fsx(
            "Metadata server's processor",
            "CPUUtilization",
            "High: too many small files, or directories that are listed too often.",
            statistic="Maximum",
            unit="percent",
            limits=Limits(warn=80, bad=95),
        ),
        fsx("Bytes read per minute", "DataReadBytes", "By all clients.", statistic="Sum", unit="bytes"),
        fsx("Bytes written per minute", "DataWriteBytes", "By all clients.", statistic="Sum", unit="bytes"),
    ],
)
REPOSITORIES = Section(
    title="Data repository associations (CloudWatch)",
    needs="lustre",
    panels=[
        fsx(
            "Oldest change that is not imported",
            "AgeOfOldestQueuedMessage",
            "Objects that changed in S3 and are not in the file system yet.",
            statistic="Maximum",
            unit="s",
            dimensions={"Publisher": ["AutoImport"]},
            limits=Limits(warn=900, bad=3600),
        ),
        fsx(
            "Oldest change that is not exported",
            "AgeOfOldestQueuedMessage",
            "Files that were written and are not in S3 yet: what would be lost with the file system.",
            statistic="Maximum",
            unit="s",
            dimensions={"Publisher": ["AutoExport"]},
            limits=Limits(warn=900, bad=3600),
        ),
    ],
)
BOARD = Board(
    name="lustre",
    title="Lustre",
    description="Does the file system hold jobs up? First what its clients see, then its servers and the associations with S3.",
    variables=("node_group", "node", "file_system"),
    sections=[CLIENTS, SERVERS, REPOSITORIES],
)
