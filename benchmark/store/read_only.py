"""Read a results folder and never write to it: in all processes of a job but the first, and where one watches."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmark.store.store import Store


class ReadOnlyStore(Store):
    """A results folder that is only read. Another process has the same results, and writes them."""

    def write_prediction(self, *args: Any, **kwargs: Any) -> str:
        """Write nothing, and return no checksum."""
        return ""

    write_history = write_prediction

    def write_record(self, *args: Any, **kwargs: Any) -> None:
        """Leave the folder as it is."""

    remove_checkpoint = write_record

    @contextmanager
    def claim(self, *args: Any, **kwargs: Any) -> Iterator[bool]:
        """Claim nothing: a lock is a file."""
        yield False

    def tidy(self, *args: Any, **kwargs: Any) -> bool:
        return False
