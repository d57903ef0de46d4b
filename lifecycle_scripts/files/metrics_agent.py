"""configuration.py [--refresh]: writes the agent's configuration, and for the collectors what this node is.

What cluster.json tells is in told.json beside this file. The rest is looked at here, at each start of the
agent and each minute after it (--refresh): the node's name in Slurm, its instance and rack, and whether it is
the node that asks slurmctld. The agent reads its configuration again only when it has changed.

The configuration is JSON, which is YAML, too. Everything is bounded: series by `sample_limit`, memory by the
unit, disk by time and, where the agent does not start, by giving up what was not sent.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(os.environ.get("ULTRACLUSTER_ROOT") or "/")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import metrics_place  # noqa: E402

METRICS = ROOT / "opt/ultracluster/metrics"
RUN = Path(os.environ.get("RUNTIME_DIRECTORY") or ROOT / "run/ultracluster/agent")
"""Root's, who writes there: in a folder of the agent's user a link of his would lead root astray."""
LOG = Path(os.environ.get("STATE_DIRECTORY") or ROOT / "var/lib/ultracluster-agent")
CONFIGURATION = RUN / "prometheus.yml"

NODE_EXPORTER = ROOT / "opt/ultracluster/node-exporter/node_exporter"
DCGM_EXPORTER_UNIT = ROOT / "etc/systemd/system/ultracluster-dcgm-exporter.service"
PORTS = {"node": 9100, "dcgm": 9400, "agent": 9095}
PLACE = ("node", "node_group", "instance_type", "instance_id", "rack")
"""Labels of every series of this node, beside `cluster`."""
SLURM_PATHS = ("jobs", "nodes", "partitions", "scheduler")
SLURM_SERIES = 50_000
"""Of slurmctld, which tells of every node and partition: 1,000 nodes have some 20,000."""
AGENT_SERIES = 2_000
"""Of the agent itself, before all but a handful is dropped."""
STARTS = 5
START_SECONDS = 900
"""An agent that starts more than STARTS times in so many seconds cannot read its own log."""
LOG_BYTES = 1 << 30


def read(path, otherwise):
    """A document; `otherwise` where it is missing or damaged."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return otherwise
    return document if isinstance(document, type(otherwise)) else otherwise


def write(path, text):
    """Whether it is another text than before; written at once, or not at all."""
    try:
        if path.read_text(encoding="utf-8") == text:
            return False
    except OSError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o644)
    new.replace(path)
    return True


# --- what this node is ---


def facts(told):
    """What is told, with what only the node knows. What is not known is left out."""
    found = {key: value for key, value in told.items() if value is not None}
    return {**found, **metrics_place.here(ROOT, RUN, told)}


# --- the configuration ---


def labels(settings):
    """On every series; a value that is not known is no label."""
    known = dict(settings.get("labels") or {})
    for name in PLACE:
        if settings.get(name):
            known.setdefault(name, settings[name])
    return {name: str(value) for name, value in sorted(known.items())}


def scrape(job, target, settings, keep, *, limit, path="/metrics"):
    """One exporter: no more than `limit` samples of it, and only metrics of the catalogue."""
    part = path[len("/metrics") :]  # "/jobs" of slurmctld, which has several
    config = {
        "job_name": f"{job}{part.replace('/', '-')}",
        "metrics_path": path,
        "sample_limit": limit,
        "static_configs": [
            {"targets": [target], "labels": {"job": job, "instance": settings["node"] + part}}
        ],
        # any user of the node can listen on an exporter's port while the exporter is away: this account is
        # let to the instance metadata, and must not be sent there
        "follow_redirects": False,
        # nor may it say when its samples were taken: for one wrong time the workspace refuses a whole request
        "honor_timestamps": False,
        "label_limit": 64,
        "label_value_length_limit": 512,
        "body_size_limit": "64MB",
        "metric_relabel_configs": [{"action": "labeldrop", "regex": _dropped(job)}],
    }
    if job in keep:
        names = "|".join(re.escape(name) for name in keep[job])
        config["metric_relabel_configs"].insert(
            0, {"action": "keep", "source_labels": ["__name__"], "regex": names or "none"}
        )
    return config


def _dropped(job):
    """Labels that an exporter does not give.

    dcgm-exporter's is Hostname or hostname, by version. What says where a series is from is added when it is
    sent, and only where it is not there yet: an exporter must not say that it is another node.
    """
    own = "" if job == "slurm" else f"|{'|'.join(('cluster', *PLACE))}"
    return f"[Hh]ostname{own}"


def configuration(settings, keep):
    """The agent's configuration as a document."""
    every = int(settings.get("scrape_seconds") or 30)
    limit = int(settings.get("max_series_per_node") or 10_000)
    scrapes = []
    # one that the node could not get is told of by its report, and not by a scrape that fails for ever
    if NODE_EXPORTER.exists():
        scrapes.append(scrape("node", f"127.0.0.1:{PORTS['node']}", settings, keep, limit=limit))
    if DCGM_EXPORTER_UNIT.exists():
        scrapes.append(scrape("dcgm", f"127.0.0.1:{PORTS['dcgm']}", settings, keep, limit=limit))
    scrapes.append(scrape("agent", f"127.0.0.1:{PORTS['agent']}", settings, keep, limit=AGENT_SERIES))
    if settings.get("slurm") and settings.get("slurmctld"):
        for name in SLURM_PATHS:
            scrapes.append(
                scrape(
                    "slurm",
                    settings["slurmctld"],
                    settings,
                    keep,
                    limit=SLURM_SERIES,
                    path=f"/metrics/{name}",
                )
            )
    return {
        "global": {
            "scrape_interval": f"{every}s",
            "scrape_timeout": f"{min(every, 10)}s",
            "external_labels": labels(settings),
        },
        "scrape_configs": scrapes,
        "remote_write": [remote_write(settings)],
    }


def remote_write(settings):
    """Where samples go. A workspace that is away, or asks for less (429), is asked again."""
    signed = {"region": settings["region"]}
    if settings.get("role_arn"):
        signed["role_arn"] = settings["role_arn"]
    return {
        "name": "workspace",
        "url": settings["remote_write_url"],
        "remote_timeout": "30s",
        "sigv4": signed,
        "queue_config": {
            "capacity": 4000,
            "min_shards": 1,
            # one is enough for a node; four catch up after an hour away
            "max_shards": 4,
            "max_samples_per_send": 1000,
            "batch_send_deadline": "10s",
            "min_backoff": "1s",
            "max_backoff": "1m",
            "retry_on_http_429": True,
        },
        "metadata_config": {"send": True, "send_interval": "10m"},
    }


# --- a log that cannot be read ---


def look_at_log(now):
    """Give up what was not sent, where it lets the agent not start, or grows without end."""
    starts = [
        at
        for at in read(RUN / "starts.json", [])
        if isinstance(at, (int, float)) and 0 <= now - at < START_SECONDS
    ]
    size = sum(file.stat().st_size for file in LOG.rglob("*") if file.is_file()) if LOG.exists() else 0
    if len(starts) >= STARTS or size > LOG_BYTES:
        why = f"{len(starts)} starts in {START_SECONDS} s" if len(starts) >= STARTS else f"{size} bytes"
        print(f"what was not sent yet is given up: {why}", file=sys.stderr)
        shutil.rmtree(LOG / "wal", ignore_errors=True)
        starts = []
    write(RUN / "starts.json", json.dumps([*starts, now]))


def main(arguments):
    """Exit status 0; the agent without a configuration does not start, and says so."""
    os.umask(0o022)  # the unit's own is for what the agent writes; this is for the agent to read
    told = read(HERE / "told.json", {})
    if not told.get("remote_write_url") or not told.get("region"):
        print("told.json does not tell where metrics go", file=sys.stderr)
        return 1
    settings = facts(told)
    write(METRICS / "settings.json", json.dumps(settings, indent=1, sort_keys=True) + "\n")
    text = json.dumps(configuration(settings, read(METRICS / "keep.json", {})), indent=1) + "\n"
    changed = write(CONFIGURATION, text)
    if "--refresh" in arguments:
        if changed:
            command = ["systemctl", "reload", "ultracluster-agent.service"]
            subprocess.run(command, check=False)
    else:
        look_at_log(time.time())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
