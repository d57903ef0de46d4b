"""What jobs say of themselves: files that their users write, one for each process, with
`files/ultracluster_metrics.py`.

Nothing of them is believed but numbers and, within bounds, names of models. A file counts for a job where
Slurm runs that job here for the file's owner. Python 3.9 and newer.
"""

import json
import math
import os
import re
import stat

from exposition import Histogram

NAME, SECONDS = "training", 8
FOLDER = "run/ultracluster/training"
_PLAIN = {
    "step": "Step that the rank is at",
    "step_seconds": "Time of a step",
    "compute_seconds": "Of it, computing",
    "wait_seconds": "Of it, waiting for data or for others",
    "tokens_per_second": "Tokens a second of the whole job",
    "mfu_ratio": "Model flops of the most that the accelerators can do",
    "checkpoint_seconds": "How long the last checkpoint took",
}
_HISTOGRAMS = {
    "time_to_first_token_seconds": "Time to the first token",
    "inter_token_seconds": "Time between tokens",
}
METRICS = {
    **{f"ultracluster_training_{name}": ("gauge", said) for name, said in _PLAIN.items()},
    "ultracluster_training_loss": ("gauge", "Loss; absent where it is no finite number"),
    "ultracluster_training_loss_finite": ("gauge", "0 where the loss has become NaN or infinite"),
    "ultracluster_training_written_timestamp_seconds": ("gauge", "When the rank last wrote its figures"),
    "ultracluster_training_useful_seconds_total": ("counter", "Step time that was not lost again"),
    "ultracluster_training_lost_seconds_total": ("counter", "Time that gave no step"),
    "ultracluster_training_files_refused": ("gauge", "Files of jobs that were not read"),
    **{f"ultracluster_inference_{name}": ("histogram", said) for name, said in _HISTOGRAMS.items()},
}
_LOST = ("repeated", "startup", "checkpoint")
_NAME = re.compile(r"([A-Za-z0-9_-]{1,64})\.([0-9]{1,7})\.json")
_MODEL = re.compile(r"[A-Za-z0-9._/:-]{0,64}")
_FILE_BYTES = 64 << 10
OLD_SECONDS, GONE_SECONDS = 120, 3600
MOST_NAMES, MOST_FILES, MOST_OF_ONE, MOST_MODELS = 4096, 256, 128, 4
"""Names that are looked at, files of a node and of one user, models of a file. People run one process for
each accelerator, of which Trainium has 128 cores."""


def collect(host):
    names = [name for name in host.names(FOLDER, MOST_NAMES) if _NAME.fullmatch(name)]
    if not names:
        return
    refused, of_one, read = dict.fromkeys(("broken", "no_job", "number", "type"), 0), {}, 0
    running = jobs_here(host)
    for name in names:
        text, about = _open(host, name)
        if text is None:
            if about in refused:
                refused[about] += 1
            continue
        job, rank = _NAME.fullmatch(name).groups()
        if about.st_uid not in running.get(job, ()):
            refused["no_job"] += 1
            continue
        of_one[about.st_uid] = of_one.get(about.st_uid, 0) + 1
        if read >= MOST_FILES or of_one[about.st_uid] > MOST_OF_ONE:
            refused["number"] += 1
            continue
        told = _parsed(text)
        if told is None:
            refused["broken"] += 1
            continue
        read += 1
        yield from _samples(told, {"job_id": job, "rank": str(int(rank))}, about.st_mtime)
    for reason, count in refused.items():
        yield "ultracluster_training_files_refused", {"reason": reason}, count


def _open(host, name):
    """Text and stat of a user's file; (None, why) where it is not read. No link is followed, and nothing that
    blocks is waited for. A file that was left behind is removed after an hour."""
    try:
        folder = os.open(host.path(FOLDER), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None, "gone"
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
    except OSError:
        os.close(folder)
        return None, "type"
    try:
        about = os.fstat(file)
        age = host.now - about.st_mtime
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or about.st_size > _FILE_BYTES:
            return None, "type"
        if age > GONE_SECONDS:
            os.unlink(name, dir_fd=folder)
        if age > OLD_SECONDS or age < -OLD_SECONDS:
            return None, "old"
        return os.read(file, _FILE_BYTES + 1), about
    except OSError:
        return None, "gone"
    finally:
        os.close(file)
        os.close(folder)


def _parsed(text):
    """None where it is no document of ours."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) and told.get("version") == 1 else None


def _samples(told, labels, written):
    yield "ultracluster_training_written_timestamp_seconds", labels, written
    training = told.get("training")
    training = training if isinstance(training, dict) else {}
    for name in _PLAIN:
        if name in training:
            yield f"ultracluster_training_{name}", labels, _number(training[name])
    loss = _number(training.get("loss"))
    if loss is not None:
        yield "ultracluster_training_loss_finite", labels, math.isfinite(loss)
        if math.isfinite(loss):
            yield "ultracluster_training_loss", labels, loss
    if "useful_seconds_total" in training:
        useful = _number(training["useful_seconds_total"])
        yield "ultracluster_training_useful_seconds_total", labels, useful
    lost = training.get("lost_seconds_total")
    for reason in _LOST if isinstance(lost, dict) else ():
        if reason in lost:
            value = _number(lost[reason])
            yield "ultracluster_training_lost_seconds_total", {**labels, "reason": reason}, value
    models = told.get("inference")
    for model in sorted(map(str, models))[:MOST_MODELS] if isinstance(models, dict) else ():
        one = models.get(model)
        if not _MODEL.fullmatch(model) or not isinstance(one, dict):
            continue
        for name in _HISTOGRAMS:
            told_one = one.get(name)
            if isinstance(told_one, dict):
                value = Histogram(told_one.get("buckets"), told_one.get("sum"), told_one.get("count"))
                yield f"ultracluster_inference_{name}", {**labels, "model": model}, value


def _number(value):
    """Also of the texts "NaN" and "+Inf", which JSON has no numbers for; None where it is none."""
    if isinstance(value, str) and len(value) < 40:
        try:
            return float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        float(value)
    except OverflowError:  # a whole number that no float holds: one user's line would end the collector
        return None
    return value


# ---- whose job it is


def jobs_here(host):
    """User ids of the processes of each job that Slurm runs here.

    Each step has a slurmstepd of root, which calls itself `slurmstepd: [4711.batch]`, and whose children are
    the job's processes, with cgroups or without. Nobody but root can have such a process.
    """
    parents, steps, owners = {}, {}, {}
    for pid in host.names("proc", 1 << 16):
        if not pid.isdigit():
            continue
        status = host.text(f"proc/{pid}/status", 4096)
        fields = dict(re.findall(r"^(PPid|Uid):\s+(\d+)", status or "", re.MULTILINE))
        if len(fields) < 2:
            continue
        parents[pid] = (fields["PPid"], int(fields["Uid"]))
        if fields["Uid"] == "0":
            match = re.match(r"slurmstepd: \[(\d{1,12})\.", host.text(f"proc/{pid}/cmdline", 64) or "")
            if match:
                steps[pid] = match[1]
    for parent, uid in parents.values():
        if parent in steps:
            owners.setdefault(steps[parent], set()).add(uid)
    return owners
