"""What a training step of every method costs beside one of SR: `python -m tests.speed.methods [TASK]`.

Network, batch size and settings are the task's; the images are noise. Methods take their steps in turns, so that a
slow moment of the machine meets all of them; each number is the median over the rounds of the ratio to SR's step.
"accounted for" is what the mathematics of a step explains at prices measured in the same rounds: one forward pass with
gradients, further ones without, and the two similarity products with the feature queues, forward and backward.
"""

import argparse
import statistics
import time
from dataclasses import dataclass, field

import torch
from tabulate import tabulate
from torch import Tensor

from benchmark.check.harness import with_outliers
from benchmark.config.load import load_task
from benchmark.config.task import TaskConfig
from benchmark.data.sources import describe
from benchmark.interface import Batch, Method, Progress, Task
from benchmark.jobs.plan import label_owners, resolve_config
from benchmark.train.networks import Network, build_network
from benchmark.train.steps.optimizers import OPTIMIZERS
from benchmark.train.steps.step import take_step
from benchmark.train.trainer import trained_parameters
from methods import Registry
from methods._memory import ContrastiveMemory

REST = {
    "CCL-SC2": "masks and log-sums over both queues (passes over B×K), averaging of the keys where they move",
    "CCL-SC3": "masks and log-sums over both queues, a random draw for each anchor (sorted counts over B×K)",
    "CCL-SC+SupCon": "log-sums over both queues (passes over B×K), averaging of the keys where they move",
    "SelectiveNet": "the selection head and the auxiliary classifier",
    "MMCE": "a B×B kernel",
    "AUCOC": "B×B normal integrals in float64",
    "OpenMix": "a mixture beside each image, in the same pass",
    "TAL": "distances of the batch to a queue of pairs of numbers (passes over B×Q)",
    "TAL released": "distances of the batch to a queue of pairs of numbers (passes over B×Q)",
}
CONTRASTIVE = "masks and log-sums (passes over B×K), averaging of the keys where they move"
PROGRESS = Progress(0, 2, 1, 100)


@dataclass
class Runner:
    """A method with its optimiser, ready to step, and what it took."""

    method: Method
    optimizer: torch.optim.Optimizer
    batch: Batch
    seconds: list[float] = field(default_factory=list)
    with_gradient: int = 0
    without: int = 0

    def step(self) -> None:
        started = time.perf_counter()
        take_step(self.method, self.optimizer, self.batch, 0, PROGRESS)
        self.seconds.append(time.perf_counter() - started)

    def count_passes(self) -> None:
        """Forward passes of a step, through the body of the network and of copies of it: heads may be read apart."""

        def counted(module: object, inputs: object, output: Tensor) -> None:
            if torch.is_grad_enabled():
                self.with_gradient += 1
            else:
                self.without += 1

        networks = [module for module in self.method.modules() if isinstance(module, Network)]
        hooks = [network.body.register_forward_hook(counted) for network in networks]
        self.step()
        for hook in hooks:
            hook.remove()


def fill_queues(memory: ContrastiveMemory, num_classes: int) -> None:
    """As after their first epoch; frozen queues then need no more keys."""
    memory.positives.fill_with_noise(num_classes)
    memory.negatives.fill_with_noise(num_classes)
    memory.rest()


def make_runner(task: TaskConfig, label: str, owner: str, registry: Registry) -> Runner | None:
    method_class = registry.get(owner)
    if not issubclass(method_class, Method) or method_class.starts_from is not None:
        return None
    facts = describe(task.data)
    torch.manual_seed(0)
    network = build_network(task.network, facts.num_classes, facts.shape)
    network.set_speed(channels_last=True, amp="off", compiled=False)
    if method_class.extra_outputs:
        network.add_outputs(method_class.extra_outputs, zero=True)
    config = resolve_config(task, label, owner, method_class)
    method = method_class(network, Task(facts.num_classes, 10_000, network.feature_dim), config).train()
    if hasattr(method, "memory"):
        fill_queues(method.memory, facts.num_classes)
    views = tuple(torch.randn(task.batch_size, *facts.shape) for _ in range(method.num_views))
    labels = torch.arange(task.batch_size) % facts.num_classes
    batch = with_outliers(Batch(views, labels, torch.arange(task.batch_size)), method)
    return Runner(method, OPTIMIZERS[task.optimizer.name](trained_parameters(method), task.optimizer), batch)


def price_of_a_pass(runner: Runner) -> float:
    """A forward pass without gradients in training mode, as a key encoder makes it; seconds."""
    started = time.perf_counter()
    with torch.no_grad():
        runner.method.network(runner.batch.images)
    return time.perf_counter() - started


def price_of_products(runner: Runner) -> float:
    """Similarities of a batch with both queues, forward and backward; seconds."""
    memory = runner.method.memory
    features = torch.randn(len(runner.batch.labels), memory.positives.features.shape[1], requires_grad=True)
    started = time.perf_counter()
    sum((features @ queue.keys().features.T).sum() for queue in (memory.positives, memory.negatives)).backward()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", nargs="?", default="cifar100-cpu")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    task, registry = load_task(arguments.task), Registry()
    torch.set_num_threads(task.threads)
    owners = label_owners(registry)
    runners = {
        label: runner for label, owner in owners.items() if (runner := make_runner(task, label, owner, registry))
    }
    for runner in runners.values():
        runner.count_passes()
        runner.seconds.clear()
    passes, products = [], []
    for _ in range(arguments.rounds):
        for runner in runners.values():
            runner.step()
        passes.append(price_of_a_pass(runners["SR"]) / runners["SR"].seconds[-1])
        products.append(price_of_products(runners["CCL-SC"]) / runners["SR"].seconds[-1])
    forward, similar = statistics.median(passes), statistics.median(products)
    rows = []
    for label, runner in runners.items():
        ratio = statistics.median(a / b for a, b in zip(runner.seconds, runners["SR"].seconds, strict=True))
        contrasts = hasattr(runner.method, "memory")
        accounted = runner.with_gradient + forward * runner.without + similar * contrasts
        rest = REST.get(label, CONTRASTIVE if contrasts else "")
        rows.append([label, ratio, accounted, ratio / accounted, rest if ratio > 1.05 * accounted else ""])
    print(f"{task.name}: {task.network.name}, batch {task.batch_size}, {task.threads} thread(s)")
    print(f"in SR steps: a forward pass without gradients {forward:.2f}, the two similarity products {similar:.2f}\n")
    heading = ["method", "step ÷ SR", "accounted for", "ratio", "what the rest is"]
    print(tabulate(sorted(rows, key=lambda row: row[1]), heading, tablefmt="pipe", floatfmt=".2f"))
    idle = [label for label in owners if label not in runners]
    print(f"\nNo step of their own: {', '.join(idle)}. One training per coverage: SelectiveNet.")


if __name__ == "__main__":
    main()
