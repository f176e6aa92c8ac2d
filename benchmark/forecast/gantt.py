"""Draw a simulated run: a bar for each job, and a lane for each job that a device runs at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from benchmark.base.units import counted, device_hours, text_from_seconds, unit_of_time
from benchmark.figures import style
from benchmark.figures.style import BLACK, COLOURS, GREY, short_name
from benchmark.forecast.outlook import Forecast
from benchmark.jobs.job import Job
from benchmark.launch.placement import Placed

LANE, TALLEST, LOWEST = 0.2, 7.0, 0.8
"""Inches: the height of one lane where there are few, and the largest and smallest height of all lanes together."""
LINE, LETTER, PLOT = 0.14, 0.062, 6.0
"""Inches: the height of a line of text, the width of a letter, the length of the time axis."""


def save_chart(forecast: Forecast, folder: Path) -> list[Path]:
    """Draw a simulated run and write it to some files; return them."""
    with style.house_style():
        return style.save(Chart(forecast).draw(), folder, "schedule")


@dataclass(frozen=True)
class Chart:
    """The picture of a simulated run."""

    forecast: Forecast

    @cached_property
    def lanes(self) -> list[list[Placed]]:
        return lanes_of(self.forecast.schedule.placed)

    @cached_property
    def height(self) -> float:
        """Return the height of all lanes together, in inches."""
        return min(max(LANE * len(self.lanes), LOWEST), TALLEST)

    @cached_property
    def unit(self) -> tuple[str, float]:
        """Return the unit of the time axis: its name, and its length in seconds."""
        return unit_of_time(self.forecast.schedule.makespan)

    @cached_property
    def colours(self) -> dict[str, str]:
        """Return the colour of each task."""
        tasks = dict.fromkeys(self.job(each).task.name for each in self.forecast.schedule.placed)
        return {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(tasks)}

    def job(self, placed: Placed) -> Job:
        return self.forecast.jobs[placed.work.name]

    def draw(self) -> Figure:
        figure = style.new_figure(style.DOUBLE, self.height + 0.85, caption(self.forecast))
        axes = figure.subplots()
        for lane, placed in enumerate(self.lanes):
            for each in placed:
                self.draw_bar(axes, each, lane)
        self.name_lanes(axes)
        axes.set_xlim(0, self.forecast.schedule.makespan / self.unit[1] * 1.002)
        axes.set_xlabel(self.unit[0])
        style.panel_name(axes, self.title())
        figure.legend(handles=list(self.legend()), loc="outside upper left", ncols=6, handlelength=1.6)
        return figure

    def draw_bar(self, axes: Axes, placed: Placed, lane: int) -> None:
        job, length = self.job(placed), self.unit[1]
        critical = placed.work.name in self.forecast.schedule.critical_path.names
        fill = lighter(self.colours[job.task.name]) if job.until else to_rgb(self.colours[job.task.name])
        start, width = placed.start / length, (placed.end - placed.start) / length
        bar = Rectangle((start, lane - 0.42), width, 0.84, facecolor=fill, zorder=4 if critical else 3)
        bar.set(edgecolor=BLACK if critical else "white", linewidth=1.1 if critical else 0.4)
        axes.add_patch(bar)
        text, inches = f"{job.label} {job.seed}", PLOT * (placed.end - placed.start) / self.forecast.schedule.makespan
        if LETTER * len(text) < inches and self.height / len(self.lanes) >= LINE:
            shown = axes.text(start + width / 2, lane, style.no_formula(text), ha="center", va="center_baseline")
            shown.set(color=BLACK if sum(fill) > 1.5 else "white", zorder=5, fontsize=style.SMALL)

    def name_lanes(self, axes: Axes) -> None:
        """Write the name of each device beside its first lane, as far as there is room."""
        devices = [lane[0].device for lane in self.lanes]
        firsts = [lane for lane, device in enumerate(devices) if device not in devices[:lane]]
        step = max(1, -(-int(100 * len(firsts) * LINE) // int(100 * self.height)))
        names = [f"{self.forecast.schedule.devices[devices[lane]].name} {devices[lane] + 1}" for lane in firsts]
        axes.set_yticks(firsts[::step], [short_name(name, 18) for name in names[::step]])
        axes.set_ylim(len(devices) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        for lane in firsts[1:]:
            axes.axhline(lane - 0.5, color="#E4E4E4", linewidth=0.5)

    def title(self) -> str:
        schedule = self.forecast.schedule
        cost = f", cost {schedule.cost:,.0f}" if schedule.cost is not None else ""
        return (
            f"{text_from_seconds(schedule.makespan)}, devices {schedule.utilisation:.0%} busy, "
            f"{device_hours(schedule.device_seconds / 3600)}{cost}"
        )

    def legend(self) -> Iterator[Patch]:
        for name, colour in self.colours.items():
            yield Patch(color=colour, label=short_name(name))
        if any(self.job(each).until for each in self.forecast.schedule.placed):
            yield Patch(color=lighter(GREY), label="lighter: shared warm-up")
        yield Patch(facecolor="white", edgecolor=BLACK, label="critical path")


def lanes_of(placed: Sequence[Placed]) -> list[list[Placed]]:
    """Return the lanes, ordered by device. Each bar goes to the first free lane of its device, so no bars overlap."""
    lanes: dict[int, list[list[Placed]]] = {}
    for each in placed:
        own = lanes.setdefault(each.device, [])
        free = next((lane for lane in own if lane[-1].end <= each.start), None)
        if free is None:
            own.append([each])
        else:
            free.append(each)
    return [lane for device in sorted(lanes) for lane in lanes[device]]


def lighter(colour: str) -> tuple[float, float, float]:
    """Return a paler version of a colour, for shared warm-ups."""
    red, green, blue = (1 - 0.45 * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def caption(forecast: Forecast) -> list[str]:
    """Return the sentences below the picture."""
    schedule = forecast.schedule
    chain = " → ".join(forecast.jobs[name].name for name in schedule.critical_path.names)
    amounts = f"{counted(len(schedule.placed), 'job')} on {counted(len(schedule.devices), 'device')}"
    sentences = [f"{amounts}, simulated; critical path: {chain}.", "A bar with room for it bears method and seed."]
    if schedule.begin:
        sentences.append(f"Workers take {schedule.begin:.1f} seconds to start.")
    if forecast.unknown:
        sentences.append(f"Left out, for no step time is known: {', '.join(forecast.unknown)}.")
    return sentences
