"""Work out which job runs when and where, by list scheduling of jobs that wait for each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush

from benchmark.jobs.job import Job

TOLERANCE = 1e-6
"""For rounding: ten jobs that take a tenth of a device each must fit on it."""


@dataclass(frozen=True)
class Work:
    """A job as the schedule sees it."""

    name: str
    seconds: float
    """Alone on a device of speed 1."""
    needs: Mapping[str, float] = field(default_factory=dict)
    """Works that it waits for, and the part of each that must be done: 1 is all of it."""
    share: float = 1.0
    """Of a device."""


def make_works(
    jobs: Sequence[Job],
    seconds: Callable[[Job], float],
    awaited_part: Callable[[Job, Job], float | None],
    share: Callable[[Job], float] = lambda job: 1.0,
) -> list[Work]:
    """Return jobs as works that wait for each other.

    `awaited_part` returns the part of a trunk that must be done before a job can branch off; None if it need not wait.
    """
    trunks = {(job.snapshot_folder, epoch): job for job in jobs for epoch in job.snapshots}
    folders, works = {job.folder for job in jobs}, []
    for job in jobs:
        needs = {str(need.folder): 1.0 for need in job.needs if need.folder in folders}
        trunk = trunks.get(job.branching_point) if job.branching_point else None
        part = awaited_part(trunk, job) if trunk else None
        if trunk and part is not None:
            needs[str(trunk.folder)] = part
        works.append(Work(str(job.folder), seconds(job), needs, share(job)))
    return works


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
        """Return the time at which this part of it is done."""
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

    def reaches(self, part: float) -> float:
        """Return the time at which this part of the last of them is done."""
        return self.begun + part * (self.seconds - self.begun)


def longest_chain(works: Sequence[Work]) -> Chain:
    """Return the longest chain of works. Each work must stand behind those it needs."""
    found: dict[str, Chain] = {}
    for work in works:
        ways = [(found[need], found[need].reaches(part)) for need, part in work.needs.items()]
        before, begun = max(ways, key=lambda way: way[1], default=(Chain(), 0.0))
        found[work.name] = Chain((*before.names, work.name), begun, begun + work.seconds)
    return max(found.values(), key=lambda chain: chain.seconds, default=Chain())


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
        ready = all(need in placed and placed[need].reaches(part) <= now for need, part in work.needs.items())
        if index is not None and ready:
            begun.append(Placed(work, index, now, now + work.seconds / devices[index].speed))
            placed[work.name] = begun[-1]
            room[index] -= work.share
            line.remove(work)
    running += begun
    return begun
