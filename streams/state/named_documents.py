"""Documents that a person names: by a URL, by an id, or by a file and an id (`shard-0.jsonl#17`)."""

from collections.abc import Iterable

from neardup.errors import BadPage
from neardup.index.column_families import Family, Store
from neardup.limits import URL_BYTES_MAX
from neardup.urls import ids_named, normalise_url, one_named, url_hash
from streams.files.sources import SourceRecord


def urls_named(given: str, records: Iterable[SourceRecord], url_bytes_max: int = URL_BYTES_MAX) -> dict[str, str]:
    """Returns the documents that could be meant: by normalised URL, a name of each that names no other."""
    files: dict[str, list[str]] = {}
    for record in records:
        if names := record.files_of_ids:
            files[record.path] = names
    found = dict[str, str]()
    for name, url in ids_named(given, files):
        try:
            found.setdefault(normalise_url(url, url_bytes_max), name)
        except BadPage:
            found.setdefault(url, name)  # a rejected page has the URL that it came with
    return found


def indexed(given: str, records: Iterable[SourceRecord], store: Store, url_bytes_max: int = URL_BYTES_MAX) -> str:
    """Returns the normalised URL of a document that the index holds, or else the URL of what was named.

    Raises BadInput for an id that several documents have.
    """
    named = urls_named(given, records, url_bytes_max)
    rows = store.get_many(Family.URLS, [url_hash(url) for url in named])
    held = {url for url, row in zip(named, rows, strict=True) if row is not None}
    return one_named(given, named, held.__contains__) or next(iter(named))
