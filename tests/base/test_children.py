"""Processes that are started run neither the user's script again nor modules of the current folder."""

import os
import subprocess
import sys
from pathlib import Path

from benchmark.base.children import SAFE_PATH, safe_path, without_script
from tests.conftest import ROOT

SCRIPT = """
from pathlib import Path
with Path("proof").open("a") as file:
    file.write("executed ")
from benchmark.base.prefetch import ahead, processes
with processes() as pool:
    print(list(ahead(pool, abs, range(-30, 0), 8)) == list(range(30, 0, -1)))
"""


def test_a_script_without_a_guard_is_not_run_again_by_a_pool(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(tmp_path / "script.py")]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "True\n", "")
    assert (tmp_path / "proof").read_text() == "executed "


def test_all_is_as_before_afterwards() -> None:
    main, before = sys.modules["__main__"], os.environ.get(SAFE_PATH)
    with safe_path(), without_script():
        assert not hasattr(sys.modules["__main__"], "__file__")
        assert os.environ[SAFE_PATH] == "1"
    assert sys.modules["__main__"] is main
    assert os.environ.get(SAFE_PATH) == before
