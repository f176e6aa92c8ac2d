"""The example of CONTRIBUTING: a file with a score, a network and a source, and a task that uses them."""

import re
from pathlib import Path

from tests.conftest import ROOT


def written(folder: Path) -> tuple[Path, Path]:
    """Write the plugin and the task as they are printed, and return their paths."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    text = text[text.index("## Scores, networks and sources of your own") :]
    plugin, task = folder / "own_parts.py", folder / "my_stripes.toml"
    for path, language in ((plugin, "python"), (task, "toml")):
        block = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
        assert block
        path.write_text(block[1])
    return plugin, task
