"""Show what the commands that write into a results folder do now: each of their jobs, and when they will end.

Times are given as they are, and the page's script says how long ago they were: what stays is not sent again.
"""

from collections import Counter
from collections.abc import Sequence

from benchmark.base.units import counted
from benchmark.live.journal import OVER, JobState, Progress
from benchmark.report.health import ending_texts, without_folders
from benchmark.report.markup import Markup, details, join, plain_table, tag

SHOWN = 300
"""The most jobs of a list."""
SHOWN_APART = ("running", "elsewhere", "waiting", "failed", "diverged")
WORDS = {"elsewhere": "run by another command"}
NOBODY = (
    "No command is running in this folder. When one begins, its jobs appear here; the page looks every two seconds."
)


def now_section(commands: Sequence[Progress]) -> Markup:
    """Return what runs, as a section of the page."""
    bodies = [command(progress) for progress in commands] or [tag("p", NOBODY, class_="lead")]
    return tag("section", tag("h1", "What runs now"), bodies, id="now", class_="now")


def command(progress: Progress) -> Markup:
    """Return how far a command has come, and the list of its jobs."""
    jobs, counts = progress.jobs, Counter(job.state for job in progress.jobs)
    over = sum(counts[state] for state in OVER)
    bar = tag("progress", value=over, max=max(len(jobs), 1), aria_label="jobs that have ended")
    working = [job for job in jobs if job.state in ("running", "elsewhere")]
    broken = [job for job in jobs if job.state in ("failed", "diverged")]
    return tag(
        "article",
        tag("p", tag("strong", f"{over} of {counted(len(jobs), 'job')} ended"), tag("span", rest(counts))),
        bar,
        tag("p", times(progress), class_="caption"),
        jobs_table(working) if working else "",
        broken_table(broken) if broken else "",
        folded("Waiting", [job for job in jobs if job.state == "waiting"]),
        folded("Done", [job for job in jobs if job.state == "done"]),
        class_="card command",
    )


def rest(counts: Counter[str]) -> str:
    return "".join(f" · {counts[state]} {WORDS.get(state, state)}" for state in SHOWN_APART if counts[state])


def times(progress: Progress) -> Markup:
    """Return since when a command has run, and how long it will."""
    before = f"{counted(progress.done_before, 'job')} were done before. " if progress.done_before else ""
    began = join(["Begun ", when("ago", progress.began), "; last news ", when("ago", progress.news), ". "])
    if progress.over:
        unfinished = any(job.state not in OVER for job in progress.jobs)
        words = "It was stopped before its end; the same command goes on from there." if unfinished else "It has ended."
        return join([began, before, tag("strong", words)])
    if progress.end is None:
        return join([began, before, "How long it will take is known after the first epoch."])
    return join([began, before, "About ", tag("strong", when("left", progress.end)), " left."])


def when(kind: str, at: float) -> Markup:
    """Return a moment, which the page's script turns into the time since then, or until then."""
    return tag("time", "–", **{f"data_{kind}": f"{at:.0f}"})


def jobs_table(jobs: Sequence[JobState]) -> Markup:
    heading = ["job", "seed", "epoch", "done", "loss", "accuracy", "health"]
    return join([plain_table(heading, map(job_row, jobs[:SHOWN]), "Jobs that run"), more(jobs)])


def job_row(job: JobState) -> list[Markup | str]:
    facts, (_, *numbers) = job.facts, ending_texts(job.rows[-1:])
    name = f"{facts.task} {facts.label}"
    if job.state == "elsewhere":
        return [name, str(facts.seed), job.state, "", *numbers]
    done = job.epochs_done + job.within
    share = done / facts.epochs if facts.epochs else job.within
    epoch = f"{job.epochs_done}/{facts.epochs}" if facts.epochs else "–"
    return [name, str(facts.seed), epoch, tag("progress", value=f"{min(share, 1.0):.3f}", max=1), *numbers]


def broken_table(jobs: Sequence[JobState]) -> Markup:
    """List the jobs that have no result, with the reason."""
    rows = ([f"{job.facts.task} {job.facts.label}", str(job.facts.seed), reason(job)] for job in jobs[:SHOWN])
    return tag("div", plain_table(["job", "seed", "what happened"], rows, "Jobs without a result"), class_="health")


def reason(job: JobState) -> str:
    return without_folders(job.reason or job.state)


def folded(title: str, jobs: Sequence[JobState]) -> Markup:
    """Return a list of jobs that the reader can open."""
    if not jobs:
        return Markup()
    items = (tag("li", f"{job.facts.task} {job.facts.label} seed {job.facts.seed}") for job in jobs[:SHOWN])
    return details(f"{title}: {counted(len(jobs), 'job')}", tag("ul", items, class_="notes"), more(jobs))


def more(jobs: Sequence[JobState]) -> Markup:
    left = len(jobs) - SHOWN
    return tag("p", f"and {counted(left, 'job')} more", class_="note") if left > 0 else Markup()
