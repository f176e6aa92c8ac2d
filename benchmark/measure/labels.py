"""Find the labels of methods and columns that people type, and name them in tables."""

from collections.abc import Iterable, Mapping, Sequence

from benchmark.base import added
from benchmark.base.errors import UserError
from benchmark.base.names import canonical, match_name, unknown_name
from benchmark.measure.catalogue import all_titles, any_run_scores

EVERY_SCORE = "all"


def name_at(label: str, coverage: float | None) -> str:
    """Return the label, with the coverage where the training is meant for one."""
    return label if coverage is None else f"{label}@{coverage:g}"


def match_scores(wanted: Iterable[str]) -> tuple[str, ...]:
    """Return the scores that are meant; `all` stays as it is, so that it includes those that are added later."""
    names = tuple(wanted)
    return (EVERY_SCORE,) if EVERY_SCORE in map(canonical, names) else tuple(map(match_score, names))


def each_score(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of scores that were asked for, those of today in the place of `all`."""
    return tuple(any_run_scores()) if EVERY_SCORE in names else tuple(names)


def match_score(name: str) -> str:
    """Return the score that is meant, one of those that any run can be read with."""
    try:
        return match_name(name, any_run_scores(), "score")
    except UserError as error:
        raise UserError(f"{error}; {added.HOW}") from None


def match_labels(wanted: Iterable[str], owners: Mapping[str, str], kind: str = "method") -> list[str]:
    """Return the labels meant by a label, a column (label+score), a file (all its labels) or `all`; each once."""
    labels: list[str] = []
    for name in wanted:
        matches = labels_named(canonical(name), owners)
        if not matches:
            raise unknown_name(name, [*owners, *owners.values(), "all"], kind)
        labels += [label for label in matches if label not in labels]
    return labels


def labels_named(name: str, owners: Mapping[str, str]) -> list[str]:
    """Return the labels that a name in canonical form means; none where it means nothing."""
    if name == "all":
        return list(owners)
    exact = [label for label in owners if canonical(label) == name]
    scores = all_titles()
    column = [label for label in owners for score in scores if canonical(f"{label}+{score}") == name]
    return exact or column or [label for label, owner in owners.items() if canonical(owner) == name]
