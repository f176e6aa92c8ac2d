"""Work out which job runs when and where, by list scheduling of jobs that wait for each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush

TOLERANCE = 1e-6
"""Ten tenths of a device are one."""


@dataclass(frozen=True)
class Work:
    """A job as the schedule sees it."""

    name: str
    seconds: float
    """Alone on a device of speed 1."""
    needs: Mapping[str, float] = field(default_factory=dict)
    """Works that must have come so far: 1 is the end of one, 0.5 the middle."""
    share: float = 1.0
    """Of a device."""


@dataclass(frozen=True)
class Device:
    name: str
    speed: float = 1.0
    price: float | None = None
    """Of an hour."""


@dataclass(frozen=True)
class Placed:
    work: Work
    device: int
    start: float
    end: float

    def reaches(self, part: float) -> float:
        """Return the time at which so much of it is over."""
        return self.end if part >= 1 else self.start + part * (self.end - self.start)


@dataclass(frozen=True)
class Schedule:
    placed: tuple[Placed, ...]
    """In the order in which they start."""
    devices: tuple[Device, ...]
    begin: float = 0.0
    """When the devices are ready for their first job."""

    @property
    def makespan(self) -> float:
        return max((each.end for each in self.placed), default=0.0)

    @property
    def busy_seconds(self) -> float:
        """Return the busy time of whole devices; half a device for an hour is half an hour."""
        return sum(each.work.share * (each.end - each.start) for each in self.placed)

    @property
    def device_seconds(self) -> float:
        """Return the time of all devices from the beginning to the end, busy or not."""
        return len(self.devices) * self.makespan

    @property
    def utilisation(self) -> float:
        return self.busy_seconds / self.device_seconds if self.device_seconds else 0.0

    @property
    def cost(self) -> float | None:
        """Return the price of all devices from the beginning to the end; None unless each has one."""
        prices = [device.price for device in self.devices if device.price is not None]
        return self.makespan / 3600 * sum(prices) if len(prices) == len(self.devices) else None

    @cached_property
    def critical_path(self) -> "Chain":
        """Return the longest chain of works, which no number of devices could shorten."""
        return longest_chain([each.work for each in self.placed])

    @property
    def lower_bound(self) -> float:
        """Return the time before which no order of the works could end: longest chain, or all work shared out."""
        chain = self.critical_path.seconds / max(device.speed for device in self.devices)
        work = sum(each.work.seconds * each.work.share for each in self.placed)
        return self.begin + max(chain, work / sum(device.speed for device in self.devices))


@dataclass(frozen=True)
class Chain:
    """Works that wait for each other, first to last."""

    names: tuple[str, ...] = ()
    begun: float = 0.0
    """When the last of them can begin at the earliest, at speed 1."""
    seconds: float = 0.0
    """When it has ended then."""


def longest_chain(works: Sequence[Work]) -> Chain:
    """Return the longest chain of works. Each work must stand behind those it needs."""
    found: dict[str, Chain] = {}
    for work in works:
        ways = [(found[need], reached(found[need], part)) for need, part in work.needs.items()]
        before, begun = max(ways, key=lambda way: way[1], default=(Chain(), 0.0))
        found[work.name] = Chain((*before.names, work.name), begun, begun + work.seconds)
    return max(found.values(), key=lambda chain: chain.seconds, default=Chain())


def reached(chain: Chain, part: float) -> float:
    return chain.begun + part * (chain.seconds - chain.begun)


def simulate(works: Sequence[Work], devices: Sequence[Device], begin: float = 0.0) -> Schedule:
    """Place works as workers do: the first in line that can begin goes to the first device with room."""
    line, parts = list(works), awaited_parts(works)
    placed: dict[str, Placed] = {}
    running: list[Placed] = []
    moments = [begin]
    while line:
        if not moments:
            raise ValueError(f"'{line[0].name}' can never begin: it needs what is not there, or more than a device")
        now = heappop(moments)
        running = [each for each in running if each.end > now]
        for started in begin_now(line, running, placed, devices, now):
            for part in parts[started.work.name]:
                heappush(moments, started.reaches(part))
    return Schedule(tuple(placed.values()), tuple(devices), begin)


def awaited_parts(works: Sequence[Work]) -> dict[str, set[float]]:
    """Return the parts of each work that others wait for. Its end always counts, as it makes room."""
    parts = {work.name: {1.0} for work in works}
    for work in works:
        for need, part in work.needs.items():
            parts.get(need, set()).add(part)
    return parts


def begin_now(
    line: list[Work], running: list[Placed], placed: dict[str, Placed], devices: Sequence[Device], now: float
) -> list[Placed]:
    """Move what can begin from the line to the devices."""
    room = [1.0 + TOLERANCE] * len(devices)
    for each in running:
        room[each.device] -= each.work.share
    least, begun = min(work.share for work in line), []
    for work in list(line):
        if max(room) < least:
            break
        index = next((index for index, free in enumerate(room) if free >= work.share), None)
        if index is not None and all(has_come(placed.get(need), part, now) for need, part in work.needs.items()):
            begun.append(Placed(work, index, now, now + work.seconds / devices[index].speed))
            placed[work.name] = begun[-1]
            room[index] -= work.share
            line.remove(work)
    running += begun
    return begun


def has_come(need: Placed | None, part: float, now: float) -> bool:
    return need is not None and need.reaches(part) <= now
