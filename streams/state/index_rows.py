"""Shows the rows of an index: of a scan or a matcher, also while its process works.

Rows are read in their order, in bounded memory: an index of ten million pages takes minutes, not gigabytes.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from neardup.decider import Decider
from neardup.errors import BadInput, StateError
from neardup.index import sketch_rows
from neardup.index.column_families import Family, Store
from neardup.index.posting_rows import is_hot
from neardup.index.rocks import RocksSnapshot
from neardup.index.rows import NO_PAGE, decode_cluster, decode_member, decode_url, id_key
from neardup.rules.key_families import SIMILARITY_BYTES, family_of
from neardup.sketch.sketch_record import Sketch
from neardup.urls import normalise_url, url_hash
from neardup.wording import counted
from streams.pipeline.folded_takedowns import takedowns_of
from streams.pipeline.matcher import LOG_PROGRAM, PROGRAM, Matcher
from streams.process.terminal import table_of
from streams.state.directory import kept_decider, snapshot

MEMBERS_SHOWN, LARGEST_SHOWN = 50, 10
_BATCH = 1024

#: Called with the rows read so far.
RowsProgress = Callable[[int], None]


@dataclass(slots=True)
class Inspection:
    """Counts of an index.

    rows, bytes: number of rows, and bytes of keys and values before compression, by column family.
    standing: number of URLs by standing; a member has the standing of its last verification.
    keys, hot: numbers of rows, and of hot rows, of the `keys` family by kind of key.
    largest: number of pages and id of the clusters with the most pages.
    """

    rows: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    standing: Counter[str] = field(default_factory=Counter)
    keys: Counter[str] = field(default_factory=Counter)
    hot: Counter[str] = field(default_factory=Counter)
    largest: list[tuple[int, int]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        counts = {name: dict(getattr(self, name)) for name in ("rows", "bytes", "standing", "keys", "hot")}
        return {**counts, "largest_clusters": [{"pages": pages, "cluster": cluster} for pages, cluster in self.largest]}


def inspect(store: Store, progress: RowsProgress = lambda rows: None) -> Inspection:
    """Read the whole index. Raises CorruptRecord with family and key."""
    found, read = Inspection(), 0
    for family in Family:
        name, rows = family.name.lower(), iter(store.scan(family))
        while batch := list(islice(rows, _BATCH)):
            found.rows[name] += len(batch)
            found.bytes[name] += sum(len(key) + len(value) for key, value in batch)
            if family is Family.KEYS:
                _count_keys(found, batch)
            elif family is Family.URLS:
                found.standing.update(decode_url(value).standing.value for _, value in batch)
            elif family is Family.CLUSTERS:
                sizes = ((decode_cluster(value).size, int.from_bytes(key, "big")) for key, value in batch)
                pairs = [*found.largest, *((size, cluster) for size, cluster in sizes if size > 1)]
                found.largest = sorted(pairs, reverse=True)[:LARGEST_SHOWN]
            read += len(batch)
            progress(read)
    return found


def _count_keys(found: Inspection, batch: Sequence[tuple[bytes, bytes]]) -> None:
    for key, value in batch:
        name = family_of(key).name.lower()
        found.keys[name] += 1
        if len(key) == SIMILARITY_BYTES:
            found.hot[name] += is_hot(value)


@dataclass(frozen=True, slots=True)
class Opened:
    """An index as its process last flushed it, its decider, and the offset of the next message to fold."""

    path: Path
    store: RocksSnapshot
    decider: Decider
    next_offset: int


def open_index(path: Path, held: ExitStack) -> Opened:
    """Opens the index of a state directory, also while its process works. Raises StateError, BadInput."""
    if not (path / "index").is_dir():
        raise BadInput(f"{path} holds no index; name a state directory")
    first = kept_decider(path)
    if first is None:
        raise StateError(f"{path / 'decider.json'} is missing; restore it")
    store = snapshot(path / "index", held)
    matcher = Matcher(store, first)
    return Opened(path.absolute(), store, matcher.decider, matcher.next_offset)


def overview(opened: Opened, progress: RowsProgress) -> tuple[Inspection, dict[str, Any]]:
    """Counts the rows. Returns the counts, and the same as plain values with the directory's own data."""
    found = inspect(opened.store, progress)
    index, log = (row or b"" for row in opened.store.get_many(Family.META, [PROGRAM, LOG_PROGRAM]))
    summary = {
        "state": str(opened.path),
        "program": index.decode(),
        "log_program": log.decode(),
        "next_offset": opened.next_offset,
        "scheme": opened.decider.scheme,
        "decider": opened.decider.digest,
        "rule": opened.decider.rule,
        "file_bytes": _file_bytes(opened.store),
        "takedowns": [done.to_json() for done in takedowns_of(opened.store)],
        **found.to_json(),
    }
    return found, summary


def _file_bytes(store: RocksSnapshot) -> dict[str, int]:
    return {family.name.lower(): size.file_bytes for family, size in store.sizes().items()}


def of_url(opened: Opened, url: str) -> dict[str, Any]:
    """Returns the row, sketch and cluster of a URL. Raises BadInput if the index has none."""
    hashed = url_hash(normalise_url(url))
    (row,) = opened.store.get_many(Family.URLS, [hashed])
    if row is None:
        raise BadInput(f"{url}: the index has no row of this URL")
    held = decode_url(row)
    values: dict[str, Any] = {"url": normalise_url(url), **held._asdict(), "standing": held.standing.value}
    if held.live:
        values["cluster"] = of_cluster(opened, held.cluster)
        values["sketch"] = sketch_of(opened, held.page_id)
    return values


def of_cluster(opened: Opened, cluster: int) -> dict[str, Any]:
    """Returns a cluster's row, the URL of its representative, and its first other members.

    `canonical` is that of a verdict; `content_of` is None for a cluster without it. Raises BadInput if there is no
    cluster with this id.
    """
    (row,) = opened.store.get_many(Family.CLUSTERS, [id_key(cluster)])
    if row is None:
        raise BadInput(f"there is no cluster {cluster}")
    held_row = decode_cluster(row)
    values: dict[str, Any] = held_row._asdict()
    values["content_of"] = None if held_row.content_of == NO_PAGE else held_row.content_of
    members = []
    for key, value in opened.store.first(Family.MEMBERS, id_key(cluster), MEMBERS_SHOWN):
        member = decode_member(value)
        (held,) = opened.store.get_many(Family.URLS, [member.url_hash])
        page = decode_url(held).page_id if held is not None else None
        url = sketch_of(opened, page)["url"] if page is not None else ""
        members.append({"member": int.from_bytes(key[8:], "big"), "page_id": page, "url": url})
    representative = sketch_of(opened, held_row.current)["url"]
    values["canonical"] = held_row.canonical or representative
    plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in values.items()}
    return {"id": cluster, **plain, "url": representative, "members": members}


def sketch_of(opened: Opened, page_id: int) -> dict[str, Any]:
    """Returns every field of the sketch of a page. Raises BadInput if the index has none."""
    (row,) = opened.store.get_many(Family.SKETCHES, [id_key(page_id)])
    if row is None:
        raise BadInput(f"the index has no sketch of page {page_id}")
    rest = sketch_rows.rest_of_row(row)
    (other,) = opened.store.get_many(Family.SKETCHES, [id_key(rest)]) if rest is not None else (None,)
    return Sketch(sketch_rows.record_of_rows(row, other)).to_dict()


def shown(found: Inspection, summary: dict[str, Any]) -> Group:
    """Formats the result for a terminal."""
    head = Text(
        f"{summary['state']}: folded to offset {summary['next_offset']:,} by {summary['rule']} ({summary['decider']})"
    )
    begun = Text(
        f"begun by neardup {summary['program'] or '(unknown)'}, its log by {summary['log_program'] or '(unknown)'}"
    )
    sizes = table_of("family", ">rows", ">bytes", ">a row", ">on disk")
    for family in Family:
        name = family.name.lower()
        rows, size = found.rows[name], found.bytes[name]
        if rows:
            each = f"{size / rows:,.0f}"
            sizes.add_row(name, f"{rows:,}", f"{size:,}", each, f"{summary['file_bytes'].get(name, 0):,}")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.standing.items()))
    hot = ", ".join(f"{count:,} of {found.keys[kind]:,} {kind}" for kind, count in sorted(found.hot.items()) if count)
    parts: list[Any] = [head, begun, Text(""), sizes, Text(""), Text(f"URLs: {kinds or 'none'}")]
    parts.append(Text(f"hot keys: {hot or 'none'}"))
    for done in summary["takedowns"][-5:]:
        parts.append(Text(f"taken down at offset {done['offset']:,}: {done['what']}, {counted(done['pages'], 'page')}"))
    for pages, cluster in found.largest[:5]:
        parts.append(Text(f"cluster {cluster}: {counted(pages, 'page')}"))
    return Group(*parts)
