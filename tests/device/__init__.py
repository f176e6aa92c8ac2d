"""A simulated accelerator, the torch device "sim", for tests of what goes wrong on a real one (see sim.cpp).

In this process: `tests.device.load()`. In every process started with the folders of `child_path()` in PYTHONPATH the
device is there after `import torch`, because torch loads the entry point in site/ by itself; `load` is then called
before that import ends, so nothing here may import more of torch than it needs.
"""

import fcntl
import hashlib
import os
import platform
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent


def child_path() -> str:
    """The PYTHONPATH of a process that shall have the device."""
    return os.pathsep.join([str(HERE.parent.parent), str(HERE / "site")])


def load() -> None:
    """Gives this process the device, once."""
    import torch

    if hasattr(torch, "sim"):
        return
    torch.ops.load_library(_library())
    torch.utils.rename_privateuse1_backend("sim")
    from tests.device import module

    torch._register_device_module("sim", module)
    torch.utils.generate_methods_for_privateuse1_backend()
    if limit := os.environ.get("SIM_LIMIT_BYTES"):
        for device in range(module.device_count()):
            module.limit_memory(int(limit), device)
    if (after := os.environ.get("SIM_LOSE_AFTER")) and (once := os.environ.get("SIM_LOSE_ONCE")):
        torch.ops.sim.lose_after(int(after), once)


def _library() -> Path:
    """The compiled sim.cpp: built once for each torch and each source, whoever comes first while the others wait."""
    import torch

    source = HERE / "sim.cpp"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    folder = HERE / "build" / f"{torch.__version__}-{platform.machine()}-{digest}"
    built = folder / "built"
    if not built.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel gives it back if this process dies
            if not built.exists():
                from torch.utils import cpp_extension

                (folder / "work").mkdir(exist_ok=True)
                (folder / "work" / "lock").unlink(missing_ok=True)  # torch's own, of a build that was killed
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    cpp_extension.load(
                        "sim_device",
                        [str(source)],
                        extra_cflags=["-O1", "-w"],
                        build_directory=str(folder / "work"),
                        with_cuda=False,
                        is_python_module=False,
                    )
                built.touch()
    return folder / "work" / "sim_device.so"
