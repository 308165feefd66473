"""The one door between foreign bytes and the program: what a decoder raises becomes a rejected page.

Pages, records and files come from the web. A decoder that has a defect must not end a scan at each start, or each
sketcher at the same record for ever. So all decoders (of codecs, archives, tables, folders) are called through the
functions here, and pages are sketched through `streams.pipeline.sketching`, which uses them. `BadPage` gives its own
reason. Any other exception is a defect: the page is rejected with the exception's type, and one log line names the
record and the line of code.

These still stop the process: other errors of neardup (a store of bodies that is away, a broken invariant), OSError of a
file that is read, MemoryError, and what is no `Exception` (KeyboardInterrupt). A damaged file is no defect: its reader
reports the damage.
"""

from collections.abc import Callable, Iterator
from pathlib import PurePath
from traceback import extract_tb
from typing import TypeVar

from neardup.errors import BadPage, NeardupError
from streams.formats.compressed import Damaged
from streams.process import logs

T = TypeVar("T")
_log = logs.get("decode")


def contained(decode: Callable[[], T], rejected: Callable[[str], T], **where: object) -> T:
    """Returns what `decode` returns, or `rejected(reason)` if it raises BadPage or has a defect.

    where: the record's position, as fields of the log line: topic, partition and offset, or file and position.
    """
    try:
        return decode()
    except BadPage as error:
        return rejected(str(error))
    except (NeardupError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a defect of any decoder
        return rejected(defect("the decoder", error, where))


def contained_reading(items: Iterator[T], ended: Callable[[str], None], **where: object) -> Iterator[T]:
    """Yields the items of a reader. A defect of the reader ends them: `ended` gets the reason.

    Raises what a reader raises on purpose: OSError, Damaged and errors of neardup.
    """
    try:
        yield from items
    except (NeardupError, OSError, MemoryError, Damaged):
        raise
    except Exception as error:  # noqa: BLE001 - a defect of any reader
        ended(f"{defect('the reader', error, where)}; the rest is not read")


def defect(what: str, error: Exception, where: dict[str, object]) -> str:
    """Logs a defect once, with the line of code that raised, and returns the reason without the page's bytes."""
    reason = f"{what} failed with {type(error).__name__}"
    if where:
        last = extract_tb(error.__traceback__)[-1]
        code = f"{PurePath(last.filename).name}:{last.lineno}"
        _log.error("a page is rejected by a defect of neardup; report it", reason=reason, code=code, **where)
    return reason
