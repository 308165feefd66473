"""Files of the inputs that are not read: which ones, and why.

A file that may hold pages is a problem, which is named. By-products of archivers and of file systems are counted.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath

from neardup.wording import counted

#: Problems that are named; later ones are counted by suffix.
NAMED_MAX = 9
#: Suffixes that a line names, and different ones that are counted.
_SUFFIXES_NAMED, _SUFFIXES_MAX, _SUFFIX_CHARS_MAX = 8, 100, 16
#: Checksums and signatures, indexes of archives, logs, locks; and files of file systems, Spark, BagIt and data sets.
_BY_PRODUCTS = re.compile(
    r".*\.(md5|sha1|sha256|sha512|crc|crc32|sfv|sig|asc|cdxj?(\.gz)?|idx|log(\.gz)?|lock)"
    r"|(md5|sha1|sha256|sha512)sums?|thumbs\.db|ehthumbs\.db|desktop\.ini"
    r"|_success|_metadata|_common_metadata|_(committed|started)_.*"
    r"|bagit\.txt|bag-info\.txt|(tag)?manifest-[a-z0-9]+\.txt"
    r"|datapackage(-digest)?\.json|dataset_infos?\.json|readme(\.md)?|licen[cs]e(\.md)?|wget-log"
)
_UNFINISHED = re.compile(r".*\.(open|part|partial|tmp|temp|incomplete|crdownload|download|inprogress|writing)")
_PACKED = re.compile(r".*\.(zip|7z|rar|tar|tgz|tbz2?|txz|tar\.(gz|bz2|xz|zst)|lz4|br|lzo|z)")
_HIDDEN, _NO_SUFFIX = "hidden", "without suffix"


def is_by_product(name: str) -> bool:
    """Whether a file is hidden or a by-product, by its name: one that holds no pages."""
    return name.startswith(".") or _BY_PRODUCTS.fullmatch(name.lower()) is not None


def why_not_read(name: str) -> str:
    """Why a file of a folder is not read, by its name, and what to do."""
    if _UNFINISHED.fullmatch(name.lower()):
        return (
            "not read: by its name a crawler still writes it, or left it unfinished; once it is whole, rename it, or "
            "name the file itself"
        )
    if _PACKED.fullmatch(name.lower()):
        return "not read: unpack it first"
    return "not read: its name ends like none of the formats that are read; name the file itself to have it recognised"


class NotRead:
    """What is not read of the inputs of one command."""

    def __init__(self) -> None:
        self._named: list[str] = []
        self._more: Counter[str] = Counter()
        self._passed_over: Counter[str] = Counter()

    def add(self, path: PurePath | str, why: str) -> None:
        """Adds a problem. why: may begin with the path."""
        if len(self._named) < NAMED_MAX:
            self._named.append(why if why.startswith(str(path)) else f"{path}: {why}")
        else:
            _count(self._more, PurePath(path).name)

    def pass_over(self, name: str) -> None:
        """Counts a file that holds no pages by its name."""
        _count(self._passed_over, name)

    def merge(self, other: "NotRead") -> None:
        """Adds what another one holds, behind what this one holds."""
        room = max(0, NAMED_MAX - len(self._named))
        self._named += other._named[:room]
        for line in other._named[room:]:
            _count(self._more, PurePath(line.partition(": ")[0]).name)
        self._more += other._more
        self._passed_over += other._passed_over

    @property
    def lines(self) -> list[str]:
        """The problems, a line each, and one for those that are not named."""
        more = self._more.total()
        return [*self._named, *([f"{counted(more, 'more file')} not read: {_by_suffix(self._more)}"] if more else [])]

    @property
    def passed_over(self) -> str:
        """The files that were passed over, as one line; empty without any."""
        count = self._passed_over.total()
        return f"{counted(count, 'file')} ({_by_suffix(self._passed_over)})" if count else ""


def _count(counter: Counter[str], name: str) -> None:
    suffix = _HIDDEN if name.startswith(".") else PurePath(name).suffix.lower()[:_SUFFIX_CHARS_MAX] or _NO_SUFFIX
    counter[suffix if suffix in counter or len(counter) < _SUFFIXES_MAX else "others"] += 1


def _by_suffix(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    rest = sum(count for _, count in ordered[_SUFFIXES_NAMED:])
    named = [f"{count:,} {suffix}" for suffix, count in ordered[:_SUFFIXES_NAMED]]
    return ", ".join([*named, *([f"{rest:,} others"] if rest else [])])
