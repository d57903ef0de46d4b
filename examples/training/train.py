"""A training loop that tells its steps. The module lies beside it; on nodes it is installed, too."""

import time

import ultracluster_metrics as metrics

STEPS, TOKENS = 20, 16 * 4096  # of all ranks together


def main() -> None:
    metrics.start(flops_per_token=6 * 8e9)
    for number in range(STEPS):
        with metrics.step(number, tokens=TOKENS):
            with metrics.waiting():
                time.sleep(0.001)  # the next batch
            time.sleep(0.002)  # forward, backward, the optimiser's step
        if number % 5 == 0:
            metrics.loss(10.0 / (number + 1))  # where it is printed anyhow
            with metrics.checkpoint():
                time.sleep(0.001)
    metrics.stop()


if __name__ == "__main__":
    main()
