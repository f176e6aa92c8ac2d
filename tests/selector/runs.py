"""A small task whose methods train in a moment, for tests that export what was trained."""

from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.library.guarantee_options import ExportOptions
from benchmark.library.selector import Exported, export_selector
from tests.conftest import TINY, run_here

SHORT = (
    TINY.replace("epochs = 4", "epochs = 3")
    .replace("train_images = 170", 'train_images = 300\noutliers = "digits"')
    .replace("test_images = 200", "test_images = 90")
    .replace("checkpoint_seconds = 0\n", "")
    .replace("model_coverages = [90, 80]", "model_coverages = [90]")
    .replace("warmup_epochs = 2", "warmup_epochs = 1")
    .replace("cycles = 2", "cycles = 3")
    + "\n[method.confid_net]\nepochs = 2\n[method.sele]\nepochs = 2\n[method.sptd]\ncheckpoints = 3\n"
)


def train(folder: Path, *labels: str, keep: tuple[str, ...] = ("--keep-weights", "--keep-features")) -> Path:
    """Train labels of the task short.toml in a folder; return the folder of results."""
    task = folder / "short.toml"
    task.write_text(SHORT)
    words = ("--datasets", task, "--methods", *labels, "--reference", labels[0], "--seeds", 1)
    made = run_here(*words, "--results", folder / "results", "-q", *keep)
    assert made.returncode == 0, made.stderr
    return folder / "results"


def exported(results: Path, label: str, to: Path, **more: object) -> Exported:
    """Export a run of the task; by default with a threshold that keeps half of the images."""
    asked: dict[str, object] = {"coverage": 50.0, "from_test": 50.0, "quiet": True, **more}
    task = str(results.parent / "short.toml")
    return export_selector(ExportOptions(task=task, method=label, to=to, results=str(results), **asked))  # type: ignore[arg-type]


def refusal(results: Path, label: str, to: Path, **more: object) -> str:
    """The message with which an export is refused. Nothing is written."""
    before = sorted(to.parent.iterdir())
    try:
        exported(results, label, to, **more)
    except UserError as error:
        assert sorted(to.parent.iterdir()) == before
        return str(error)
    raise AssertionError("it was exported")
