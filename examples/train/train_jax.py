"""Train a small network with JAX on all nodes of a job, and go on where the last run stopped.

One file, for JAX 0.5 or newer. `ultracluster job write --framework jax` starts it; on a laptop, alone:

    python train_jax.py --checkpoints ./checkpoints --steps 200

It learns a fixed function from batches that are drawn from the number of the step, so a run that was ended
goes on to the same losses. What to keep in a program of your own: the way the processes find each other, the
checkpoint that is renamed when it is whole, and the step on which all processes agree to stop.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec


def main() -> None:
    options = arguments()
    join()
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    rows, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    if options.batch % jax.device_count():
        raise SystemExit(f"--batch {options.batch}: requires a multiple of the {jax.device_count()} devices")
    folder = Path(options.checkpoints)
    first, weights = load(folder, options)
    weights = jax.device_put(weights, everywhere)
    asked: list[int] = []
    for one in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(one, lambda number, _: asked.append(number))
    tell(f"{jax.process_count()} processes, {jax.device_count()} devices, from step {first}")
    for number in range(first, options.steps):
        own = batch(number, options)
        weights, loss = step(
            weights, *(jax.make_array_from_process_local_data(rows, part) for part in own), options.rate
        )
        done = number + 1
        # a signal reaches the processes at different times
        stop = bool(np.max(multihost_utils.process_allgather(np.array([len(asked)]))))
        last = done == options.steps
        if done % options.log_every == 0 or last or stop:
            tell(f"step {done} loss {float(loss):.6f}")
        if done % options.save_every == 0 or last or stop:
            save(folder, done, weights)
        if stop and not last:
            tell(f"asked to stop: step {done} is saved")
            break


def join() -> None:
    """Find the other processes, on all schedulers in the same way; a process alone has none."""
    if "JAX_NUM_PROCESSES" in os.environ:
        jax.distributed.initialize(
            num_processes=int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"])
        )


@jax.jit
def step(weights: dict, inputs: jax.Array, targets: jax.Array, rate: float) -> tuple[dict, jax.Array]:
    def mean_square(weights: dict) -> jax.Array:
        hidden = jnp.tanh(inputs @ weights["in"])
        return jnp.mean((hidden @ weights["out"] - targets) ** 2)

    loss, slopes = jax.value_and_grad(mean_square)(weights)
    return jax.tree.map(lambda weight, slope: weight - rate * slope, weights, slopes), loss


def batch(number: int, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """The rows of this process in the batch of a step."""
    inputs = np.random.default_rng(number).normal(size=(options.batch, options.width)).astype(np.float32)
    truth = np.random.default_rng(0).normal(size=(options.width, 1)).astype(np.float32)
    targets = np.sin(inputs @ truth)
    each = options.batch // jax.process_count()
    own = slice(jax.process_index() * each, (jax.process_index() + 1) * each)
    return inputs[own], targets[own]


def load(folder: Path, options: argparse.Namespace) -> tuple[int, dict]:
    """The newest checkpoint that is whole, or new weights; the same on every process."""
    found = sorted(folder.glob("step-*.npz"), key=lambda one: int(one.stem.removeprefix("step-")))
    if found:
        with np.load(found[-1]) as held:
            return int(found[-1].stem.removeprefix("step-")), dict(held)
    random = np.random.default_rng(1)
    shapes = {"in": (options.width, options.hidden), "out": (options.hidden, 1)}
    return 0, {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}


def save(folder: Path, done: int, weights: dict) -> None:
    """Write beside the name, then rename: a kill leaves the checkpoint before it."""
    if jax.process_index() == 0:
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f".step-{done}.npz"
        np.savez(new, **{name: np.asarray(value) for name, value in weights.items()})
        new.rename(folder / f"step-{done}.npz")
    multihost_utils.sync_global_devices(f"step {done} is saved")


def tell(line: str) -> None:
    if jax.process_index() == 0:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoints", default=os.environ.get("CHECKPOINTS", "/fsx/checkpoints/jax"))
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=512, help="rows in a step, over all processes")
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--log-every", type=int, default=10)
    return parser.parse_args()


if __name__ == "__main__":
    main()
