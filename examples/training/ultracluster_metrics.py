"""What a training or inference program tells about itself: one file, standard library, Python >= 3.9.

    import ultracluster_metrics as metrics
    metrics.start(flops_per_token=6 * 8e9, accelerator="h100")
    for number, batch in enumerate(loader, first):
        with metrics.step(number, tokens=65536 * 16):
            with metrics.waiting():
                all_reduce()

A step is told with a few additions in the program's own thread. A thread of its own writes them every few
seconds to `/run/ultracluster/training/<job>.<rank>.json`, which the node's collector reads, and serves them
as `/metrics` where a port is asked for. Nothing here raises, and no step waits for a disk, a network or a
lock that something slow holds. What cannot be told is left out, never 0.

Tokens are those of the whole job in a step, over all ranks; of one job only rank 0 tells tokens, loss, model
FLOPs utilisation (MFU), checkpoints and lost time.
"""

import bisect
import collections
import contextlib
import json
import math
import os
import pathlib
import re
import socketserver
import stat
import tempfile
import threading
import time
from typing import Any

VERSION = 1
FOLDER = pathlib.Path("/run/ultracluster/training")
WRITE_SECONDS = 5.0
PROGRESS_SECONDS = 30.0
WINDOW_SECONDS = 60.0
FRESH_SECONDS = 60.0
MODELS = 20
MOST_BYTES = 65536
# Dense BF16 FLOP/s of one GPU. Source: NVIDIA's data sheets (A100, A10G, L4, L40S, H100 SXM, H200, HGX B200
# and B300, GB200 and GB300 NVL72), halved where they give the figure with sparsity.
PEAK_FLOPS = {
    "a100": 312e12, "a10g": 70e12, "l4": 121e12, "l40s": 362e12, "h100": 989e12, "h200": 989e12,
    "b200": 2.25e15, "b300": 2.25e15, "gb200": 2.5e15, "gb300": 2.5e15,
}  # fmt: skip
# The first that is set counts: torchrun's before Slurm's, whose task may be a whole node.
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
WORLDS = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
JOBS = ("ULTRACLUSTER_JOB_ID", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID")
FIRST_TOKEN_SECONDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
NEXT_TOKEN_SECONDS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0)
HELP = {
    "written_timestamp_seconds": "When the process last wrote its figures, unix seconds.",
    "step": "Number of the last step.",
    "step_seconds": "Mean seconds of a step in the last minute.",
    "compute_seconds": "The same without what was spent waiting.",
    "wait_seconds": "Mean seconds of a step spent in collectives or waiting for data.",
    "tokens_per_second": "Tokens of the whole job per second of a step.",
    "loss": "The last loss that was told; absent where it is no finite number.",
    "loss_finite": "0 where the loss has become NaN or infinite.",
    "mfu_ratio": "Model FLOPs utilisation: FLOP/s of the model over the peak of all accelerators.",
    "checkpoint_seconds": "Seconds that the last checkpoint held up the training.",
    "useful_seconds_total": "Seconds of steps that were done for the first time.",
    "lost_seconds_total": "Seconds of repeated steps, of starting up, and of checkpoints.",
}


class _Span:
    """A stretch of time as a context manager: tells its seconds at its end, and never swallows an error."""

    __slots__ = ("began", "done", "enter", "seconds")

    def __init__(self, done, enter=None):
        self.done, self.enter, self.began, self.seconds = done, enter, 0.0, 0.0

    def __enter__(self):
        if self.enter is not None:
            self.enter()
        self.began = time.perf_counter()
        return self

    def __exit__(self, kind, error, trace):
        ended = time.perf_counter()
        self.seconds = ended - self.began
        with contextlib.suppress(Exception):  # a metric is never worth a training
            self.done(self.began, ended, kind is None)
        return False


class _Histogram:
    def __init__(self, bounds):
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, seconds):
        if math.isfinite(seconds) and seconds >= 0:
            self.counts[bisect.bisect_left(self.bounds, seconds)] += 1
            self.sum += seconds

    def told(self):
        sums, running = [], 0
        counts = list(self.counts)
        for place, bound in enumerate(self.bounds):
            running += counts[place]
            sums.append([bound, running])
        return {"buckets": sums, "sum": round(self.sum, 6), "count": sum(counts)}


class Metrics:
    """One process's figures. The functions of this module are those of one object of this class."""

    def __init__(self):
        self._given = {}
        self._reset()

    def _reset(self):
        """A process without threads of ours, as it is at first and after a fork."""
        self._lock = threading.RLock()  # a signal's handler may come in between in the same thread
        self._writing = threading.Lock()
        self._running = False
        self._stop = threading.Event()
        self._server = None
        self._steps = collections.deque(maxlen=4096)  # (end, seconds, seconds waited, tokens)
        self._step = self._mark = self._loss = self._checkpoint = None
        self._earlier = None  # highest step of a process before this one
        self._first_number = None
        self._wait = self._saving = self._useful = 0.0
        self._lost = {"repeated": 0.0, "startup": 0.0, "checkpoint": 0.0}
        self._requests = {}
        self._touch = threading.Event()
        self.errors = 0
        """What went wrong in here and was kept from the program."""

    # What the program calls

    def start(self, **given):
        """Say what the figures are of, before the first step; the rest is read from the environment.

        Args (by name):
            flops_per_token: FLOPs of the model for a token, forward and backward: about 6 x parameters.
            accelerator: name in PEAK_FLOPS; default $ULTRACLUSTER_ACCELERATOR.
            peak_flops: FLOP/s of what one rank uses, instead of a name (Trainium, other number formats).
            accelerators: how many ranks share the tokens; default $WORLD_SIZE or its like.
            job_id, rank: default: Slurm's, torchrun's or MPI's variables.
            folder: where to write; default /run/ultracluster/training where that is writable.
            port: port of /metrics; default $ULTRACLUSTER_METRICS_PORT, else none.
            progress: file that outlives the node, for the highest step; default: in $CHECKPOINTS.
        """
        with contextlib.suppress(Exception), self._lock:
            self._given.update(given)
            self._run()
            if self._step is None:
                self._mark = time.perf_counter()
                self._lost["startup"] = _process_seconds()

    def step(self, number=None, *, tokens=0):
        """A step, as a context manager; one that ends with an error does not count."""

        def enter():
            try:
                self._run()
                if self._step is None:
                    self._lost["startup"] = _process_seconds()
                self._wait = self._saving = 0.0
            except Exception:
                self.errors += 1

        def done(began, ended, whole):
            if whole:
                self._finish(ended - began, ended, number, tokens)

        return _Span(done, enter)

    def step_done(self, number=None, *, tokens=0, loss=None):
        """A step has ended; it took all the time since the one before, or since `start()`."""
        try:
            now = time.perf_counter()
            if not self._running:
                self.start()
            mark, self._mark = self._mark, now
            self._finish(now - (now if mark is None else mark), now, number, tokens)
            if loss is not None:
                self.loss(loss)
        except Exception:
            self.errors += 1

    def waiting(self):
        """Time in a step in which nothing is computed: collectives, data."""
        return _Span(self._waited)

    def _waited(self, began, ended, whole):
        with self._lock:
            self._wait += ended - began

    def checkpoint(self):
        """Time in which the training stands still for a checkpoint."""
        return _Span(self._saved)

    def _saved(self, began, ended, whole):
        with self._lock:
            self._saving += ended - began
            self._lost["checkpoint"] += ended - began
            if whole:
                self._checkpoint = ended - began
                self._touch.set()

    def loss(self, value):
        """The loss: a number. For a tensor on a GPU the program waits: tell it where you print it anyhow."""
        try:
            self._loss = float(value)
        except Exception:
            self.errors += 1

    def first_token(self, seconds, model=""):
        """Seconds from a request to its first token."""
        self._observe(0, seconds, model)

    def next_token(self, seconds, model=""):
        """Seconds between two tokens of a request."""
        self._observe(1, seconds, model)

    def request(self, model=""):
        """A request that tells `.token()` for each token. It begins where this is called."""
        return _Request(self, model)

    def stop(self):
        """Write the figures once more and end the threads. At an exit they end by themselves."""
        try:
            self._stop.set()
            self._touch.set()
            self._write()
            if self._server is not None:
                self._server.shutdown()
                self._server.server_close()
            self._running, self._server = False, None
        except Exception:
            self.errors += 1

    # Adding up

    def _finish(self, seconds, ended, number, tokens):
        with self._lock:
            numbered = number is not None
            number = int(number) if numbered else (0 if self._step is None else self._step + 1)
            tokens = float(tokens)
            self._step, self._mark = number, ended
            saving, self._saving = self._saving, 0.0
            seconds = max(seconds - saving, 0.0)
            wait, self._wait = min(self._wait, seconds), 0.0
            # only numbers that the program gives say that a step was there before
            again = numbered and self._earlier is not None and number <= self._earlier
            if again:
                self._lost["repeated"] += seconds
            else:
                self._useful += seconds
            self._steps.append((ended, seconds, wait, tokens))

    def _observe(self, which, seconds, model):
        try:
            with self._lock:
                self._run()
                model = str(model)[:64]
                if model not in self._requests and len(self._requests) >= MODELS:
                    model = "other"
                if model not in self._requests:
                    made = (_Histogram(FIRST_TOKEN_SECONDS), _Histogram(NEXT_TOKEN_SECONDS))
                    self._requests = {**self._requests, model: made}
                self._requests[model][which].add(float(seconds))
        except Exception:
            self.errors += 1

    def told(self):
        """The figures as they are written: see docs/training-metrics.md."""
        rank = self._rank()
        training: dict[str, Any] = {"step": self._step}
        steps = _copy(self._steps)
        if steps:
            since = time.perf_counter() - WINDOW_SECONDS
            window = [one for one in steps if one[0] >= since] or steps[-1:]
            seconds, waited = sum(one[1] for one in window), sum(one[2] for one in window)
            training["step_seconds"] = seconds / len(window)
            training["compute_seconds"] = (seconds - waited) / len(window)
            training["wait_seconds"] = waited / len(window)
            tokens = sum(one[3] for one in window)
            if rank == 0 and tokens > 0 and seconds > 0:
                training["tokens_per_second"] = tokens / seconds
                training["mfu_ratio"] = self._mfu(tokens / seconds)
        if rank == 0 and (steps or self._checkpoint is not None):
            training["loss"] = self._loss
            training["checkpoint_seconds"] = self._checkpoint
            training["useful_seconds_total"] = self._useful
            training["lost_seconds_total"] = {why: round(took, 6) for why, took in self._lost.items()}
        requests = {
            model: {
                "time_to_first_token_seconds": first.told(),
                "inter_token_seconds": following.told(),
            }
            for model, (first, following) in self._requests.items()
        }
        training = {key: _number(value) for key, value in training.items() if value is not None}
        return {
            "version": VERSION, "job_id": self._job(), "rank": rank, "written": round(time.time(), 3),
            "training": training, "inference": requests,
        }  # fmt: skip

    def _mfu(self, tokens_per_second):
        name = str(self._given.get("accelerator") or os.environ.get("ULTRACLUSTER_ACCELERATOR") or "")
        peak = self._given.get("peak_flops") or PEAK_FLOPS.get(name.lower())
        flops = self._given.get("flops_per_token")
        count = self._given.get("accelerators") or _variable(WORLDS)
        if not peak or not flops or not count:
            return None
        return float(flops) * tokens_per_second / (float(peak) * float(count))

    def _rank(self):
        given = self._given.get("rank")
        return int(given) if given is not None else (_variable(RANKS) or 0)

    def _job(self):
        names = [self._given.get("job_id"), *(os.environ.get(name) for name in JOBS)]
        found = next((str(name) for name in names if name not in (None, "", "none")), "local")
        return re.sub(r"[^A-Za-z0-9_-]", "-", found)[:64]

    # Telling

    def _run(self):
        with self._lock:  # of several threads one starts it
            if self._running:
                return
            self._running = True  # also where it fails: no step tries it again
        try:
            self._stop, self._touch = threading.Event(), threading.Event()
            folder, job, rank = self._folder(), self._job(), self._rank()
            if folder and job != "local":
                self._reached(_read_step(folder / f"{job}.{rank}.json"))
            threading.Thread(target=self._export, name="ultracluster-metrics", daemon=True).start()
            progress = self._progress_file()
            if progress and rank == 0:
                known = threading.Event()
                thread = threading.Thread(
                    target=self._keep, args=(progress, known), name="ultracluster-progress", daemon=True
                )
                thread.start()
                known.wait(1.0)  # once, before the first step; a file system that hangs is not waited for
        except Exception:
            self.errors += 1

    def _reached(self, step):
        if step is not None and (self._earlier is None or step > self._earlier):
            self._earlier = step

    def _export(self):
        stop = self._stop
        while True:
            try:
                self._serve()
                self._write()
            except Exception:
                self.errors += 1
            if stop.wait(WRITE_SECONDS):
                return

    def _write(self):
        folder = self._folder()
        if not folder or not self._writing.acquire(timeout=1.0):  # the other one writes, or hangs
            return
        try:
            told = self.told()
            _replace(folder / _name(told), told)
        finally:
            self._writing.release()

    def _keep(self, path, known):
        """The highest step, where a job that goes on elsewhere finds it. If that hangs, only this waits."""
        stop, touch = self._stop, self._touch
        with contextlib.suppress(Exception):
            self._reached(_read_step(path))
        known.set()
        written = None
        while not stop.is_set():
            touch.wait(PROGRESS_SECONDS)
            touch.clear()
            if self._step is None:
                continue
            step = self._step if self._earlier is None else max(self._step, self._earlier)
            if step != written:
                try:
                    _replace(path, {"version": VERSION, "training": {"step": step}})
                    written = step
                except Exception:
                    self.errors += 1

    def _folder(self):
        given = self._given.get("folder") or os.environ.get("ULTRACLUSTER_METRICS_FOLDER")
        if given or os.access(FOLDER, os.W_OK):
            return pathlib.Path(given or FOLDER)
        if not self._port():
            return None
        # the processes of a pod find each other here; its other folders may be read-only
        for base in ("/dev/shm", tempfile.gettempdir()):  # noqa: S108 - owner and mode are looked at
            with contextlib.suppress(OSError):
                path = pathlib.Path(base, f"ultracluster-metrics-{os.getuid()}")
                path.mkdir(0o700, exist_ok=True)
                found = path.lstat()  # only a folder of our own counts
                if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
                    return path
        return None

    def _port(self):
        return int(self._given.get("port") or os.environ.get("ULTRACLUSTER_METRICS_PORT") or 0)

    def _progress_file(self):
        given = self._given.get("progress") or os.environ.get("ULTRACLUSTER_PROGRESS")
        if given:
            return pathlib.Path(given)
        folder = os.environ.get("CHECKPOINTS")
        return pathlib.Path(folder, ".ultracluster-progress.json") if folder else None

    def _serve(self):
        """Whichever process of a machine gets the port answers for all; when it ends, another one gets it."""
        port = self._port()
        if not port or self._server is not None:
            return
        with contextlib.suppress(OSError):  # another process has it
            self._server = _listen(port, self.exposition)
            # its own thread: a client that says nothing keeps only the next one waiting
            serve = self._server.serve_forever
            threading.Thread(target=serve, name="ultracluster-metrics-http", daemon=True).start()

    def exposition(self):
        """The figures of every process that writes into this one's folder, as Prometheus reads them."""
        told = {(one["job_id"], one["rank"]): one for one in _others(self._folder())}
        own = self.told()
        told[own["job_id"], own["rank"]] = own
        return exposition([told[key] for key in sorted(told)])


class _Request:
    __slots__ = ("_last", "_metrics", "_model", "_tokens")

    def __init__(self, metrics, model):
        self._metrics, self._model, self._tokens, self._last = metrics, model, 0, time.perf_counter()

    def token(self):
        """A token has come."""
        now = time.perf_counter()
        self._metrics._observe(min(self._tokens, 1), now - self._last, self._model)
        self._tokens, self._last = self._tokens + 1, now


def exposition(told):
    """Prometheus' text format 0.0.4 of what several processes have written."""
    lines = []
    figures = [(one, _figures(one)) for one in told]
    for key, text in HELP.items():
        rows = []
        for one, figure in figures:
            if key not in figure:
                continue
            labels = f'job_id="{one["job_id"]}",rank="{one["rank"]}"'
            value = figure[key]
            if isinstance(value, dict):
                rows += [f'{{{labels},reason="{_label(why)}"}} {float(value[why])}' for why in sorted(value)]
            else:
                rows.append(f"{{{labels}}} {float(value)}")
        name = "ultracluster_training_" + key
        lines += _family(name, text, "counter" if key.endswith("_total") else "gauge")[: 2 * bool(rows)]
        lines += [name + row for row in rows]
    for key, text in (
        ("time_to_first_token_seconds", "Seconds from a request to its first token."),
        ("inter_token_seconds", "Seconds between two tokens of a request."),
    ):
        name, rows = "ultracluster_inference_" + key, []
        for one in told:
            for model, histograms in sorted(one["inference"].items()):
                labels = f'job_id="{one["job_id"]}",rank="{one["rank"]}",model="{_label(model)}"'
                of = histograms[key]
                for bound, count in [*of["buckets"], ["+Inf", of["count"]]]:
                    rows.append(f'{name}_bucket{{{labels},le="{_number(float(bound))}"}} {int(count)}')
                rows.append(f"{name}_sum{{{labels}}} {_number(float(of['sum']))}")
                rows.append(f"{name}_count{{{labels}}} {int(of['count'])}")
        lines += _family(name, text, "histogram")[: 2 * bool(rows)] + rows
    return "\n".join(lines) + "\n" if lines else ""


def _figures(told):
    """What one process tells, as the collector of a node tells it: a loss that is no number is only that."""
    figures = dict(told["training"])
    if figures and "written" in told:
        figures["written_timestamp_seconds"] = told["written"]
    if "loss" in figures:
        figures["loss_finite"] = int(math.isfinite(float(figures["loss"])))
        if not figures["loss_finite"]:
            del figures["loss"]
    return figures


def _family(name, text, kind):
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _label(text):
    return str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _listen(port, page):
    from http.server import BaseHTTPRequestHandler  # only who asks for a port pays for it
    from socket import AF_INET, AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY

    class Handler(BaseHTTPRequestHandler):
        timeout = 2

        def do_GET(self):
            known = self.path.partition("?")[0] == "/metrics"
            body = page().encode() if known else b"metrics are at /metrics\n"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):  # noqa: A002 - its name there
            pass

    class Server(socketserver.TCPServer):  # HTTPServer would ask DNS for its own name
        allow_reuse_address = True

        def server_bind(self):
            if self.address_family == AF_INET6:
                self.socket.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 0)
            socketserver.TCPServer.server_bind(self)

        def handle_error(self, request, client_address):
            pass  # a client that went away

    class Server6(Server):
        address_family = AF_INET6

    Server.address_family = AF_INET
    try:
        return Server6(("::", port), Handler)
    except OSError as error:
        import errno

        if error.errno == errno.EADDRINUSE:
            raise
        return Server(("", port), Handler)


def _others(folder):
    """What other processes have lately written: files that are whole and ours."""
    found = []
    for path in sorted(folder.iterdir()) if folder else []:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}\.[0-9]{1,7}\.json", path.name):
            continue
        with contextlib.suppress(Exception):
            if 0 <= time.time() - path.stat().st_mtime <= FRESH_SECONDS:
                document = _read(path)
                if document["version"] == VERSION and _name(document) == path.name:
                    exposition([document])  # a shape that cannot be told costs only itself
                    found.append(document)
    return found


def _name(told):
    return f"{told['job_id']}.{int(told['rank'])}.json"


def _read(path):
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode) or os.fstat(handle).st_uid != os.getuid():
            raise ValueError("not a file of ours")
        return json.loads(os.read(handle, MOST_BYTES))
    finally:
        os.close(handle)


def _read_step(path):
    with contextlib.suppress(Exception):
        step = _read(path)["training"]["step"]
        return step if isinstance(step, int) and step >= 0 else None
    return None


def _replace(path, document):
    """Write a file whole or not at all; a full disk leaves the one before."""
    beside = path.with_name(f".{path.name}.tmp")
    with contextlib.suppress(FileNotFoundError):
        beside.unlink()
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(beside, flags, 0o644), "w") as file:
            json.dump(document, file)
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _number(value):
    if not isinstance(value, float):
        return value
    if math.isfinite(value):
        return float(f"{value:.9g}")
    return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"


def _copy(steps):
    for _ in range(3):
        with contextlib.suppress(RuntimeError):  # the program has added a step meanwhile
            return list(steps)
    return []


def _variable(names):
    for name in names:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
    return None


def _process_seconds():
    """Seconds since this process began, by a clock that nobody sets."""
    try:
        text = pathlib.Path("/proc/self/stat").read_text()
        began = int(text.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - began, 0.0)
    except Exception:
        return time.perf_counter() - _IMPORTED


_IMPORTED = time.perf_counter()
_METRICS = Metrics()
start, step, step_done, waiting = _METRICS.start, _METRICS.step, _METRICS.step_done, _METRICS.waiting
checkpoint, loss, stop = _METRICS.checkpoint, _METRICS.loss, _METRICS.stop
first_token, next_token, request = _METRICS.first_token, _METRICS.next_token, _METRICS.request


def _after_fork():
    """A worker that loads data tells nothing and holds no port; one that trains begins with its own step."""
    server = _METRICS._server
    _METRICS._reset()
    if server is not None:
        with contextlib.suppress(Exception):
            server.socket.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
