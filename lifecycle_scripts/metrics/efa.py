"""EFA as its driver shows it: devices, and what each of their ports has counted. Python 3.9 and newer."""

NAME, SECONDS = "efa", 5
_DEVICES, _PORTS = 64, 4
"""No instance has more."""
_COUNTERS = {
    "tx_bytes": "Bytes sent",
    "rx_bytes": "Bytes received",
    "tx_pkts": "Packets sent",
    "rx_pkts": "Packets received",
    "rx_drops": "Packets received and dropped",
    "rdma_read_bytes": "Bytes of completed RDMA reads",
    "rdma_write_bytes": "Bytes of completed RDMA writes",
    "rdma_write_recv_bytes": "Bytes that others wrote here by RDMA",
    "rdma_read_wr_err": "RDMA reads that failed",
    "rdma_write_wr_err": "RDMA writes that failed",
    # from Nitro v4 on
    "retrans_bytes": "Bytes sent again",
    "retrans_pkts": "Packets sent again",
    "retrans_timeout_events": "Packets sent again after a time-out, which moved to another path",
    "unresponsive_remote_events": "Peers that stopped to answer",
    "impaired_remote_conn_events": "Connections put under a limit because of errors",
}
METRICS = {
    **{f"node_amazonefa_{name}": ("counter", said) for name, said in _COUNTERS.items()},
    "ultracluster_efa_devices": ("gauge", "Devices that the efa driver serves"),
    "ultracluster_efa_devices_expected": ("gauge", "Devices that this node should have"),
}


def collect(host):
    devices = [name for name in host.names("sys/class/infiniband", _DEVICES) if _is_efa(host, name)]
    expected = host.count("efa_interfaces")
    # A node without EFA has nothing to say, one that has lost it has 0.
    if devices or expected:
        yield "ultracluster_efa_devices", {}, len(devices)
        if expected is not None:
            yield "ultracluster_efa_devices_expected", {}, expected
    for device in devices:
        for port in host.names(f"sys/class/infiniband/{device}/ports", _PORTS):
            folder = f"sys/class/infiniband/{device}/ports/{port}/hw_counters"
            for name in _COUNTERS:
                value = host.number(f"{folder}/{name}")
                if value is not None:
                    yield f"node_amazonefa_{name}", {"device": device, "port": port}, value


def _is_efa(host, device):
    """An entry alone proves nothing: on HGX B200 two of ten are not EFA."""
    try:
        return host.path(f"sys/class/infiniband/{device}/device/driver").readlink().name == "efa"
    except OSError:
        return False
