"""Show in a minute and a half what the suite does, step by step, each with the command that does the same."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmark.base.program import program
from benchmark.config.load import load_task
from benchmark.library.certify import certify_runs
from benchmark.library.explain import explain_cell
from benchmark.library.guarantee_options import CertifyOptions
from benchmark.library.options import ExplainOptions, Options, RunOptions, TablesOptions
from benchmark.library.run import train_tasks
from benchmark.library.tables import make_tables
from benchmark.library.tour_options import TourOptions
from benchmark.tables import render

TASK = "digits"
SEEDS = 5
COVERAGE, RISK, SHARE = 90.0, 2.0, 50.0
"""In per cent: the row that is explained, the risk that is guaranteed, and the test images that certify it."""
TRAIN = f"""\
{TASK} has 8×8 pictures of handwritten digits, 400 to train on and 1,397 to test on. They come with scikit-learn:
nothing is downloaded. Each method is trained {SEEDS} times with other random numbers, so that the tables can tell
luck from skill. If you stop it, the same command continues where it stopped."""
TABLE = """\
The selective risk is the share of errors among the images that a classifier keeps when it may reject the others.
At a coverage of 90 % it keeps the 90 % of which it is most sure. Lower is better. A dot marks a method that differs
from the first one by more than chance. The report has all tables, curves and costs: open it in a browser. The
command prints a second table, of further measures."""
EXPLAIN = """\
Every number can be traced: here the runs behind one cell, and the test that compares it with the reference."""
CERTIFY = f"""\
A threshold turns a classifier into one that can say "I do not know". Certified means: with a probability of 95 %, at
most {RISK:g} % of what it keeps is wrong. Images that nothing else has used must show that: for {RISK:g} % about 150,
at the least. {TASK} holds out 40. So one half of the test images certifies here, and the other half shows how it
went.
The command also says how the methods differ, and draws a figure."""


@dataclass(frozen=True)
class Step:
    """A step of the tour."""

    title: str
    about: str
    words: tuple[str, ...]
    """The command that does the same, without the name of the program."""
    options: Options
    """What the command asks for."""
    show: Callable[[int | None], str]
    """Does it, and returns what is to be seen, for a terminal of a width."""

    @property
    def command(self) -> str:
        return f"{program()} {shlex.join(self.words)}"


def tour_steps(asked: TourOptions) -> Iterator[Step]:
    """Yield the steps of the tour. Each needs those before it."""
    methods, place = shown_methods(), ("--results", asked.results)
    yield training_step(methods, place)
    yield table_step(place)
    yield explaining_step(methods[-1], place)
    yield certifying_step(place)


def shown_methods() -> tuple[str, ...]:
    """Return three methods of the task: the one that others are compared with, a further one, and the simplest."""
    task = load_task(TASK)
    others = [label for label in task.methods if label not in (task.reference, task.baseline)]
    return task.reference, others[0], task.baseline


def training_step(methods: tuple[str, ...], place: tuple[str, str]) -> Step:
    options = RunOptions(datasets=(TASK,), methods=methods, seeds=SEEDS, keep_weights=True, results=place[1])

    def show(width: int | None) -> str:
        train_tasks(options)
        return f"All {len(methods) * SEEDS} runs are there, with their final weights (--keep-weights): see the end."

    words = ("--datasets", TASK, "--methods", *methods, "--seeds", str(SEEDS), "--keep-weights", *place)
    return Step(f"Train {len(methods)} methods", TRAIN, words, options, show)


def table_step(place: tuple[str, str]) -> Step:
    options = TablesOptions(results=place[1])

    def show(width: int | None) -> str:
        made = make_tables(options)
        return f"{render.markdown(made.shown[0].tables[:1], width)}\n{made.remark}"

    return Step("Look at the table and the report", TABLE, ("tables", *place), options, show)


def explaining_step(method: str, place: tuple[str, str]) -> Step:
    options = ExplainOptions(task=TASK, method=method, row=f"{COVERAGE:g}", results=place[1])
    words = ("explain", TASK, method, options.row, *place)
    return Step("Ask where a number comes from", EXPLAIN, words, options, lambda width: explain_cell(options))


def certifying_step(place: tuple[str, str]) -> Step:
    options = CertifyOptions(tasks=(TASK,), risk=(RISK,), from_test=SHARE, results=place[1])

    def show(width: int | None) -> str:
        made = certify_runs(options)
        _, tables = next(made.tables())
        return f"{render.markdown(tables[:2], width)}\n{made.remark}"

    words = ("certify", TASK, "--risk", f"{RISK:g}", "--from-test", f"{SHARE:g}%", *place)
    return Step("Certify a threshold", CERTIFY, words, options, show)


def next_steps(asked: TourOptions) -> dict[str, str]:
    """Return what to try next: commands by what they do."""
    call, place, simplest = program(), shlex.quote(asked.results), shown_methods()[-1]
    return {
        "train the whole demo, five methods on two tasks, minutes": call,
        "follow a run in the browser, from a second terminal": f"{call} watch",
        "see all methods, tasks, scores and ingredients": f"{call} list",
        "measure predictions of your own: two examples to begin with": f"{call} score --example {place}/own",
        "export a network with its certified threshold (needs: pip install onnx onnxruntime onnxscript safetensors)": (
            f"{call} export {TASK} {simplest} --risk {RISK:g} --from-test {SHARE:g}% --results {place}"
            f" --to {TASK}-selector"
        ),
        "remove what the tour has made": f"rm -r {place}",
    }
