"""Options that several commands share; a command's dataclass inherits them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from streams.commands.options import Arg, Given, Opt
from streams.commands.paths import must_be_folder, must_be_state, must_be_writable, must_exist

if TYPE_CHECKING:
    from neardup.evaluation.pairs.truth import Editions
    from streams.files.sources import ReadOptions

#: Inputs of commands that read pages.
INPUTS = (
    "WARC, WET, WACZ, JSON lines, Parquet, folders of these or of HTML; URLs of files, as s3:// or https://; - for "
    "standard input."
)
STATE = Path("neardup-state")
CPUS = os.cpu_count() or 1
#: Default of threads and processes that leave a processor to the main one.
THREADS = max(1, CPUS - 1)
SEED_MAX = (1 << 63) - 1


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
Seed = Annotated[int, Opt("Random seed of samples, splits and intervals.", low=0, high=SEED_MAX)]
Labels = Annotated[
    tuple[Path, ...], Opt("File of labels of pairs; may be repeated.", "--labels", metavar="FILE", check=must_exist)
]
Audits = Annotated[
    tuple[Path, ...],
    Opt("File of pairs that a scan or the matcher drew; may be repeated.", "--audit", metavar="FILE", check=must_exist),
]
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
        str | None, Opt("JSON lines, Parquet: the field of a document's id, which need not be a URL.", metavar="NAME")
    ] = None
    text_field: Annotated[str | None, Opt("JSON lines, Parquet: the field of a document's text.", metavar="NAME")] = (
        None
    )

    def reading(self) -> "ReadOptions":
        from streams.files.sources import ReadOptions
        from streams.formats.json import Fields

        return ReadOptions(self.base_url, self.follow_links, Fields(self.text_field, self.id_field))


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
