"""`neardup forget`: pages are taken down, in a scan's directory or on the stream."""

from pathlib import Path

from neardup.sketch.takedown import Takedown, of_prefix, of_site, of_url
from streams.config.settings import Settings
from streams.errors import WrongUsage
from streams.files.state import State
from streams.line.takedowns import Done


def takedown_of(url: str | None, site: str | None, prefix: str | None) -> Takedown:
    """Raises WrongUsage unless it is one of them."""
    if sum(value is not None for value in (url, site, prefix)) != 1:
        raise WrongUsage("name one: a URL, --site or --prefix")
    if url is not None:
        return of_url(url)
    return of_site(site) if site is not None else of_prefix(prefix or "")


def forget_scan(path: Path, takedown: Takedown) -> Done:
    """Takes pages out of a scan's directory. Raises StateError, CorruptRecord."""
    with State.open(path) as state:
        return state.forget(takedown)


def forget_stream(settings: Settings, takedown: Takedown) -> int:
    """Writes the takedown into the logs of all generations; its offset in the settings' own. Raises as `forget`."""
    from streams.roles import forget
    from streams.roles.runtime import greet

    greet(settings, "match")
    return forget(settings, takedown)


def unreached(settings: Settings, scan: Path | None) -> list[str]:
    """Where the pages still are, and what to do there."""
    if scan is not None:
        return [
            f"the files that were scanned, and the bytes of {scan / 'log'} and {scan / 'verdicts'}: reports, exports "
            "and views leave the pages out, a replay of what was said before does not; for good they go with the "
            "directory: scan what is left of the sources into another one, and delete this one",
            "what was written elsewhere: --out files, reports, exports, checkpoints of before (the next "
            "`neardup checkpoint` removes those)",
        ]
    names = settings.topics
    return [
        f"topics {names.pages} and {names.rejected}, which hold the pages themselves, until their retention "
        "(or kafka-delete-records): a sketcher that reads them again brings the pages back",
        f"the bytes of topic {names.sketches}, until its retention; who folds it forgets them at this place",
        f"topic {names.verdicts}, which names their URLs and titles, until its retention, or for ever where it is "
        "compacted and nothing else; `neardup views --rebuild` behind that; and the index that was told: take them "
        "out there",
        "checkpoints of before: they are removed when the next one is made",
    ]
