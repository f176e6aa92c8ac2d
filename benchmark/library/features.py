"""Compute the features of a task's images once, and write a task file that trains on them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.files import check_folder, write_if_changed
from benchmark.base.names import is_plain
from benchmark.base.program import program
from benchmark.base.units import counted, text_from_bytes, text_from_seconds
from benchmark.config.evaluation import EvaluationConfig
from benchmark.config.load import load_task, task_path
from benchmark.config.task import FEATURES, TaskConfig
from benchmark.data.devices import default_settings, device_kind, first_devices
from benchmark.jobs.job import Methods
from benchmark.jobs.plan import resolve_config
from benchmark.library.feature_options import FeaturesOptions
from benchmark.library.registry import load_methods
from benchmark.library.settings import folders_of
from benchmark.train.preflight import check_recipe, filled_in
from benchmark.train.pretrained.feature_files import compute_features
from benchmark.train.pretrained.features import Wanted, plain_name, probe

BATCH_SIZE = 256
RECIPE: Mapping[str, Mapping[str, Any]] = {
    "network": {"name": "mlp", "widths": [256], "dropout": 0.5},
    "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 5e-4},
    "schedule": {"name": "cosine"},
}
"""How a small network is trained on features: seconds for a job."""
STEPS, LEAST_EPOCHS, MOST_EPOCHS = 2000, 10, 50
"""About so many steps, as far as the epochs allow: more of them learn the training images by heart."""
SAME = ("methods", "reference", "baseline", "coverages", "seeds", "model_coverages", "checkpoint")
SAME_DATA = (
    "val",
    "official_val",
    "train_images",
    "test_images",
    "val_images",
    "test_holdout",
    "leave_out",
    "train_labels",
    "train_labels_sha256",
)
"""The fields of a task, and of its data, that the new task has as they are."""
SAME_SET = ("kind", "name", "file", "columns")
"""The fields of an evaluation set that the new task has as they are."""
WARMUP, RATE = "warmup_epochs", "lr"


def make_features(options: FeaturesOptions) -> str:
    """Compute the features that are missing, write the task file, and return what to type next."""
    methods = load_methods(options.plugin)
    target = options.to or Path(f"{task_path(options.task).stem}-{plain_name(options.network)}.toml")
    check_target(target)
    base, wanted = read_request(options)
    folder = compute_features(wanted)
    write_if_changed(target, task_text(base, wanted, folder, methods).encode())
    return f"wrote {target}; train on it with: {program()} --datasets {target}"


def plan_features(options: FeaturesOptions) -> str:
    """Return how many images there are, how long their features take after a probe, and how many bytes they have."""
    load_methods(options.plugin)
    _, wanted = read_request(options)
    counts = ", ".join(f"{count:,} {name}" for name, count in wanted.counts.items())
    lasts = "nothing to compute, they are there" if wanted.folder.is_dir() else text_from_seconds(probe(wanted))
    return (
        f"{counted(wanted.num_images, 'image')} ({counts}), {wanted.width:,} numbers each: "
        f"{text_from_bytes(wanted.bytes)} in '{wanted.folder}'\ntime: {lasts}"
    )


def read_request(options: FeaturesOptions) -> tuple[TaskConfig, Wanted]:
    """Return the task as its file has it, and what is to be computed. Refuse what cannot be."""
    kind, folders = device_kind(options.device), folders_of(options)
    weights = options.weights if options.weights == "default" else Path(options.weights).resolve()
    network = {"name": options.network, "weights": weights, "input_size": options.size, "normalise": options.normalise}
    changes = [f"network.{name}={value}" for name, value in network.items()]
    base = load_task(options.task, options.set)
    task = filled_in(load_task(options.task, [*options.set, *changes], default_settings(kind)), folders)
    if base.data.source == FEATURES:
        raise UserError(f"{base.name}: its data are features already; name the task of the images")
    devices = ("cpu",) if kind == "cpu" else tuple(first_devices(options.device, 1))
    wanted = Wanted(task, folders, devices, options.dtype, options.batch)
    if wanted.facts.are_vectors:
        raise UserError(f"{base.name}: its data are vectors, and a network of images cannot read them")
    check_recipe(task, wanted.facts)
    return base, wanted


def check_target(target: Path) -> None:
    if target.suffix != ".toml" or not is_plain(target.stem):
        raise UserError(f"--to: expected the name of a task file, such as faces.toml, got '{target}'")
    check_folder(target.parent, "the folder ", "--to")


def task_text(base: TaskConfig, wanted: Wanted, folder: Path, methods: Methods) -> str:
    """Return the task file for the features of a task's images."""
    network = wanted.task.network
    title = f"{base.title} (features of {plain_name(network.name)})"
    data = {"source": FEATURES, "path": str(folder)} | said(base.data, SAME_DATA)
    epochs = epochs_for(wanted.task, wanted.counts["train"])
    lines = [
        f"# The images of {base.name} as features of {network.name}, images of {network.input_size or 'their own'} "
        "pixels; written by `features`.",
        *toml_lines({"title": title} | said(base, SAME) | {"epochs": epochs, "batch_size": BATCH_SIZE}),
    ]
    for name, table in {"data": data, **RECIPE}.items():
        lines += ["", f"[{name}]", *toml_lines(table)]
    for name, table in method_tables(base, epochs, methods).items():
        lines += ["", f"[method.{json.dumps(name, ensure_ascii=False)}]", *toml_lines(table)]
    for each in base.evaluate:
        if fits(each):
            lines += ["", "[[evaluate]]", *toml_lines(said(each, SAME_SET))]
    return "\n".join(lines) + "\n"


def fits(config: EvaluationConfig) -> bool:
    """Tell whether an evaluation set is about the test images themselves, in a file; others need images."""
    return config.kind in ("humans", "groups") and bool(config.file)


def epochs_for(task: TaskConfig, count: int) -> int:
    """Return the number of epochs for so many training images, or for the part of them that the task uses."""
    used = min(count, task.data.train_images or count)
    return round(min(max(STEPS * BATCH_SIZE / used, LEAST_EPOCHS), MOST_EPOCHS))


def method_tables(base: TaskConfig, epochs: int, methods: Methods) -> dict[str, dict[str, Any]]:
    """Return the settings of methods: warm-ups keep their share of the training, rates are those of another network."""
    tables = {name: {key: value for key, value in table.items() if key != RATE} for name, table in base.method.items()}
    for owner in methods.names():
        method = methods.get(owner)
        if WARMUP in getattr(method.Config, "__dataclass_fields__", {}):
            label = next(iter(method.labels))
            found = getattr(resolve_config(base, label, owner, method), WARMUP)
            tables.setdefault(owner, {}).setdefault(WARMUP, found)
    for table in tables.values():
        if WARMUP in table:
            table[WARMUP] = min(round(epochs / base.epochs * int(table[WARMUP])), epochs - 1)
    return {name: table for name, table in tables.items() if table}


def toml_lines(table: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table of plain values."""
    return [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in table.items()]


def said(config: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a config that say something."""
    return {name: value for name in names if (value := getattr(config, name))}
