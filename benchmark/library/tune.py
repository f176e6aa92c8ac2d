"""Search the settings of a method on held-out training images, keep every trial, write the winner as a task file."""

from benchmark.forecast.dry_run import Plan
from benchmark.launch.suites import search_suite
from benchmark.library.options import PlanningOptions, TuneOptions
from benchmark.library.registry import load_methods
from benchmark.library.tables import Tables
from benchmark.library.training import Request, Trained, plan, suite_maker, train
from benchmark.store.store import Store
from benchmark.tune.ledger_files import LedgerFiles


def train_trials(options: TuneOptions) -> Trained:
    """Train the trials of a search, and write its ledger. Raise JobsFailed where some jobs have no result."""
    return train(options, request_trials)


def plan_trials(options: TuneOptions, ahead: PlanningOptions) -> Plan:
    """Return the plan of a search. Nothing is trained."""
    return plan(options, request_trials, ahead)


def request_trials(options: TuneOptions, store: Store, ahead: PlanningOptions | None) -> Request:
    """Return the trials of a search as a suite, and how its ledger is kept."""
    methods = load_methods(options.plugin)
    maker = suite_maker(options, methods, range(options.seeds), ahead)
    search = search_suite(options.task, options.method, options.grid, maker, store)
    files = LedgerFiles(store, search.suite.task, options.task, search.label)
    trials = files.kept(search.tried, methods, search.split, options.seeds)
    return Request([search.suite], methods, trials, lambda: Tables((), files.text(options.plugin)))
