"""Choose how a method looks in every figure and in the report: by its label alone, whatever is shown beside it.

Labels of configs/labels.txt take colours in that order; any other, e.g. a plugin's, gets a colour by its name's hash.
"""

from dataclasses import dataclass
from functools import cache
from zlib import crc32

from benchmark.config.load import CONFIG_DIR
from benchmark.measure.scores import TITLES
from benchmark.tables.columns import Column

PALETTE = (
    ("#D55E00", "#E8762C"),
    ("#0072B2", "#1B86D0"),
    ("#009E73", "#1FBF92"),
    ("#CC79A7", "#CC79A7"),
    ("#E69F00", "#E69F00"),
    ("#56B4E9", "#9FDCFF"),
    ("#1C1F23", "#E6E7E9"),
)
"""On white and on a dark page: Okabe and Ito's, without their yellow, which a thin line on white loses."""
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.4), (1.2, 1.2), (6, 1.2, 1.2, 1.2), (4, 1.2, 1.2, 1.2, 1.2, 1.2))
"""Line and gap in turn, in widths of the line."""
MARKS = 8
OTHER_ROWS = 8
"""Labels that are not listed are spread over so many rounds through the palette."""


@dataclass(frozen=True)
class Look:
    """Positions in the palette, among the dashes and among the marks. A further score of a method has hollow marks."""

    colour: int
    dash: int
    mark: int
    hollow: bool


def column_look(column: Column) -> Look:
    return look_of(column.label, "" if column.published else column.score)


def look_of(label: str, score: str = "") -> Look:
    """Return the look of a method. A score that it was not published with has its colour, but another line and mark."""
    row, colour = divmod(position_of(label), len(PALETTE))
    further = score_position(score)
    return Look(colour, (row + further) % len(DASHES), (colour + 2 * row + 3 * further) % MARKS, bool(score))


def position_of(label: str) -> int:
    """Return the position of a label. Labels that are not listed come in later rounds: none looks like a listed one."""
    listed = listed_labels()
    if label in listed:
        return listed.index(label)
    rows, colour = divmod(crc32(label.encode()), len(PALETTE))
    return len(PALETTE) * (-(-len(listed) // len(PALETTE)) + rows % OTHER_ROWS) + colour


def score_position(score: str) -> int:
    if not score:
        return 0
    return 1 + (list(TITLES).index(score) if score in TITLES else crc32(score.encode()))


@cache
def listed_labels() -> tuple[str, ...]:
    return tuple((CONFIG_DIR / "labels.txt").read_text(encoding="utf-8").splitlines())
