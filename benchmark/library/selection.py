"""Choose what is shown of a results folder: methods by their names and ingredients, coverages, the reference."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from benchmark.base.names import canonical, unknown_name
from benchmark.config.ingredient_names import INGREDIENTS, Ingredient, find_ingredients, label_suffix, split_label
from benchmark.measure.labels import labels_named, match_labels
from benchmark.store.manifest import Manifest, with_every_run
from benchmark.tables.build import pick_reference

AVERAGING = "averaging"


def select(
    manifest: Manifest,
    labels: Sequence[str] | None,
    coverages: Sequence[float] | None,
    reference: str | None,
    published: Sequence[Manifest] = (),
    ingredients: Sequence[str] = (),
) -> Manifest:
    """Return the manifest with other methods, coverages or another reference.

    Methods may come from any command; `published` adds the runs of published tables.
    """
    if labels or ingredients:
        manifest = with_every_run(manifest, published)
    kind = f"method in the results of {manifest.task}:"
    kept = labels_with(labels or ["all"], ingredients, manifest.owners, kind)
    entries = tuple(entry for entry in manifest.entries if entry.label in kept)
    if reference and ingredients:
        reference = labels_with([reference], ingredients, manifest.owners, kind)[0]
    chosen = pick_reference(reference, manifest.reference, [entry.label for entry in entries])
    rows = tuple(dict.fromkeys(coverages or manifest.coverages))
    return replace(manifest, entries=entries, reference=chosen, coverages=rows)


def labels_with(names: Iterable[str], ingredients: Sequence[str], owners: Mapping[str, str], kind: str) -> list[str]:
    """Return the labels that names mean, with ingredients in any order; with more of them, those that `run` makes."""
    more = find_ingredients(ingredients)
    labels = [label for name in names for label in labels_of(name, more, owners, kind)]
    return list(dict.fromkeys(labels))


def labels_of(name: str, more: Sequence[Ingredient], owners: Mapping[str, str], kind: str) -> list[str]:
    """Return the labels of a name with more ingredients; an average brings the training that it is of."""
    if not more and labels_named(canonical(name), owners):
        return match_labels([name], owners, kind)
    base, own = split_label(name)
    used = find_ingredients([*own, *(each.title for each in more)])
    found = labels_ending(base, label_suffix(used), owners)
    if not found:
        raise unknown_name(f"{base}{label_suffix(used)}", [*owners, *owners.values(), "all"], kind)
    averages = any(each.factor == AVERAGING for each in more)
    trained = labels_ending(base, label_suffix(each for each in used if each.factor != AVERAGING), owners)
    return [*(trained[cut] for cut in found if averages and cut in trained), *found.values()]


def labels_ending(base: str, suffix: str, owners: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that are a name with exactly these ingredients, by what comes before them."""
    split = {label: split_label(label) for label in owners}
    whole = {cut: label for label, (cut, names) in split.items() if suffix_of(names) == suffix}
    named = labels_named(canonical(base), {cut: owners[label] for cut, label in whole.items()})
    return {cut: whole[cut] for cut in named}


def suffix_of(names: Iterable[str]) -> str:
    return label_suffix(INGREDIENTS[canonical(name)] for name in names)
