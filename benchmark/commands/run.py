"""`run`: train what is missing of a grid of tasks, methods and seeds, then write its tables."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from benchmark.base.errors import UserError
from benchmark.base.files import Damaged
from benchmark.base.limits import SEEDS, Within
from benchmark.commands import options
from benchmark.commands.dry_run import check_plan
from benchmark.commands.training import add_training, plan_or_train, suite_maker, write_results
from benchmark.jobs.suite import manifest_of
from benchmark.store.manifest import Manifest, with_earlier
from benchmark.store.store import Store

HELP = "train what is missing of a grid and write its tables (the default command)"
DEFAULT_TASKS = ("digits", "gaussians")
"""Need no download and finish in minutes."""
SEED = Within(0, 2**32 - 1, "a larger seed has no advantage over a smaller one")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to run")
    options.add_selection(what)
    seeds = what.add_mutually_exclusive_group()
    options.add_count(seeds, "--seeds", SEEDS, "seeds 0..N-1 (default: the task's own number, usually 5)")
    options.add_list(seeds, "--seed-list", "SEED", "train with exactly these seeds, e.g. 0 3 7", options.whole(SEED))
    options.add_set(what)
    options.add_plugins(what)
    options.add_device(what)
    options.add_data_folders(what)
    options.add_table_options(parser.add_argument_group("results and tables"))
    add_training(parser)


def run(arguments: argparse.Namespace, make_registry: options.MakeRegistry) -> int:
    from benchmark.launch.suites import Wanted, task_suites

    check_plan(arguments)
    if any(override.strip().startswith("bound.") for override in arguments.set) and not arguments.track_bound:
        raise UserError("--set bound.… needs --track-bound; add --track-bound, or leave out --set bound.…")
    methods, store = make_registry(arguments.plugin), Store(arguments.results)
    maker = suite_maker(arguments, methods, arguments.seed_list or range(arguments.seeds or 0))
    asked = options.asked_settings(arguments)
    wanted = Wanted(arguments.methods or (), arguments.coverages or (), arguments.reference, asked)
    suites = task_suites(arguments.datasets or DEFAULT_TASKS, wanted, maker, store)
    manifests = [manifest_of(suite) for suite in suites]

    def finish() -> None:
        paths, report = write_results("task", manifests, store, show=not arguments.quiet)
        if not arguments.quiet:
            tables = "\n".join(f"  {path}" for path in paths)
            records = f"{store.root}/<task>/<method>/<job>/seed-<n>/"
            print(f"Tables:\n{tables}\n{report}\nRecords, predictions and learning curves: {records}")

    return plan_or_train(suites, store, arguments, methods, noting=manifests_noted(manifests, store), finish=finish)


@contextmanager
def manifests_noted(manifests: Sequence[Manifest], store: Store) -> Iterator[None]:
    """Write manifests in the place of those before, whose runs they keep in mind."""
    for manifest in manifests:
        before = None
        with suppress(Damaged):
            before = store.read_manifest(store.root / "manifests" / f"{manifest.name}.json")
        store.write_manifest(with_earlier(manifest, before))
    yield
