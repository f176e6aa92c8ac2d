"""Where the name of a point goes, so that names cover neither points nor each other as far as there is room."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.plots.style import GREY, SMALL

Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""
STEPS = (4.5, 9.0, 15.0, 23.0, 33.0, 45.0)
"""Points from the centre of a mark to its name, in x, in y or in both."""
BESIDE = 1.5 * STEPS[0]
SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
MISREAD = 0.15


def overlap(a: Box, b: Box) -> float:
    """Area that two boxes share."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)


def box_at(point: tuple[float, float], size: tuple[float, float], side: tuple[int, int], step: float) -> Box:
    """A box of that size beside a point: `side` is −1, 0 or 1 in x and in y."""
    x = point[0] + side[0] * step + (side[0] - 1) / 2 * size[0]
    y = point[1] + side[1] * step + (side[1] - 1) / 2 * size[1]
    return x, y, x + size[0], y + size[1]


def distance(point: tuple[float, float], box: Box) -> float:
    """From a point to the nearest of a box."""
    x, y = nearest(point, box)
    return float(np.hypot(x - point[0], y - point[1]))


def nearest(point: tuple[float, float], box: Box) -> tuple[float, float]:
    return min(max(point[0], box[0]), box[2]), min(max(point[1], box[1]), box[3])


def leader(point: tuple[float, float], box: Box) -> list[Box]:
    """Small boxes along the line from a point to its name; none for a name that stands right beside it."""
    if distance(point, box) <= BESIDE:
        return []
    end = nearest(point, box)
    steps = [(point[0] + t * (end[0] - point[0]), point[1] + t * (end[1] - point[1])) for t in np.linspace(0.3, 1, 8)]
    return [(float(x) - 1, float(y) - 1, float(x) + 1, float(y) + 1) for x, y in steps]


def place(
    points: Sequence[tuple[float, float]], sizes: Sequence[tuple[float, float]], bounds: Box, obstacles: Sequence[Box]
) -> list[Box]:
    """A box for each point in turn: the nearest place that is free, else the one that covers least.

    A place that lies nearer to other points than to its own would be misread, and counts as partly covered.
    """
    placed: list[Box] = []
    taken = list(obstacles)
    for point, size in zip(points, sizes, strict=True):
        area = size[0] * size[1]
        dots = [(x - 3, y - 3, x + 3, y + 3) for x, y in points if (x, y) != point]
        costs = {}
        for step in STEPS:
            for side in SIDES:
                box = box_at(point, size, side, step)
                covered = sum(overlap(box, other) for other in taken)
                crossed = sum(overlap(part, other) for part in leader(point, box) for other in (*placed, *dots))
                misread = sum(distance(other, box) <= distance(point, box) for other in points if other != point)
                outside = area - overlap(box, bounds)
                costs[box] = round(10 * outside + covered + 5 * crossed + MISREAD * area * misread, 6)
        best = min(costs, key=lambda box: costs[box])
        placed.append(best)
        taken += [best, *leader(point, best)]
    return placed


def label_points(
    figure: Figure, axes: Axes, points: Sequence[tuple[float, float]], names: Sequence[str], crosses: Sequence[Box]
) -> None:
    """Write the names beside points, both in data coordinates, with a thin line where a name lies further off.

    `crosses` are the error bars in data coordinates. The layout is settled first: what is free depends on it.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    unit = figure.dpi / 72
    to_points = axes.transData.transform
    dots = [(float(x), float(y)) for x, y in to_points(points) / unit]
    texts = [axes.text(0, 0, name, fontsize=SMALL, va="bottom", ha="left", zorder=5) for name in names]
    extents = [text.get_window_extent(renderer) for text in texts]
    sizes = [(extent.width / unit, extent.height / unit) for extent in extents]
    frame = axes.get_window_extent(renderer)
    bounds = (frame.x0 / unit, frame.y0 / unit, frame.x1 / unit, frame.y1 / unit)
    obstacles: list[Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in dots]
    for left, bottom, right, top in crosses:
        (x0, y0), (x1, y1) = to_points((left, bottom)) / unit, to_points((right, top)) / unit
        middle_x, middle_y = (x0 + x1) / 2, (y0 + y1) / 2
        obstacles += [(x0, middle_y - 1, x1, middle_y + 1), (middle_x - 1, y0, middle_x + 1, y1)]
    back = axes.transData.inverted().transform
    for text, dot, box in zip(texts, dots, place(dots, sizes, bounds, obstacles), strict=True):
        text.set_position(tuple(back((box[0] * unit, box[1] * unit))))
        if distance(dot, box) > BESIDE:
            ends = back(unit * np.array([dot, nearest(dot, box)]))
            axes.plot(ends[:, 0], ends[:, 1], color=GREY, linewidth=0.4, zorder=1)
