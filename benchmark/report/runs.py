"""Show what the runs cost, and where their numbers come from."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.config.recipe import recipe_text
from benchmark.measure.labels import name_at
from benchmark.report.markup import Markup, details, join, plain_table, tag
from benchmark.store.manifest import Manifest
from benchmark.store.provenance import Provenance
from benchmark.store.record import Record
from benchmark.tables.columns import Column

MEMORY = "peak memory (MiB)"
PHASES = ("own", "warmup")
"""Parts of a training whose steps are timed apart."""


def trainings(columns: Sequence[Column]) -> dict[str, Column]:
    """Return each training once, by name, even if several scores read it."""
    by_name: dict[str, Column] = {}
    for column in columns:
        for part in () if column.is_oracle else column.parts or (column,):
            name = name_at(part.label, part.coverage)
            if part.published or name not in by_name:
                by_name[name] = part
    return by_name


def cost_section(columns: Sequence[Column]) -> Markup:
    lines = [[name, *cost_texts(column.records)] for name, column in trainings(columns).items() if column.records]
    if not lines:
        return tag("p", "No run is there yet.", class_="note")
    times = ["s per run", "ms per step", "ms per warm-up step"]
    heading = ["method", "runs", *times, MEMORY, "device", "branched off"]
    known = [index for index in range(len(heading)) if any(line[index] != "–" for line in lines)]
    shown = ([line[index] for index in known] for line in lines)
    memory = "; of memory the most that tensors took on a GPU" if heading.index(MEMORY) in known else ""
    warmup = "Seconds of a run include its warm-up, also where it branched off a shared one."
    title = "Cost by method"
    about = tag("p", tag("strong", title), f": mean over seeds{memory}. {warmup}", class_="caption")
    return tag("div", about, plain_table([heading[index] for index in known], shown, title), class_="figure")


def cost_texts(records: Sequence[Record]) -> list[str]:
    """Return the cells of a training, in the order of the heading; a dash where nothing is known."""
    origins = [record.provenance for record in records]
    steps = [origin.step_seconds for origin in origins if origin.step_seconds is not None]
    peaks = [peak for origin in origins if (peak := origin.peak_on_gpu) is not None]
    branched = {f"epoch {origin.branched_off.epoch}" for origin in origins if origin.branched_off is not None}
    return [
        str(len(records)),
        mean_text([origin.seconds for origin in origins if origin.seconds is not None]),
        *(mean_text([1000 * step.seconds[phase] for step in steps if phase in step.seconds]) for phase in PHASES),
        f"{max(peaks) / 2**20:.0f}" if peaks else "–",
        ", ".join(sorted({step.device for step in steps})) or "–",
        ", ".join(sorted(branched)) or "–",
    ]


def mean_text(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f}" if values else "–"


def provenance_section(manifest: Manifest, columns: Sequence[Column]) -> Markup:
    finished = {name: column for name, column in trainings(columns).items() if column.records}
    records = [record for column in finished.values() for record in column.records]
    return details(
        f"Provenance of {counted(len(records), 'run')}: commit, libraries, data, recipe, settings, jobs",
        tag("p", manifest.modified, class_="note") if manifest.modified else Markup(),
        origins_table(records),
        settings_table(finished),
        jobs_table(manifest),
    )


def origins_table(records: Sequence[Record]) -> Markup:
    """List every value that occurs, with the number of its runs where they differ."""
    origins = [record.provenance for record in records]
    facts: dict[str, Sequence[str | None]] = {
        "commit": [origin.commit for origin in origins],
        "imported": [imported_text(origin) for origin in origins],
        "Python": [origin.python for origin in origins],
        "libraries": [settings_text(origin.libraries, " ") for origin in origins],
        "platform": [origin.platform for origin in origins],
        "environment": ["; then ".join(origin.environments) for origin in origins],
        **recipe_facts(records),
        "training images": [str(record.num_train) if record.num_train is not None else None for record in records],
        "data (SHA-256)": [record.data_sha256 for record in records],
        "training labels": [labels_text(record) for record in records],
        "test images": [str(record.measures.num_images) for record in records],
    }
    rows = ([tag("dt", name), tag("dd", with_counts(values))] for name, values in facts.items() if any(values))
    return tag("dl", map(join, rows))


def labels_text(record: Record) -> str | None:
    """Return how many training labels from a file differ from those of the data set; None where there is no file."""
    return None if record.labels_changed is None else f"{record.labels_changed:.1%} differ from those of the data set"


def imported_text(origin: Provenance) -> str | None:
    """Return where a run comes from that was made elsewhere."""
    if origin.imported is None:
        return None
    changed = ", divided by their sums" if origin.imported.normalised else ""
    given = origin.imported.given.replace("_", "-")
    return f"{origin.imported.file}: {given}{changed}; SHA-256 {origin.imported.sha256[:16]}…"


def recipe_facts(records: Sequence[Record]) -> dict[str, list[str | None]]:
    """Return the lines of the recipes; None where a record is of a version with other fields."""
    recipes: list[dict[str, str]] = []
    for record in records:
        try:
            recipes.append(recipe_text(record.identity))
        except UserError:
            recipes.append({})
    names = dict.fromkeys(name for recipe in recipes for name in recipe)
    return {name: [recipe.get(name) for recipe in recipes] for name in names}


def with_counts(values: Iterable[str | None]) -> Markup:
    """Return a line for each value that occurs, with the number of its runs if there are several values."""
    counts = Counter(value or "unknown" for value in values)
    if len(counts) == 1:
        return tag("div", *counts)
    return join(tag("div", f"{value} ({counted(count, 'run')})") for value, count in sorted(counts.items()))


def settings_text(settings: Mapping[str, Any], between: str = " = ") -> str:
    """Return names and values; numbers with at most ten digits."""
    texts = (format(value, ".10g" if isinstance(value, float) else "") for value in settings.values())
    return ", ".join(f"{key}{between}{text}" for key, text in zip(settings, texts, strict=True))


def settings_table(finished: dict[str, Column]) -> Markup:
    """Show the settings of the first run of each training; all runs of a job id have the same settings."""
    configs = {name: column.records[0].settings for name, column in finished.items()}
    rows = ([name, settings_text(config) or "none of its own"] for name, config in configs.items())
    return join([tag("h4", "Settings"), plain_table(["method", "settings"], rows, "Settings by method")])


def jobs_table(manifest: Manifest) -> Markup:
    rows = []
    for entry in manifest.entries:
        name = name_at(entry.label, entry.coverage)
        seeds = ", ".join(map(str, entry.seeds))
        rows.append([name, entry.method, entry.job or "–", seeds or "–"])
    return join([tag("h4", "Jobs"), plain_table(["column", "method", "job", "seeds"], rows, "Jobs")])
