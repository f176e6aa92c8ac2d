"""Find out where commands that only read results may write: a folder under version control is left as it is."""

from pathlib import Path

from benchmark.base.files import check_folder

WRITTEN = ("manifests/", "paper/", "tables/", "figures/", "report.html")
"""What commands leave in a results folder, beside its records."""


def place_to_write(results: Path, out: Path | None) -> Path | None:
    """Return a folder that can be written, or None where the results are to be left as they are."""
    folder = out or (None if is_under_version_control(results) else results)
    if folder is not None:
        check_folder(folder, "", "--out DIR")
    return folder


def left_alone(results: Path) -> str:
    """Say why nothing is written, and what to do."""
    return f"'{results}' is under version control, so this command does not change it; add --out DIR to write elsewhere"


def is_under_version_control(results: Path) -> bool:
    """Tell whether git's index names what commands write there. Only read it: git would run what its config says."""
    folder = results.resolve()
    top = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    if top is None:
        return False
    below = folder.relative_to(top).as_posix()
    names = [name if below == "." else f"{below}/{name}" for name in WRITTEN]
    try:
        index = (git_folder(top / ".git") / "index").read_bytes()
    except OSError:
        return False
    return any(name.encode() in index for name in names)


def git_folder(path: Path) -> Path:
    """Return `.git` itself, or where it points to in further work trees and submodules."""
    if path.is_dir():
        return path
    return path.parent / path.read_text(encoding="utf-8", errors="replace").strip().removeprefix("gitdir: ")
