"""`tour`: see in about 90 seconds what the suite does, without a download.

It trains three methods on small pictures of digits, shows their table and names the report, explains one number,
certifies a threshold, and says what to try next. Before each step it prints the command that does the same, so that
you can change it and go on by yourself. Stop it at any time with Ctrl-C: the same command goes on from there. A second
tour trains nothing again.
"""

import argparse

from benchmark.commands.options import make_options, showing, terminal_width
from benchmark.library.tour_options import TourOptions

HELP = "see what the suite does, step by step: 90 seconds, no download"
COLUMNS = 100
"""The width of tables where the output is no terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    where = f"where the results of the tour lie (default: {TourOptions.results}/, apart from yours)"
    parser.add_argument("--results", default=TourOptions.results, metavar="DIR", help=where)


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.tour import next_steps, tour_steps

    asked = make_options(TourOptions, arguments)
    steps = list(tour_steps(asked))
    for number, step in enumerate(steps, 1):
        print(f"\n── {number}/{len(steps)}  {step.title} ──\n\n{step.about}\n\n  $ {step.command}\n", flush=True)
        with showing(lambda outcome: None) as ended:
            print(step.show(terminal_width() or COLUMNS), flush=True)
        if ended.code:
            return ended.code
    print("\n── What to try next ──\n")
    for about, command in next_steps(asked).items():
        print(f"{about}:\n  $ {command}")
    return 0
