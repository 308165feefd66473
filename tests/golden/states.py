"""Golden states: `python -m tests.golden.states` packs a scan's directory as this version makes it, once a version.

What is packed stays as it is: every later version must open it, or refuse it with the command that helps. Only
RocksDB's own log and lock are left out.
"""

import io
import json
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

from neardup.index.column_families import Family
from neardup.scheme import Scheme
from neardup.sketch.takedown_hashes import of_url
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from tests.streams.archives import crawl, write_warc

FOLDER = Path(__file__).with_name("states")
_LEFT_OUT = ("lock", "LOCK", "LOG")


def make(folder: Path) -> Path:
    """A scan of a few pages, of which one was taken down."""
    archive = write_warc(folder / "a.warc", crawl(6))
    with ScanDirectory.open(folder / "state", scheme=Scheme(seed=7)) as state:
        scan([archive], state)
        state.forget(of_url("http://a.example/page2.html"))
    return folder / "state"


def content(state: ScanDirectory) -> dict[str, object]:
    """The content that every later version must read."""
    return {
        "verdicts": list(state.verdicts()),
        "messages": state.log.end(),
        "rows": {family.name: len(list(state.store.scan(family))) for family in Family if family is not Family.META},
    }


def pack(state: Path, target: Path) -> None:
    with tarfile.open(target, "w:xz") as out:
        for path in sorted(path for path in state.rglob("*") if path.is_file()):
            if path.name.startswith(_LEFT_OUT):
                continue
            entry = tarfile.TarInfo(path.relative_to(state).as_posix())
            entry.size = path.stat().st_size
            out.addfile(entry, io.BytesIO(path.read_bytes()))


if __name__ == "__main__":
    work, target = Path(sys.argv[1]), FOLDER / f"{version('neardup')}.tar.xz"
    if target.exists():
        raise SystemExit(f"{target} is there, and never changes")
    FOLDER.mkdir(exist_ok=True)
    made = make(work)
    with ScanDirectory.open(made) as opened:
        target.with_suffix("").with_suffix(".json").write_text(json.dumps(content(opened), indent=1) + "\n")
    pack(made, target)
