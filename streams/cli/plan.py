"""The command that says what a crawl needs."""

import re
from typing import Annotated, Any

import typer

from neardup.limits import DAY_MS
from streams.cli.options import JsonOption, examples, print_json
from streams.config.retention import PAGES_MS, SKETCHES_MS, VERDICTS_MS

app = typer.Typer(rich_markup_mode=None)

_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "y": 365}
_MANY = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_PAGES_MAX, _DAYS_MAX = 10**11, 36_500


def _pages(text: str) -> int:
    found = re.fullmatch(r"([0-9][0-9_,]*(?:\.[0-9]+)?)([kMG]?)", text)
    value = round(float(found[1].replace("_", "").replace(",", "")) * _MANY[found[2]]) if found else 0
    if not 1 <= value <= _PAGES_MAX:
        raise typer.BadParameter(f"{text[:40]!r}: a number from 1 to 100G, as 250000, 10M or 1.5G")
    return value


def _days(text: str) -> float:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([hdwy])", text)
    value = float(found[1]) * _DAYS[found[2]] if found else 0.0
    if not 0 < value <= _DAYS_MAX:
        raise typer.BadParameter(f"{text[:40]!r}: a time up to 100y, as 12h, 30d, 6w or 1y")
    return value


def _days_option(flag: str, told: str) -> Any:
    return typer.Option(flag, metavar="TIME", parser=_days, help=told)


@app.command(
    short_help="Say what a crawl needs: processors, memory, disks.",
    epilog=examples(
        "neardup plan --pages-per-day 10M --retention 90d",
        "neardup plan --pages-per-day 250k --retention 1y --page-kb 80 --peak 5 --json",
        codes="Exit codes: 0 done, 2 wrong usage.",
    ),
)
def plan(
    *,
    pages_per_day: Annotated[
        int, typer.Option(metavar="PAGES", parser=_pages, help="That are fetched, as 250000, 10M, 1.5G.")
    ],
    retention: Annotated[float, _days_option("--retention", "How far back the index reaches, as 90d, 6w, 1y.")],
    page_kb: Annotated[float, typer.Option(min=0.1, max=10_000, metavar="KB", help="Body of a mean page.")] = 50.0,
    peak: Annotated[
        float, typer.Option(min=1, max=1_000, metavar="FACTOR", help="Pages/s at the peak, by the mean.")
    ] = 3,
    replicas: Annotated[int, typer.Option(min=1, max=9, help="Of every topic.")] = 3,
    pages_retention: Annotated[
        float, _days_option("--pages-retention", "Of the topic of pages: how long a sketcher may be away.")
    ] = f"{PAGES_MS // DAY_MS}d",  # type: ignore[assignment]  # what its parser takes
    sketches_retention: Annotated[
        float, _days_option("--sketches-retention", "Of the log of sketches: how far back an index can be folded.")
    ] = f"{SKETCHES_MS // DAY_MS}d",  # type: ignore[assignment]
    verdicts_retention: Annotated[
        float, _days_option("--verdicts-retention", "Of the topic of verdicts: how long an indexer may be away.")
    ] = f"{VERDICTS_MS // DAY_MS}d",  # type: ignore[assignment]
    as_json: JsonOption = False,
) -> None:
    """Say what a crawl of some size needs: processors, memory, disks, partitions, Kafka's space, checkpoints.

    From figures that were measured, which --json shows with the commands that measured them. A plan is no more exact
    than these: try with a day of your own crawl.
    """
    from rich.console import Console

    from streams.config.capacity import Crawl, Shown

    shown = Shown(
        Crawl(
            pages_per_day,
            retention,
            page_kb=page_kb,
            peak=peak,
            replicas=replicas,
            pages_retention=pages_retention,
            sketches_retention=sketches_retention,
            verdicts_retention=verdicts_retention,
        )
    )
    if as_json:
        print_json(shown.to_json())
    else:
        Console().print(shown)
