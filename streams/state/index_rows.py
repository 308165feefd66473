"""Shows the rows of an index: of a scan, a matcher, a judge or a shard, also while its process works.

Rows are read in their order, in bounded memory: an index of ten million pages takes minutes, not gigabytes.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
from neardup.sharded.epochs import Sharding
from neardup.sharded.shard import applied_to, owner_of
from neardup.sketch.sketch_record import Sketch
from neardup.urls import normalise_url, url_hash
from neardup.wording import counted
from streams.pipeline.folded_takedowns import takedowns_of
from streams.pipeline.matcher import LOG_PROGRAM, PROGRAM, Matcher
from streams.process.terminal import table_of
from streams.state.directory import kept_decider, shard_folder, snapshot

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


def inspect(store: Store, progress: RowsProgress = lambda rows: None, *, of_shard: bool = False) -> Inspection:
    """Read the whole index. of_shard: whether a shard wrote the rows of URLs, in their other form.

    Raises CorruptRecord with family and key.
    """
    found, read = Inspection(), 0
    for family in Family:
        name, rows = family.name.lower(), iter(store.scan(family))
        while batch := list(islice(rows, _BATCH)):
            found.rows[name] += len(batch)
            found.bytes[name] += sum(len(key) + len(value) for key, value in batch)
            if family is Family.KEYS:
                _count_keys(found, batch)
            elif family is Family.URLS and not of_shard:
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
    """An index as its process last flushed it, its decider, and the offset of the next message to fold.

    shards: the stores of a scan's shards, by number. owner: of the index of a single shard (`owner_of`), else "".
    """

    path: Path
    store: RocksSnapshot
    decider: Decider
    next_offset: int
    shards: Mapping[int, RocksSnapshot]
    owner: str

    def sketch_row(self, page_id: int) -> tuple[Store, bytes | None]:
        """The row of a page's sketch and its store: a shard's if it has the page, because a judge keeps a part."""
        stores: list[Store] = [self.store]
        if self.shards and (shard := self.shards.get(Sharding.of(self.decider).shard_of(page_id))):
            stores.insert(0, shard)
        rows = [(store, store.get_many(Family.SKETCHES, [id_key(page_id)])[0]) for store in stores]
        return next((row for row in rows if row[1] is not None), rows[-1])


def open_index(path: Path, held: ExitStack) -> Opened:
    """Opens the index of a state directory, also while its process works. Raises StateError, BadInput."""
    if not (path / "index").is_dir():
        raise BadInput(f"{path} holds no index; name a state directory")
    first = kept_decider(path)
    if first is None:
        raise StateError(f"{path / 'decider.json'} is missing; restore it")
    store = snapshot(path / "index", held)
    if owner := owner_of(store):
        return Opened(path.absolute(), store, first, applied_to(store), {}, owner)
    folders = {number: shard_folder(path, number) for number in range(first.shards if first.epoch else 0)}
    shards = {number: snapshot(folder, held) for number, folder in folders.items() if folder.is_dir()}
    matcher = Matcher(store, first)
    return Opened(path.absolute(), store, matcher.decider, matcher.next_offset, shards, "")


def overview(opened: Opened, progress: RowsProgress) -> tuple[Inspection, dict[str, Any]]:
    """Counts the rows. Returns the counts, and the same as plain values with the directory's own data and shards."""
    found = inspect(opened.store, progress, of_shard=bool(opened.owner))
    shards = []
    for number, store in opened.shards.items():
        plain = inspect(store, progress, of_shard=True).to_json()
        names = ("rows", "bytes", "keys", "hot")
        sizes = {name: plain[name] for name in names}
        shards.append({"shard": number, "next_offset": applied_to(store), "file_bytes": _file_bytes(store), **sizes})
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
        **({"owner": f"shard {opened.owner}"} if opened.owner else {}),
        **({"shards": shards} if opened.decider.epoch and not opened.owner else {}),
    }
    return found, summary


def _file_bytes(store: RocksSnapshot) -> dict[str, int]:
    return {family.name.lower(): size.file_bytes for family, size in store.sizes().items()}


def of_url(opened: Opened, url: str) -> dict[str, Any]:
    """Returns the row, sketch and cluster of a URL. Raises BadInput if the index has none."""
    _refuse_one_shard(opened)
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
    _refuse_one_shard(opened)
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
    store, row = opened.sketch_row(page_id)
    if row is None:
        raise BadInput(f"the index has no sketch of page {page_id}")
    rest = sketch_rows.rest_of_row(row)
    (other,) = store.get_many(Family.SKETCHES, [id_key(rest)]) if rest is not None else (None,)
    values = Sketch(sketch_rows.record_of_rows(row, other)).to_dict()
    if opened.decider.epoch and not opened.owner and store is opened.store:
        values["part"] = "what a judge keeps: without tapes, names, filter and keys, which are in the page's shard"
    return values


def _refuse_one_shard(opened: Opened) -> None:
    if opened.owner:
        raise BadInput(
            f"{opened.path} is the index of shard {opened.owner}, which has no rows of URLs and clusters; name the "
            "judge's directory"
        )


def shown(found: Inspection, summary: dict[str, Any]) -> Group:
    """Formats the result for a terminal."""
    head = Text(
        f"{summary['state']}: folded to offset {summary['next_offset']:,} by {summary['rule']} ({summary['decider']})"
    )
    if "owner" in summary:
        head = Text(
            f"{summary['state']}: {summary['owner']}, with the effects of messages before {summary['next_offset']:,}"
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
    if "shards" in summary:
        parts += _shards_shown(summary["shards"], summary["next_offset"])
    for done in summary["takedowns"][-5:]:
        parts.append(Text(f"taken down at offset {done['offset']:,}: {done['what']}, {counted(done['pages'], 'page')}"))
    for pages, cluster in found.largest[:5]:
        parts.append(Text(f"cluster {cluster}: {counted(pages, 'page')}"))
    return Group(*parts)


def _shards_shown(shards: list[dict[str, Any]], next_offset: int) -> list[Any]:
    """Formats the shards of a judge for a terminal."""
    if not shards and not next_offset:
        return [Text("no message is folded yet; a shard has no rows before the end of the second epoch")]
    if not shards:
        return [Text("shards: their indexes are not here; name the folder of each (DIR.shards/NUMBER)")]
    table = table_of("shard", ">sketches", ">keys", ">hot", ">on disk", ">effects to message")
    for one in shards:
        rows, on_disk = one["rows"], sum(one["file_bytes"].values())
        figures = (rows.get("sketches", 0), rows.get("keys", 0), sum(one["hot"].values()), on_disk, one["next_offset"])
        table.add_row(str(one["shard"]), *(f"{figure:,}" for figure in figures))
    return [Text(""), table, Text("")]
