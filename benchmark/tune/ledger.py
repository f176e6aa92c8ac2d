"""Keep the ledger of a task: every trial of every method, which of them won, and what the choice is based on."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmark.base.units import counted
from benchmark.tables.model import Sheet

Settings = dict[str, Any]
MERGED = ("settings", "by_seed", "changes", "made_by")
"""Fields of a trial that several searches add to."""
SHOWN = 4
"""Most settings that a remark lists."""
LONGEST_NAME = 60


@dataclass(frozen=True)
class Trial:
    """One combination of settings, with its AURC on the held-out images for each seed that has a result."""

    settings: Settings
    job: str
    by_seed: dict[str, float]
    recipe: str = ""
    """A hash of all that is not searched: only trials that share it can be compared."""
    split: str = ""
    """The images it was judged on."""
    changes: Settings = field(default_factory=dict)
    """Fields of the task that it changes, by their dotted names."""
    made_by: dict[str, str] = field(default_factory=dict)
    """By seed: the code and the torch that made the result, where that is known."""
    former: str = ""
    """Its id in older ledgers."""

    @property
    def named(self) -> Settings:
        return self.settings | self.changes

    def mean(self, seeds: Iterable[str] = ()) -> float:
        """Return the mean AURC over these seeds, or over all that it has; infinite where one is missing."""
        wanted = list(seeds) or list(self.by_seed)
        return float(np.mean([self.by_seed.get(seed, np.inf) for seed in wanted])) if wanted else float("inf")

    def makers(self, seeds: Iterable[str]) -> set[str]:
        return {self.made_by[seed] for seed in seeds if self.made_by.get(seed)}


@dataclass(frozen=True)
class Choice:
    """The winner of a recipe, and remarks on how it won."""

    job: str = ""
    seeds: tuple[str, ...] = ()
    """The seeds whose mean decided; empty in older ledgers."""
    tied: tuple[str, ...] = ()
    """Jobs of other settings with exactly the same result."""
    remarks: tuple[str, ...] = ()


NO_CHOICE = Choice()


def settings_text(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items()).replace("\n", " ")


def list_settings(trials: Sequence[Trial]) -> str:
    more = f" and {len(trials) - SHOWN} more" if len(trials) > SHOWN else ""
    return "; ".join(settings_text(trial.named) for trial in trials[:SHOWN]) + more


def best_of(trials: Sequence[Trial], seeds: Sequence[str]) -> Trial:
    return min(trials, key=lambda trial: trial.mean(seeds))


def choose(trials: Sequence[Trial], jobs: Iterable[str], seeds: Iterable[int], before: Choice = NO_CHOICE) -> Choice:
    """Choose the lowest mean over the wanted seeds, among trials that have them all and that one code has made.

    `trials` share a recipe; `jobs` are those of the present search. The choice `before` stays if no trial of the search
    has all seeds, if several versions made its trials, or if the new winner was never compared with it.
    """
    wanted = [str(seed) for seed in seeds]
    whole = [trial for trial in trials if set(wanted) <= trial.by_seed.keys()]
    present = [trial for trial in trials if trial.job in set(jobs)]
    lacking = [trial for trial in present if trial not in whole]
    remarks = []
    if lacking:
        counts = f"{len(lacking)} of {len(present)} settings"
        remarks.append(f"{counts} lack a result and cannot win: {list_settings(lacking)}.")
    makers = {maker for trial in present if trial in whole for maker in trial.makers(wanted)}
    if len(makers) > 1:
        remarks.append(
            "No new choice: several versions of the code or of torch made these trials, which cannot be compared; "
            "--redo-stale makes them again."
        )
    if len(makers) > 1 or len(lacking) == len(present):
        return replace(before, remarks=tuple(remarks))
    same = [trial for trial in whole if trial.makers(wanted) <= makers]
    others = [trial for trial in whole if trial not in same]
    if others:
        best = best_of(others, wanted)
        remarks.append(
            f"Not compared: {counted(len(others), 'trial')} that another version of the code or of torch has made, "
            f"the best of them {settings_text(best.named)} with {1000 * best.mean(wanted):.2f}; --redo-stale makes "
            "those of a grid again."
        )
    champion = next((trial for trial in trials if trial.job == before.job), None)
    if champion and champion not in same and not any(trial.named == champion.named for trial in same):
        remarks.append(
            f"The choice stays {settings_text(champion.named)}, which was not tried with this code and these seeds: "
            "try it again beside the others, or begin anew with another --results."
        )
        return replace(before, remarks=tuple(remarks))
    return choose_best(same, wanted, remarks)


def choose_best(trials: Sequence[Trial], seeds: Sequence[str], remarks: Sequence[str]) -> Choice:
    """Choose the best of trials that can be compared; of equal ones, the first."""
    best = best_of(trials, seeds)
    equal = [trial for trial in trials if trial.mean(seeds) == best.mean(seeds) and trial != best]
    if equal:
        tie = f"is one of {len(equal) + 1} settings with exactly the same result, and was chosen as the first of them"
        remarks = [*remarks, f"{settings_text(best.named)} {tie}; the others: {list_settings(equal)}."]
    return Choice(best.job, tuple(seeds), tuple(trial.job for trial in equal), tuple(remarks))


def trials_of(ledger: Mapping[str, Any], label: str) -> list[Trial]:
    return [Trial(**trial) for trial in ledger.get("methods", {}).get(label, {}).get("trials", [])]


def choices_of(entry: Mapping[str, Any]) -> dict[str, Choice]:
    """Return the choices by recipe. An older ledger has one choice for all."""
    if "winners" not in entry:
        chosen = [trial for trial in entry.get("trials", []) if trial["job"] == entry.get("chosen")]
        return {trial.get("recipe", ""): Choice(trial["job"]) for trial in chosen}
    return {
        recipe: Choice(each["job"], *(tuple(each[name]) for name in ("seeds", "tied", "remarks")))
        for recipe, each in entry["winners"].items()
    }


def add_to_ledger(
    ledger: dict[str, Any], label: str, before: Sequence[Trial], trials: Sequence[Trial], seeds: Sequence[int]
) -> dict[str, Any]:
    """Return the ledger with the trials of a method added to those `before`: none is ever dropped.

    The choice is among all trials of the same recipe, old and new; each recipe has its own choice.
    """
    entry = ledger.get("methods", {}).get(label, {})
    known, choices = {trial.job: trial for trial in before}, choices_of(entry)
    renamed = {trial.former: trial.job for trial in trials if trial.former}
    for trial in trials:
        old = known.get(trial.job, trial)
        older = known.pop(trial.former, old) if trial.former != trial.job else old
        merged = {name: getattr(older, name) | getattr(old, name) | getattr(trial, name) for name in MERGED}
        known[trial.job] = replace(trial, **merged)
    recipe = trials[0].recipe
    champion = choices.get(recipe, NO_CHOICE)
    champion = replace(champion, job=renamed.get(champion.job, champion.job))
    comparable = [trial for trial in known.values() if trial.recipe == recipe]
    choice = choose(comparable, [trial.job for trial in trials], seeds, champion)
    if apart := len(known) - len(comparable):
        remark = f"Not compared: {counted(apart, 'trial')} of another recipe (data, network, training)."
        choice = replace(choice, remarks=(*choice.remarks, remark))
    choices.pop(recipe, None)  # the latest comes last: its task file overwrites the others
    winners = {name: vars(each) for name, each in {**choices, recipe: choice}.items()}
    entry = {"chosen": choice.job, "winners": winners, "trials": [vars(trial) for trial in known.values()]}
    return {**ledger, "methods": {**ledger.get("methods", {}), label: entry}}


def ledger_sheets(ledger: Mapping[str, Any]) -> list[Sheet]:
    """Show how many settings of each method were tried, on which images, and every trial."""
    rows, sheets = [], []
    for label, entry in ledger["methods"].items():
        trials, choices = trials_of(ledger, label), choices_of(entry)
        for recipe in dict.fromkeys(trial.recipe for trial in trials):
            own = [trial for trial in trials if trial.recipe == recipe]
            rows.append((label, *recipe_row(own, choices.get(recipe, NO_CHOICE))))
        sheets.append(trials_sheet(label, trials, choices))
    heading = ("method", "settings tried", "with a result", "seeds", "judged on", "recipe", "chosen", "AURC ×10³")
    caption = (
        f"Selection ledger of {ledger['task']}: how many settings each method was given, and on which images. Only "
        "trials of one recipe (data, network, training) are compared with each other."
    )
    return [Sheet("ledger", caption, heading, tuple(rows)), *sheets]


def recipe_row(trials: Sequence[Trial], choice: Choice) -> tuple[str, ...]:
    """Return the line of one recipe: counts of its trials, their seeds and images, and the winner."""
    best = next((trial for trial in trials if trial.job == choice.job), None)
    seeds = sorted({seed for trial in trials for seed in trial.by_seed}, key=int)
    equal = f" (or {len(choice.tied)} equal)" if choice.tied else ""
    outcome = (settings_text(best.named) + equal, f"{1000 * best.mean(choice.seeds):.2f}") if best else ("–", "–")
    counts = (str(len(trials)), str(sum(bool(trial.by_seed) for trial in trials)))
    return (*counts, ", ".join(seeds), trials[0].split, trials[0].recipe, *outcome)


def trials_sheet(label: str, trials: Sequence[Trial], choices: Mapping[str, Choice]) -> Sheet:
    names = list(dict.fromkeys(name for trial in trials for name in trial.named))
    by_choice = {trial.job: choices.get(trial.recipe, NO_CHOICE) for trial in trials}
    ordered = sorted(trials, key=lambda trial: (trial.recipe, trial.mean(by_choice[trial.job].seeds), trial.mean()))
    rows = []
    for trial in ordered:
        values, choice = (str(trial.named.get(name, "–")) for name in names), by_choice[trial.job]
        rows.append((*values, *result_of(trial, choice.seeds), trial.recipe, trial.job, mark_of(trial, choice)))
    numbers = [
        {"method": label, **trial.named, "job": trial.job, "seed": seed, "aurc": value}
        for trial in ordered
        for seed, value in trial.by_seed.items()
    ]
    notes = [remark for choice in list(choices.values())[-1:] for remark in choice.remarks]  # of the latest search
    heading = (*names, "held-out AURC ×10³", "seeds", "recipe", "job", "")
    return Sheet("trials", f"Every trial of {label}.", heading, tuple(rows), tuple(notes), numbers=tuple(numbers))


def result_of(trial: Trial, seeds: Sequence[str]) -> tuple[str, str]:
    """Return the mean over the seeds that decided, and how many of them have a result."""
    there = [seed for seed in seeds or trial.by_seed if seed in trial.by_seed]
    if not there:
        return "no result", "0"
    of_all = f"/{len(seeds)}" if len(there) < len(seeds) else ""
    return f"{1000 * trial.mean(there):.2f}", f"{len(there)}{of_all}"


def mark_of(trial: Trial, choice: Choice) -> str:
    return "chosen" if trial.job == choice.job else "equal to the chosen" if trial.job in choice.tied else ""


def tuned_tasks(ledger: Mapping[str, Any]) -> dict[str, str]:
    """Return task files by name, with the chosen settings of all methods: one for each set of changed task fields."""
    by_file: dict[str, tuple[Settings, dict[str, tuple[Trial, Choice]]]] = {}
    for label, entry in ledger["methods"].items():
        trials = {trial.job: trial for trial in trials_of(ledger, label)}
        for choice in choices_of(entry).values():
            if (best := trials.get(choice.job)) is not None:
                _, winners = by_file.setdefault(tuned_name(ledger["task"], best.changes), (best.changes, {}))
                winners[label] = (best, choice)
    by_file = by_file or {tuned_name(ledger["task"], {}): ({}, {})}
    return {name: tuned_task(ledger, changes, winners) for name, (changes, winners) in by_file.items()}


def is_tuned(task: str) -> bool:
    """Tell whether a task is called as the winner of a search is."""
    return re.search(r"-tuned(-|$)", task) is not None


def tuned_name(task: str, changes: Settings) -> str:
    text = re.sub(r"[^\w.+]+", "-", settings_text(dict(sorted(changes.items())))).strip("-")
    if len(text) > LONGEST_NAME:
        text = f"{text[:LONGEST_NAME]}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
    return f"{task}-tuned-{text}" if changes else f"{task}-tuned"


def tuned_task(ledger: Mapping[str, Any], changes: Settings, winners: Mapping[str, tuple[Trial, Choice]]) -> str:
    title = f"{ledger['title']} ({', '.join(filter(None, ('tuned', settings_text(changes))))})"
    lines = [
        f"# {ledger['task']} with the settings that `tune` chose by held-out AURC.",
        f"extends = {json.dumps(ledger['extends'])}",
        f"title = {json.dumps(title, ensure_ascii=False)}",
        *(f"{toml_key(name)} = {json.dumps(value)}" for name, value in changes.items()),
    ]
    for label, (best, choice) in winners.items():
        lines += ["", *(f"# {remark}" for remark in choice.remarks), f"[method.{json.dumps(label)}]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in best.settings.items()]
    return "\n".join(lines) + "\n"


def toml_key(name: str) -> str:
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part) for part in name.split("."))
