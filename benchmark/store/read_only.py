"""Read a results folder and never write to it, in all processes of a job but the first."""

from typing import Any

from benchmark.store.store import Store


class ReadOnlyStore(Store):
    """A results folder that is only read. The first process of the job has the same results and writes them."""

    def write_prediction(self, *args: Any, **kwargs: Any) -> str:
        """Write nothing, and return no checksum."""
        return ""

    write_history = write_prediction

    def write_record(self, *args: Any, **kwargs: Any) -> None:
        """Leave the folder as it is."""

    remove_checkpoint = write_record

    def tidy(self, *args: Any, **kwargs: Any) -> bool:
        return False
