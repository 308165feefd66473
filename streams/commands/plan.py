import re
from typing import Annotated

from neardup.limits import DAY_MS
from streams.commands.options import Opt, command, values
from streams.commands.output import show
from streams.commands.shared import Json
from streams.config.settings import PAGES_MS, SHARDS_MAX, SKETCHES_MS, VERDICTS_MS

_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "y": 365}
_FACTORS = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_PAGES_MAX, _DAYS_MAX = 10**11, 36_500


def _pages(text: str) -> int:
    found = re.fullmatch(r"([0-9][0-9_,]*(?:\.[0-9]+)?)([kMG]?)", text)
    value = round(float(found[1].replace("_", "").replace(",", "")) * _FACTORS[found[2]]) if found else 0
    if not 1 <= value <= _PAGES_MAX:
        raise ValueError(f"{text[:40]!r}: a number from 1 to 100G, as 250000, 10M or 1.5G")
    return value


def _days(text: str) -> float:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([hdwy])", text)
    value = float(found[1]) * _DAYS[found[2]] if found else 0.0
    if not 0 < value <= _DAYS_MAX:
        raise ValueError(f"{text[:40]!r}: a time up to 100y, as 12h, 30d, 6w or 1y")
    return value


def _time(help: str, default_ms: int = 0) -> Opt:
    shown = f" [default: {default_ms // DAY_MS}d]" if default_ms else ""
    return Opt(help + shown, metavar="TIME", parse=_days, shows_default=not default_ms)


class Options(Json):
    pages_per_day: Annotated[int, Opt("Fetched pages, as 250000, 10M, 1.5G.", metavar="PAGES", parse=_pages)]
    retention: Annotated[float, _time("How far back the index reaches, as 90d, 6w, 1y.")]
    page_kb: Annotated[float, Opt("Size of a mean page's body.", low=0.1, high=10_000, metavar="KB")] = 50.0
    peak: Annotated[float, Opt("Rate at the peak, relative to the mean.", low=1, high=1_000, metavar="FACTOR")] = 3
    replicas: Annotated[int, Opt("Replicas of every topic.", low=1, high=9)] = 3
    pages_retention: Annotated[float, _time("Retention of the pages: how long a sketcher may be down.", PAGES_MS)] = (
        PAGES_MS / DAY_MS
    )
    sketches_retention: Annotated[
        float, _time("Retention of the sketch log: how far back it can be folded.", SKETCHES_MS)
    ] = SKETCHES_MS / DAY_MS
    verdicts_retention: Annotated[
        float, _time("Retention of the verdicts: how long an indexer may be down.", VERDICTS_MS)
    ] = VERDICTS_MS / DAY_MS

    shards: Annotated[int, Opt("Shards of a judge; 0: one matcher.", low=0, high=SHARDS_MAX)] = 0


@command(
    "plan",
    "neardup plan --pages-per-day 10M --retention 90d",
    "neardup plan --pages-per-day 100M --retention 90d --shards 8",
    "neardup plan --pages-per-day 250k --retention 1y --page-kb 80 --peak 5 --json",
    codes="Exit codes: 0 done, 2 wrong usage.",
)
def plan(options: Options) -> None:
    """Compute what a crawl needs: processors, memory, disks, partitions, Kafka's space, checkpoints.

    The plan uses measured figures; --json shows them with the commands that measured them. Test it with a day of your
    crawl.
    """
    from streams.config.plan import Crawl, Shown

    show(Shown(Crawl(**values(options, "as_json"))), as_json=options.as_json)
