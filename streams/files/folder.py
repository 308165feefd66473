"""Lists a folder of input: its pages, or its files of other formats, and what of it is not read."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from neardup.page import CONTENT_TYPES
from streams.files.input_formats import FORMATS, PACKED, SUFFIXES
from streams.files.not_read import NotRead, is_by_product, why_not_read

_BESIDE_PAGES = "not scanned, as it lies beside pages; name the file itself to scan it"
_LEADS_OUT = "not scanned, as it is a link that leads out of the folder; --follow-links follows it"
_NO_FILE = "not scanned, as it is no file, or a link to none"
_NOT_FOLLOWED = "not scanned, as it is a link to a folder elsewhere; name that folder itself"
#: Suffixes of files that seldom lie beside pages by accident.
_CRAWLS = (*(suffix for each in FORMATS.values() if not each.asset for suffix in each.suffixes), *PACKED)
#: Holds a state directory's secret seed; its other files are no input.
_STATE_FILE = "scheme.json"


@dataclass
class Listing:
    """Files of a folder.

    pages: names below it, in their order. files: names of files of other formats, in their order; none is read if there
    are pages.
    """

    pages: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)


def listed(folder: Path, not_read: NotRead, *, follow_links: bool) -> Listing:
    """Lists a folder with its folders. follow_links: files that are links out of it are included.

    Every other file is noted in `not_read`. Raises OSError if the folder itself cannot be read.
    """
    found, others = Listing(), list[Path]()

    def unreadable(error: OSError) -> None:
        if Path(error.filename) == folder:
            raise error
        not_read.add(str(error.filename), f"cannot be read: {error.strerror}; nothing in it is scanned")

    for directory, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if _is_input(Path(directory, name), folder, not_read))
        hidden = any(part.startswith(".") for part in Path(directory).relative_to(folder).parts)
        for name in sorted(names):
            path = Path(directory, name)
            page, readable = path.suffix.lower() in CONTENT_TYPES, name.lower().endswith((*SUFFIXES, *PACKED))
            if is_by_product(name) or (hidden and not page and not readable):
                not_read.pass_over("." if hidden else name)
            elif not path.is_file():
                not_read.add(path, _NO_FILE)
            elif not page and not readable:
                others.append(path)
            elif not follow_links and leads_out(path, folder):
                not_read.add(path, _LEADS_OUT)
            elif page:
                found.pages.append(str(path.relative_to(folder)))
            else:
                found.files.append(path)
    found.pages.sort(key=os.fsencode)
    found.files.sort()
    _note_others(found, others, not_read)
    return found


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a file of a folder is a link to a file outside it."""
    return path.is_symlink() and not path.resolve().is_relative_to(folder.resolve())


def _is_input(path: Path, folder: Path, not_read: NotRead) -> bool:
    """Whether a folder in the folder is listed: no link, and no state directory."""
    if leads_out(path, folder):
        not_read.add(path, _NOT_FOLLOWED)
    elif (path / _STATE_FILE).is_file():
        not_read.pass_over(path.name)
    else:
        return not path.is_symlink()  # what a link within the folder leads to is listed anyway
    return False


def _note_others(found: Listing, others: list[Path], not_read: NotRead) -> None:
    """Beside pages lie images, scripts and data that belong to them; elsewhere each file may have been meant."""
    if found.pages:
        for path in found.files:
            if path.name.lower().endswith(_CRAWLS):
                not_read.add(path, _BESIDE_PAGES)
            else:
                not_read.pass_over(path.name)
    for path in sorted(others):
        if found.pages and not any(suffix in path.name.lower() for suffix in _CRAWLS):
            not_read.pass_over(path.name)
        else:
            not_read.add(path, why_not_read(path.name))
