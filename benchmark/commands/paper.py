"""`paper`: regenerate published tables, with the published numbers beside them. A run that several need is one job."""

import argparse
from functools import partial

from benchmark.base.limits import SEEDS
from benchmark.commands import options
from benchmark.commands.dry_run import check_plan
from benchmark.commands.training import add_training, show_plan, show_trained
from benchmark.library.options import PaperOptions, PlanningOptions

HELP = "the paper's tables with your own numbers beside the published ones"
SETTINGS = "settings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    tables = "tables by name (see: list), or 'all'; 'settings' prints the settings tables of the configs"
    options.add_list(parser, "tables", "NAME", tables)
    parser.add_argument(
        "--scale",
        choices=["paper", "cpu"],
        default="paper",
        help="paper: the published tasks (default; they need a GPU); cpu: small versions of them, TASK-cpu, with "
        "results that cannot be compared with the published ones",
    )
    options.add_count(parser, "--seeds", SEEDS, "seeds 0..N-1 (default: as many as the paper's)")
    options.add_results(parser)
    options.add_test_options(parser)
    options.add_device(parser)
    options.add_data_folders(parser)
    add_training(parser)


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.paper import plan_paper, settings_text, train_paper

    check_plan(arguments)
    if arguments.tables == [SETTINGS]:
        print(settings_text(arguments.scale))
        return 0
    asked = options.make_options(PaperOptions, arguments)
    if arguments.dry_run:
        return show_plan(plan_paper(asked, options.make_options(PlanningOptions, arguments)), arguments)
    with options.showing(partial(show_trained, options=asked)) as ended:
        ended.outcome = train_paper(asked)
    return ended.code
