"""Implements `neardup inspect`: the content of a state directory or a checkpoint, and its consistency."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from neardup.decider import Decider
from neardup.errors import BadInput, StateError
from neardup.index import sharing
from neardup.index.base import Family, Store
from neardup.index.rocks import RocksStore
from neardup.index.rows import decode_cluster, decode_member, decode_url, id_key
from neardup.page import named_url
from neardup.sketch.header import url_hash
from neardup.sketch.view import Sketch
from streams.pipeline.folded_takedowns import takedowns_of
from streams.pipeline.matcher import LOG_PROGRAM, PROGRAM, Matcher
from streams.process.terminal import safe, table_of
from streams.state.directory import SCAN_NAMES, SHARD_NAMES, Directory, refuse_shards
from streams.state.inspection import Inspection, Progress, inspect

MEMBERS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Opened:
    """An index that this process has open, its decider, and the offset of the next message to fold."""

    path: Path
    store: RocksStore
    decider: Decider
    next_offset: int


def open_index(path: Path, held: ExitStack) -> Opened:
    """Opens the index of a state directory that no process has open. Raises StateError, BadInput."""
    if not (path / "index").is_dir():
        raise BadInput(f"{path} holds no index; name a state directory")
    directory = Directory(path, held, more=(*SCAN_NAMES, *SHARD_NAMES))
    first = directory.decider()
    if first is None:
        raise StateError(f"{path / 'decider.json'} is missing; restore it")
    refuse_shards(path, first, "inspect")
    store = RocksStore(directory.path / "index")
    held.callback(store.close)
    matcher = Matcher(store, first)
    return Opened(directory.path, store, matcher.decider, matcher.next_offset)


def overview(opened: Opened, progress: Progress) -> tuple[Inspection, dict[str, Any]]:
    """Inspects the index. Returns the result, and the same as plain values with the directory's own data."""
    found = inspect(opened.store, progress)
    index, log = (row or b"" for row in opened.store.get_many(Family.META, [PROGRAM, LOG_PROGRAM]))
    files = {family.name.lower(): size.file_bytes for family, size in opened.store.sizes().items()}
    summary = {
        "state": str(opened.path),
        "program": index.decode(),
        "log_program": log.decode(),
        "next_offset": opened.next_offset,
        "scheme": opened.decider.scheme,
        "decider": opened.decider.digest,
        "rule": opened.decider.rule,
        "file_bytes": files,
        "takedowns": [done.to_json() for done in takedowns_of(opened.store)],
        **found.to_json(),
    }
    return found, summary


def of_url(store: Store, url: str) -> dict[str, Any]:
    """Returns the row, sketch and cluster of a URL. Raises BadInput if the index has none."""
    hashed = url_hash(named_url(url))
    (row,) = store.get_many(Family.URLS, [hashed])
    if row is None:
        raise BadInput(f"{url}: the index has no row of this URL")
    held = decode_url(row)
    values: dict[str, Any] = {"url": named_url(url), **held._asdict(), "standing": held.standing.value}
    if held.live:
        values["cluster"] = of_cluster(store, held.cluster)
        values["sketch"] = sketch_of(store, held.page_id)
    return values


def of_cluster(store: Store, cluster: int) -> dict[str, Any]:
    """Returns a cluster's row and its first members. Raises BadInput if there is none with this id."""
    (row,) = store.get_many(Family.CLUSTERS, [id_key(cluster)])
    if row is None:
        raise BadInput(f"there is no cluster {cluster}")
    values = decode_cluster(row)._asdict()
    members = []
    for key, value in store.first(Family.MEMBERS, id_key(cluster), MEMBERS_SHOWN):
        member = decode_member(value)
        (held,) = store.get_many(Family.URLS, [member.url_hash])
        page = decode_url(held).page_id if held is not None else None
        url = sketch_of(store, page)["url"] if page is not None else ""
        members.append({"member": int.from_bytes(key[8:], "big"), "page_id": page, "url": url})
    founder = sketch_of(store, values["current"])
    plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in values.items()}
    return {"id": cluster, **plain, "url": founder["url"], "members": members}


def sketch_of(store: Store, page_id: int) -> dict[str, Any]:
    """Returns every field of the sketch of a page. Raises BadInput if the index has none."""
    (row,) = store.get_many(Family.SKETCHES, [id_key(page_id)])
    if row is None:
        raise BadInput(f"the index has no sketch of page {page_id}")
    rest = sharing.rest_of_row(row)
    (other,) = store.get_many(Family.SKETCHES, [id_key(rest)]) if rest is not None else (None,)
    return Sketch(sharing.record_of_rows(row, other)).to_dict()


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
        parts.append(Text(f"taken down at offset {done['offset']:,}: {done['what']}, {done['pages']:,} pages"))
    for pages, cluster in found.largest[:5]:
        parts.append(Text(f"cluster {cluster}: {pages:,} pages"))
    if not found.wrong_total:
        parts.append(Text("all rows are consistent", style="bold"))
        return Group(*parts)
    parts.append(Text(f"{found.wrong_total:,} contradictions", style="bold"))
    parts += [Text.assemble(f"{one.family} {one.key}: ", safe(one.what)) for one in found.wrong[:20]]
    parts.append(Text("move index/ away and start again: it is folded from the log, or restored from a checkpoint"))
    return Group(*parts)
