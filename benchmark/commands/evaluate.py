"""`evaluate`: try finished runs on evaluation sets: corruptions, shifted images, new classes, human truth, groups.

It trains nothing. Runs whose final weights were kept (`run --keep-weights`) can be evaluated on any images; human truth
and groups need the stored predictions alone.
"""

import argparse

from benchmark.commands import options
from benchmark.commands.dry_run import PLAN_ONLY, add_dry_run
from benchmark.commands.training import add_going, add_placing, add_seeds, run_or_plan
from benchmark.library.options import RunOptions

HELP = "try finished runs on corruptions, shifted images, new classes, human truth or groups (no training)"
OF_TRAINING = (
    *("factors", "channels_last", "amp", "compile", "max_steps", "gpus_per_job"),
    *("keep_weights", "keep_features", "keep_trunks", "share_warmups", "track_bound", "tensorboard"),
)
"""Options that say nothing of finished runs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to evaluate")
    options.add_selection(what)
    options.add_evaluate(what)
    add_seeds(what, "those of the last table")
    options.add_set(what)
    options.add_plugins(what)
    options.add_device(what, "where to predict")
    options.add_data_folders(what)
    options.add_table_options(parser.add_argument_group("results and tables"))
    add_dry_run(parser.add_argument_group("plan first"))
    add_placing(parser.add_argument_group("where jobs run"))
    add_going(parser.add_argument_group("how the run goes"))
    parser.set_defaults(**{name: getattr(RunOptions, name) for name in OF_TRAINING}, **PLAN_ONLY)


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.evaluate import evaluate_runs, plan_evaluation

    return run_or_plan(arguments, evaluate_runs, plan_evaluation)
