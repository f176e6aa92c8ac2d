"""Show the examples of docstrings as code: each block that begins with `>>>` gets a fence."""

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"(?:^|(?<=\n\n))(>>> .*?)(?=\n\n|\Z)", re.DOTALL)


class FencedExamples(Extension):
    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Put fences around the examples of a docstring."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\1\n```", obj.docstring.value)
