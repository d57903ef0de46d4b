"""Train a small GPT on bytes of a file, so that nothing is lost when a process, a node or the lease ends.

One file, for PyTorch 1.13 or newer, under torchrun: GPUs (NCCL), Trainium (torch-neuronx, XLA) or processors
(Gloo). `ultracluster job write` starts it with Slurm and Kubernetes; on a laptop:

    torchrun --nproc-per-node=2 train.py --data book.txt --checkpoints ./checkpoints --steps 200

What makes it survive, and what to keep in a program of your own:
- A checkpoint is written beside its name and renamed when it is whole, so a kill leaves the one before it.
- It holds weights, optimiser and the number of the step. Batches are drawn from that number, so a run that
  was ended goes on to the same losses as one that was not, also on another number of processes.
- SIGUSR1 (the time limit, the end of a lease, a node that will be mended) and SIGTERM (a pod that must go)
  write a checkpoint after the step at hand. All processes agree on the step first: a signal reaches them at
  different times.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

try:
    import ultracluster_metrics as metrics  # on nodes whose metrics are collected; else beside this file
except ImportError:
    metrics = None

BYTES = 256
KEPT = 3


def main() -> int:
    options = arguments()
    device = devices()
    rank, world = dist.get_rank(), dist.get_world_size()
    if options.batch % world:
        raise SystemExit(f"--batch {options.batch}: requires a multiple of the {world} processes")
    torch.manual_seed(options.seed)  # the same weights everywhere, before DDP compares them
    model = Gpt(options).to(device)
    # DDP adds gradients over processes; for a model that one GPU cannot hold, FSDP takes its place here
    wrapped = nn.parallel.DistributedDataParallel(
        model, **({"device_ids": [device.index]} if device.type == "cuda" else {})
    )
    optimiser = torch.optim.AdamW(wrapped.parameters(), lr=options.rate, weight_decay=0.1)
    folder = Path(options.checkpoints)
    folder.mkdir(parents=True, exist_ok=True)
    first = load(folder, model, optimiser, device)
    data = bytes_of(options)
    asked = Asked()
    size = sum(one.numel() for one in model.parameters())
    tell(rank, f"{world} processes on {device.type}, {size:,} parameters, from step {first}")
    if metrics:
        metrics.start(flops_per_token=6.0 * size)
    for number in range(first, options.steps):
        with (
            metrics.step(number, tokens=options.batch * options.context)
            if metrics
            else contextlib.nullcontext()
        ):
            inputs, targets = batch(data, number, options, rank, world)
            loss = wrapped(inputs.to(device), targets.to(device))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(wrapped.parameters(), 1.0)
            take_step(optimiser, device)
        done = number + 1
        last, stop = done == options.steps, asked.by_any(device)
        if done % options.log_every == 0 or last or stop:
            mean = of_all(loss.detach(), device) / world
            tell(rank, f"step {done} loss {mean:.6f}")
            if metrics:
                metrics.loss(mean)
        if done % options.save_every == 0 or last or stop:
            with metrics.checkpoint() if metrics else contextlib.nullcontext():
                if rank == 0:
                    save(folder, done, model, optimiser)
                dist.barrier()
        if stop and not last:
            tell(rank, f"asked to stop: step {done} is saved")
            break
    if metrics:
        metrics.stop()
    if device.type == "cpu":
        # All is saved. gloo's thread was seen to spin for ever where the other process had left first.
        sys.stdout.flush()
        os._exit(0)
    dist.destroy_process_group()
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        default=os.environ.get("DATA", "/fsx/data/train.txt"),
        help="any file: its bytes are the tokens",
    )
    parser.add_argument("--checkpoints", default=os.environ.get("CHECKPOINTS", "/fsx/checkpoints/gpt"))
    parser.add_argument("--steps", type=int, default=int(os.environ.get("STEPS", "2000")))
    parser.add_argument("--batch", type=int, default=64, help="sequences in a step, over all processes")
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def devices() -> torch.device:
    """Join the other processes, and the device of this one."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    for name, value in (
        ("RANK", "0"),
        ("WORLD_SIZE", "1"),
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", "29500"),
    ):
        os.environ.setdefault(name, value)  # `python train.py` is one process
    if torch.cuda.is_available():
        torch.cuda.set_device(local)
        dist.init_process_group("nccl")
        return torch.device("cuda", local)
    with contextlib.suppress(ImportError):
        import torch_xla.core.xla_model as xm  # Trainium, by torch-neuronx
        import torch_xla.distributed.xla_backend  # noqa: F401 - registers "xla"

        dist.init_process_group("xla")
        return xm.xla_device()
    dist.init_process_group("gloo")
    return torch.device("cpu")


def take_step(optimiser: torch.optim.Optimizer, device: torch.device) -> None:
    optimiser.step()
    if device.type == "xla":
        import torch_xla.core.xla_model as xm

        xm.mark_step()  # XLA compiles and runs what was recorded since the last one


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        parts = self.attend(self.before(x)).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        weights = (query @ key.transpose(-2, -1)) / math.sqrt(width // self.heads)
        weights = (weights + mask[:length, :length]).softmax(-1)
        x = x + self.join((weights @ value).transpose(1, 2).reshape(rows, length, width))
        return x + self.think(self.after(x))


class Gpt(nn.Module):
    """A decoder over bytes, whose `forward` is the loss."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.token = nn.Embedding(BYTES, options.width)
        self.place = nn.Embedding(options.context, options.width)
        self.blocks = nn.ModuleList(Block(options.width, options.heads) for _ in range(options.layers))
        self.norm, self.head = nn.LayerNorm(options.width), nn.Linear(options.width, BYTES, bias=False)
        future = torch.full((options.context, options.context), float("-inf")).triu(1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.token(inputs) + self.place(torch.arange(inputs.shape[1], device=inputs.device))
        for block in self.blocks:
            x = block(x, self.future)
        return cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def bytes_of(options: argparse.Namespace) -> torch.Tensor:
    """The file's bytes, read as they are needed: it may be larger than memory."""
    path = Path(options.data)
    if not path.is_file() or path.stat().st_size <= options.context + 1:
        raise SystemExit(
            f"--data {path}: requires a file of more than {options.context + 1} bytes, e.g. a book as text"
        )
    storage = torch.ByteStorage.from_file(str(path), shared=False, size=path.stat().st_size)
    return torch.ByteTensor(storage)


def batch(
    data: torch.Tensor, number: int, options: argparse.Namespace, rank: int, world: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """This process's part of a step's sequences. They hang on the seed and the step's number alone."""
    dice = torch.Generator().manual_seed(options.seed * 1_000_003 + number)
    starts = torch.randint(len(data) - options.context - 1, (options.batch,), generator=dice)
    rows = torch.stack([data[at : at + options.context + 1] for at in starts[rank::world]]).long()
    return rows[:, :-1], rows[:, 1:]


class Asked:
    """Whether somebody asked for a last checkpoint."""

    def __init__(self) -> None:
        self.told = False
        for number in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, self._tell)

    def _tell(self, number: int, frame: object) -> None:
        self.told = True

    def by_any(self, device: torch.device) -> bool:
        """In any process: each then stops after the same step."""
        return of_all(torch.tensor(float(self.told), device=device), device) > 0


def of_all(figure: torch.Tensor, device: torch.device) -> float:
    """The sum over all processes."""
    figure = figure.clone()
    dist.all_reduce(figure)
    return float(figure.item())


def save(folder: Path, done: int, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Write `step-00000200.pt` at once or not at all, and drop all but the newest."""
    path = folder / f"step-{done:08}.pt"
    half = path.with_suffix(".pt.tmp")
    with half.open("wb") as file:
        torch.save(
            {
                "step": done,
                "model": on_host(model.state_dict()),
                "optimiser": on_host(optimiser.state_dict()),
            },
            file,
        )
        file.flush()
        os.fsync(file.fileno())
    half.replace(path)
    for old in sorted(folder.glob("step-*.pt"))[:-KEPT]:
        old.unlink(missing_ok=True)


def on_host(state: object) -> object:
    """Tensors in memory of the host: those of XLA cannot be pickled."""
    if isinstance(state, torch.Tensor):
        return state.cpu()
    if isinstance(state, dict):
        return {key: on_host(value) for key, value in state.items()}
    return [on_host(value) for value in state] if isinstance(state, list) else state


def load(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, device: torch.device) -> int:
    """Take the newest checkpoint that can be read, and the number of the step that follows; 0 without any.

    All processes take the same one: the first says which.
    """
    found = torch.zeros(1)
    state = None
    if dist.get_rank() == 0:
        for path in sorted(folder.glob("step-*.pt"), reverse=True):
            try:
                state = torch.load(path, map_location="cpu")
            except Exception as error:
                tell(0, f"{path} cannot be read ({error}): the one before it is taken")
                continue
            found[0] = state["step"]
            break
    found = found.to(device)
    dist.broadcast(found, 0)
    step = int(found.item())
    if step:
        state = state or torch.load(folder / f"step-{step:08}.pt", map_location="cpu")
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
    return step


def tell(rank: int, words: str) -> None:
    if rank == 0:
        sys.stdout.write(f"{words}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
