"""Read and write amounts of memory and time as people do."""

import re

from benchmark.base.limits import shown

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
MOST_BYTES = 10**15
DAY = 86400.0
"""In seconds."""


def bytes_from_text(text: str) -> int:
    """Return the bytes that `2GB`, `500 MB`, `1.5g` or `0` mean, with powers of 1000."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt]?)b?", text.lower())
    if match is None:
        raise ValueError(f"expected an amount of memory such as 500MB or 2GB, got {shown(text)}")
    count = float(match[1]) * UNITS[match[2]]
    if count > MOST_BYTES:
        raise ValueError(f"expected at most {MOST_BYTES // 10**12}TB, got {shown(text)}: no machine has more memory")
    return round(count)


def counted(count: int, one: str, several: str = "") -> str:
    """Return a count with its noun: `1 job`, `2 jobs`, `1,000 jobs`."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def text_from_bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def unit_of_time(seconds: float) -> tuple[str, float]:
    """Return the largest unit of which there are at least two, and its length in seconds."""
    units = (("days", DAY), ("hours", 3600.0), ("minutes", 60.0))
    return next((unit for unit in units if seconds >= 2 * unit[1]), ("seconds", 1.0))


def two_digits(value: float) -> str:
    """Return an estimate with two digits, as it knows no more: 0.22, 3.5, 14, 1,200."""
    rounded = float(f"{value:.1e}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:.1f}" if rounded >= 1 else f"{rounded:g}"


def text_from_seconds(seconds: float) -> str:
    unit, length = unit_of_time(seconds)
    return f"{two_digits(seconds / length)} {unit}"


def device_hours(hours: float) -> str:
    """Return a text of device-hours, with the days where there are at least two."""
    if hours < 0.1:
        return f"{two_digits(60 * hours)} device-minutes"
    days = f" ({two_digits(hours / 24)} days)" if hours >= 48 else ""
    return f"{two_digits(hours)} device-hours{days}"
