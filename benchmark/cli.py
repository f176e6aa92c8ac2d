"""The command line: which command, its arguments, and what its end means to the shell."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from benchmark import __version__
from benchmark.base.children import safe_path
from benchmark.base.errors import DeviceLost, NoRoom, Unreachable, UserError, brief
from benchmark.base.files import NO_ROOM, cannot_write
from benchmark.base.names import unknown_name
from benchmark.base.program import program
from benchmark.base.signals import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, EXIT_TERMINATED, Terminated, raised_termination

COMMANDS = (
    "tour",
    "run",
    "watch",
    "factorial",
    "evaluate",
    "prepare",
    "features",
    "list",
    "score",
    "tables",
    "summary",
    "measure",
    "figures",
    "certify",
    "export",
    "paper",
    "audit",
    "explain",
    "diff",
    "pack",
    "tune",
    "check",
    "doctor",
)
"""Each a module of benchmark.commands; `run` is meant when none is named."""
ALONE = ("-h", "--help", "--version")
"""Options that need no command."""


class Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see: {program()} --help)")


def make_parser(examples: str) -> tuple[Parser, dict[str, Parser]]:
    parser = Parser(
        prog=program(),
        description="Selective classification: train a grid of methods, get its tables.",
        epilog=examples.format(program=program()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    by_name = {}
    for name in COMMANDS:
        module = importlib.import_module(f"benchmark.commands.{name}")
        by_name[name] = commands.add_parser(name, help=module.HELP, description=module.__doc__, allow_abbrev=False)
        module.add_arguments(by_name[name])
    return parser, by_name


def parse(argv: Sequence[str], examples: str) -> argparse.Namespace:
    words = [with_dashes(word) for word in argv]
    if not words or (words[0].startswith("-") and words[0] not in ALONE):
        words = ["run", *words]
    parser, by_name = make_parser(examples)
    if words[0] not in (*ALONE, *COMMANDS):
        raise unknown_name(words[0], COMMANDS, "command")
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        flags = [flag for action in by_name[arguments.command]._actions for flag in action.option_strings]
        nearest = get_close_matches(unknown[0], flags, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"see: {program()} {arguments.command} --help"
        raise UserError(f"unknown argument '{unknown[0]}'; {hint}")
    return arguments


def with_dashes(word: str) -> str:
    """Return an option with dashes in its name: `--data_dir=x_y` becomes `--data-dir=x_y`."""
    flag, equals, value = word.partition("=")
    return flag.replace("_", "-") + equals + value if word.startswith("--") else word


def main(argv: Sequence[str], examples: str = "") -> int:
    """Run a command and return its exit code.

    Help ends with `examples`, in which `{program}` stands for the name of the program.
    """
    try:
        arguments = parse(argv, examples)
        command = importlib.import_module(f"benchmark.commands.{arguments.command}")
        with raised_termination(), safe_path():
            return int(command.run(arguments))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (NoRoom, Unreachable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except DeviceLost as error:
        print(f"error: {error}; the same command continues from here", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more is to be said to whoever left
        return EXIT_BROKEN_PIPE
    except OSError as error:
        if error.errno in NO_ROOM:
            print(f"error: {cannot_write(error)}", file=sys.stderr)
            return 1
        print(f"error: '{error.filename}': {error.strerror}" if error.filename else f"error: {error}", file=sys.stderr)
        return 2
    except (MemoryError, ImportError) as error:
        if not is_lack_of_memory(error):
            raise
        print(
            f"error: too little memory ({brief(error)}); free some, or raise the limit, and try again", file=sys.stderr
        )
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command continues from here", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Terminated:
        print("terminated; the same command continues from here", file=sys.stderr)
        return EXIT_TERMINATED


def is_lack_of_memory(error: BaseException) -> bool:
    """Tell whether memory was too little. A library that finds none is reported as one that cannot be imported."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or "failed to map segment" in said or "cannot allocate memory" in said
