"""What several commands share: checks of paths, points in time, deciders, options that their dataclasses inherit."""

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from neardup.decider import ONLINE_RULES, Decider
from neardup.errors import BadInput
from neardup.scheme import Scheme
from streams.commands.options import Arg, Given, Opt
from streams.config.load import decider_numbers
from streams.config.sites import sites_of
from streams.errors import WrongUsage
from streams.files.input_formats import TABLES, TITLES

if TYPE_CHECKING:
    from neardup.evaluation.pairs.truth import Editions
    from streams.client import Start
    from streams.files.not_read import NotRead
    from streams.files.sources import ReadOptions

Paths = str | Path | Sequence[str | Path]
#: Inputs of commands that read pages.
INPUTS = f"{TITLES}, folders of these or of HTML; URLs of files, as s3:// or https://; - for standard input."
STATE = Path("neardup-state")
CPUS = os.cpu_count() or 1
#: Default of threads and processes that leave a processor to the main one.
THREADS = max(1, CPUS - 1)
SEED_MAX = (1 << 63) - 1
_AGO = re.compile(r"(\d{1,9})([smhd])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
RULES = ", ".join(ONLINE_RULES)


def _each(given: Paths) -> list[str]:
    return [str(given)] if isinstance(given, str | Path) else [str(one) for one in given]


def must_exist(given: Paths) -> None:
    """Raises WrongUsage for a path that does not exist or cannot be read. URLs and `-` are not checked."""
    for path in _each(given):
        if path == "-" or "://" in path:
            continue
        if not os.path.exists(path):
            raise WrongUsage(f"{path}: no such file or folder")
        if not os.access(path, os.R_OK):
            raise WrongUsage(f"{path}: cannot be read: permission denied")


def must_be_writable(given: Paths) -> None:
    """Raises WrongUsage for a file that cannot be written; `-` is standard output."""
    for path in (Path(one) for one in _each(given) if one != "-"):
        folder = path.absolute().parent
        if path.is_dir():
            raise WrongUsage(f"{path}: is a folder; name a file")
        if not folder.is_dir():
            raise WrongUsage(f"{path}: cannot be written: there is no folder {folder}")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise WrongUsage(f"{path}: cannot be written: permission denied")


def must_be_folder(given: Paths) -> None:
    """Raises WrongUsage for a folder that could not be made or written to."""
    for path in (Path(one).absolute() for one in _each(given)):
        if path.exists() and not path.is_dir():
            raise WrongUsage(f"{path}: is no folder; name a folder")
        nearest = next(one for one in (path, *path.parents) if one.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise WrongUsage(f"{path}: cannot be written: permission denied")


def must_be_state(state: Path) -> None:
    """Raises WrongUsage for what is no state directory."""
    if not (state / "scheme.json").is_file():
        raise WrongUsage(f"{state} is no state directory; `neardup scan FILE --state {state}` makes one")


def must_be_scan(state: Path) -> None:
    """Raises WrongUsage for what is no state directory of a scan."""
    must_be_state(state)
    if not (state / "log").is_dir():
        raise WrongUsage(f"{state} is the state directory of a matcher; name that of a scan")


@dataclass(frozen=True)
class Inputs:
    """Inputs as local files. copies: folder for further copies. not_read: what of the inputs is not read, so far."""

    paths: list[Path]
    copies: Path
    not_read: "NotRead"


@contextmanager
def inputs(given: Sequence[str | Path]) -> Iterator[Inputs]:
    """Yields inputs as local files (`streams.files.fetching`); copies of remote ones are removed at the end."""
    from streams.files.fetching import fetched
    from streams.files.not_read import NotRead

    not_read = NotRead()
    with tempfile.TemporaryDirectory(prefix="neardup-inputs-") as folder:
        yield Inputs(fetched(given, Path(folder), not_read), Path(folder), not_read)


def parse_start(text: str, now_ms: int) -> "Start":
    """`beginning`, `end`, a time ago (`30s`, `15m`, `2h`, `7d`), or a date and time (ISO 8601; local without a zone).

    now_ms, and a time in the result: ms since the epoch. Raises WrongUsage.
    """
    if text == "beginning":
        return "beginning"
    if text == "end":
        return "end"
    if ago := _AGO.fullmatch(text):
        return max(0, now_ms - int(ago[1]) * _UNIT_MS[ago[2]])
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise WrongUsage(
            f"{text[:40]!r} is no place to begin: beginning, end, a time ago as 15m, or a time as 2026-01-31T12:00"
        ) from None


def Reads(help: str, flags: str = "", metavar: str = "FILE") -> Opt:
    """A file that must exist."""
    return Opt(help, flags, metavar=metavar, check=must_exist)


def Writes(help: str) -> Opt:
    """A file that the command writes at its end."""
    return Opt(help, metavar="FILE", check=must_be_writable)


def Folder(help: str) -> Opt:
    """A folder that the command makes or writes to."""
    return Opt(help, metavar="DIR", check=must_be_folder)


#: Arguments and options of several commands, each once.
Pages = Annotated[tuple[str, ...], Arg("PATH...", INPUTS, check=must_exist)]
OptionalPages = Annotated[tuple[str, ...], Arg("[PATH]...", INPUTS, check=must_exist)]
Results = Annotated[tuple[Path, ...], Arg("PATH...", "Results as JSON lines; or pages, as for scan.", check=must_exist)]
Labels = Annotated[
    tuple[Path, ...], Opt("File of labels of pairs; may be repeated.", "--labels", metavar="FILE", check=must_exist)
]
Audits = Annotated[
    tuple[Path, ...],
    Opt("File of pairs that a scan or the matcher drew; may be repeated.", "--audit", metavar="FILE", check=must_exist),
]
Seed = Annotated[int, Opt("Random seed of samples, splits and intervals.", low=0, high=SEED_MAX)]
Seeds = Annotated[int, Opt("Cross-validations of each learner.", low=1, high=99)]
Folds = Annotated[int, Opt("Folds of each cross-validation.", low=2, high=100)]
ShardProcesses = Annotated[
    int | None,
    Opt("Processes that run the shards, beside this one; 0: `neardup shard` runs them.", low=0, high=256),
]
Workers = Annotated[int, Opt("Number of processes.", low=1, high=256)]
Adjudicator = Annotated[str, Opt("The labeller whose label counts where labels differ.", metavar="NAME")]
Numbers = Annotated[
    tuple[str, ...], Opt("A number of the decider, as tape_min=0.8; may be repeated.", "--set", metavar="NAME=NUMBER")
]
#: A state directory instead of files.
InsteadState = Annotated[
    Path | None, Opt("The state directory of a scan, instead of files.", metavar="DIR", check=must_be_state)
]


class Json(Given):
    as_json: Annotated[bool, Opt("Print JSON on standard output.", "--json")] = False


class Quiet(Given):
    quiet: Annotated[bool, Opt("Print no progress and no summary.", "--quiet -q")] = False


class BaseUrl(Given):
    base_url: Annotated[str | None, Opt("URL of a folder of pages; file names are appended.", metavar="URL")] = None


class Links(BaseUrl):
    follow_links: Annotated[bool, Opt("Read files behind symbolic links out of a folder, too.")] = False


class Documents(Links):
    """Files of pages with fields of their own."""

    id_field: Annotated[
        str | None, Opt(f"{TABLES}: the field of a document's id, which need not be a URL.", metavar="NAME")
    ] = None
    text_field: Annotated[str | None, Opt(f"{TABLES}: the field of a document's text.", metavar="NAME")] = None
    ids_across_files: Annotated[
        bool, Opt("An id names one document in all files, as of a site that is crawled again; not one in each file.")
    ] = False

    def reading(self) -> "ReadOptions":
        from streams.files.sources import ReadOptions
        from streams.formats.json import Fields

        fields = Fields(self.text_field, self.id_field)
        return ReadOptions(self.base_url, self.follow_links, fields, ids_across_files=self.ids_across_files)


class Truth(Given):
    """Natural truth: labels that follow from URLs."""

    natural: Annotated[bool, Opt("Label pairs by their URLs: one path in several releases is one page.")] = False
    releases: Annotated[
        str | None, Opt("Regular expression of the release in a path; implies --natural.", metavar="REGEX")
    ] = None
    items: Annotated[
        Path | None, Opt("File of the items that pages are about; implies --natural.", metavar="FILE", check=must_exist)
    ] = None

    def editions(self) -> "Editions | None":
        """The source of items and editions. Raises WrongUsage for more than one."""
        from streams.evaluation.evaluate import editions_of

        return editions_of(self.releases, self.items, self.natural)


class StateOption(Given):
    """The state directory of a scan."""

    state: Annotated[
        Path, Arg("[DIR]", "The state directory of a scan.", "--state", env="NEARDUP_STATE", check=must_be_state)
    ] = STATE


def rule_values(flag: str, name: str | None, others: Sequence[str] = ()) -> dict[str, Any]:
    """The decider's fields that select a rule by its name; none for one of `others`. Raises WrongUsage."""
    if not name or name in others:
        return {}
    if name not in ONLINE_RULES:
        raise WrongUsage(f"{flag} {name}: must be one of {', '.join([*others, *ONLINE_RULES])}")
    return {"rule": name}


def decider_of(
    rule: str | None = None, numbers: Sequence[str] = (), sites: Path | None = None
) -> Callable[[Scheme], Decider] | None:
    """What options require; None: what the state directory has. Raises WrongUsage."""
    if rule is None and not numbers and sites is None:
        return None
    values = {**rule_values("--rule", rule), **decider_numbers(numbers)}
    if sites is not None:
        try:
            values["sites"] = sites_of(sites)
        except BadInput as error:
            raise WrongUsage(f"--sites {error}") from None
    return lambda scheme: Decider(scheme=scheme.digest, **values)
