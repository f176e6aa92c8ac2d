"""One file per method, found by its file name; files with a leading underscore are shared parts."""

import hashlib
import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from benchmark.errors import UserError
from benchmark.interface import Method

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Registry:
    """The methods of this folder and of the user's own files; a worker process gets a copy and loads for itself."""

    plugins: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        for plugin in self.plugins:
            if plugin.suffix != ".py" or not plugin.is_file():
                raise UserError(f"plugin '{plugin}' is not a Python file that exists")
            if plugin.stem in built_in_names():
                raise UserError(f"plugin '{plugin}' has the name of a built-in method; rename the file")

    def names(self) -> list[str]:
        return sorted([*built_in_names(), *(plugin.stem for plugin in self.plugins)])

    def get(self, name: str) -> type[Method]:
        plugin = self.plugin(name)
        if plugin is None:
            return method_class(importlib.import_module(f"methods.{name}"), name)
        try:
            return load_plugin(plugin)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"plugin '{plugin}' cannot be loaded: {type(error).__name__}: {error}") from error

    def plugin(self, name: str) -> Path | None:
        return next((plugin for plugin in self.plugins if plugin.stem == name), None)

    def source_hash(self, name: str) -> str | None:
        """Identifies a user's own code; built-in methods are identified by their config alone."""
        plugin = self.plugin(name)
        return None if plugin is None else hashlib.sha256(plugin.read_bytes()).hexdigest()


def built_in_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def load_plugin(path: Path) -> type[Method]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UserError(f"plugin '{path}' is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return method_class(module, str(path))


def method_class(module: object, where: str) -> type[Method]:
    found = getattr(module, "METHOD", None)
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise UserError(f"'{where}' must end with METHOD = YourClass, a subclass of benchmark.interface.Method")
    missing = [name for name in ("title", "reference", "labels") if not getattr(found, name, None)]
    if missing:
        raise UserError(f"'{where}': class {found.__name__} lacks {', '.join(missing)}")
    return found
