"""Amounts of memory as people write them."""

import re

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def bytes_from_text(text: str) -> int:
    """`2GB`, `500 MB`, `1.5g`, `0`; powers of 1000."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", text.lower())
    if found is None:
        raise ValueError(f"expected an amount of memory such as 500MB or 2GB, got '{text}'")
    return round(float(found[1]) * UNITS[found[2]])


def text_from_bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
