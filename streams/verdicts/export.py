"""Exports verdicts as three tables: one row per URL with its standing, per cluster, and per verdict.

Columns are only ever added, so readers that use their names keep working. Times are milliseconds since the epoch. Rows
have the order of the log, which is that of the input. Memory does not grow with the pages, which are kept in an SQLite
file.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Literal

from msgspec import ValidationError
from msgspec.msgpack import Decoder as MsgpackDecoder
from msgspec.msgpack import Encoder as MsgpackEncoder

from neardup.errors import BadInput
from neardup.standing import DUPLICATES, SHOWN, Standing, VerdictFields, url_of
from neardup.urls import id_of, is_document, site_named
from neardup.verdict import TAKEN_DOWN
from streams.formats.verdict_records import Verdict
from streams.verdicts.shared_rows import Row, scratch_table

#: A verdict: its JSON object, or the fields of it that tables have.
Given = Verdict | VerdictFields
Name = Literal["urls", "clusters", "verdicts"]

#: Columns: their types in SQL's words, and what they hold.
COLUMNS: Mapping[str, tuple[str, str]] = {
    "url": ("VARCHAR", "the URL of the page, normalised"),
    "shown": ("BOOLEAN", "whether an index should show the URL"),
    "verdict": (
        "VARCHAR",
        "the kind of this verdict; in the table `urls` that of the verdict in force",
    ),
    "site": ("VARCHAR", "the registrable domain; none for a document with an id"),
    "cluster": ("BIGINT", "the id of its cluster: the page id of the cluster's founder"),
    "representative": (
        "VARCHAR",
        "of a duplicate: the URL that represents its cluster; in the table `verdicts` as it was then",
    ),
    "canonical": ("VARCHAR", "the URL of the cluster that an index should show, by its last verdict"),
    "content_of": ("VARCHAR", "the URL of the earlier page with the same main content (`same_content`)"),
    "title": ("VARCHAR", "the title"),
    "lang": ("VARCHAR", "the language that the page names"),
    "reason": ("VARCHAR", "why the page was rejected or is gone"),
    "last": ("VARCHAR", "the kind of the URL's last verdict, for example `unchanged`"),
    "page_id": ("BIGINT", "the position of the fetch in the sketch log; earlier is smaller"),
    "n": (
        "INTEGER",
        "0: the verdict on the fetched page; from 1: one that the fetch caused on another page",
    ),
    "fetched_at": ("BIGINT", "the time of the fetch, in ms since 1970"),
    "source": ("VARCHAR", "the file or topic of the page, by its digest or id"),
    "partition": ("INTEGER", "the partition of the topic; 0 for files"),
    "offset": ("BIGINT", "the offset of the record in the topic, or its number in its source"),
    "position": ("BIGINT", "the byte at which the record starts in its file, or the number of the file in its folder"),
    "kept_apart": ("VARCHAR", "the step of the rule that keeps the page apart from the similar page `alike`"),
    "alike": ("VARCHAR", "the URL of that page"),
    "id": ("VARCHAR", "the id of a document that was given by id instead of URL"),
    "representative_id": ("VARCHAR", "the id of the representative, likewise"),
    "size": ("INTEGER", "the number of live URLs of the cluster; clusters of one URL are left out"),
    "members": ("VARCHAR[]", "these URLs, the oldest verdict first"),
    "ids": ("VARCHAR[]", "the ids of documents, in the order of `members`"),
    "standing": ("VARCHAR", "the kind in force after this verdict, where the verdict does not change it"),
    "cluster_size": ("INTEGER", "the number of live URLs of the cluster after this verdict"),
    "revision": ("BIGINT", "the number of changes of the cluster so far"),
    "by": ("VARCHAR", "the step of the rule that decided"),
    "thin": ("BOOLEAN", "whether the page has fewer tokens than `thin_tokens`, so that only exact copies count"),
    "opaque": ("BOOLEAN", "whether the page is neither HTML nor text"),
    "shell": (
        "BOOLEAN",
        "whether the words of the page come from a script or another page, so that it is to be rendered",
    ),
    "truncated": ("BOOLEAN", "whether a limit cut the body"),
    "scheme": ("VARCHAR", "the digest of the parameters of the sketch"),
    "decider": ("VARCHAR", "the digest of the numbers that decided"),
}
_PLACE = ("source", "partition", "offset", "position")
_APART = ("kept_apart", "alike")
#: Names of the columns of each table in their order, without the internal ones.
_NAMES: Mapping[Name, tuple[str, ...]] = {
    "urls": (
        *("id", "url", "shown", "verdict", "representative_id", "representative", "cluster", "canonical"),
        *("content_of", "site", "title", "lang", "reason", *_APART, "last", "fetched_at"),
    ),
    "clusters": ("ids", "representative_id", "cluster", "size", "canonical", "representative", "members"),
    "verdicts": (
        *("id", "page_id", "n", "verdict", "url", "representative_id", "representative", "standing", "cluster"),
        *("cluster_size", "canonical", "content_of", "by", "site", "title", "lang", "reason", *_APART),
        *("fetched_at", "thin", "opaque", "shell", "truncated"),
    ),
}
#: Internal columns of each table, which are exported on demand. They locate a verdict in the log, and a page in its
#: source.
INTERNAL: Mapping[Name, tuple[str, ...]] = {
    "urls": ("page_id", "n", *_PLACE),
    "clusters": (),
    "verdicts": ("revision", *_PLACE, "scheme", "decider"),
}
#: Columns that stand last: those with ids in a table of web pages, where they are empty; those with URLs in a table of
#: documents, where they are made of the ids, and of what such URLs have none.
_IDS = ("id", "representative_id", "ids")
_URLS = ("url", "representative", "canonical", "content_of", "alike", "members", "site")
#: All columns of each table with their types, in the order of a row's values.
TABLES: Mapping[Name, Mapping[str, str]] = {
    table: {name: COLUMNS[name][0] for name in (*names, *INTERNAL[table])} for table, names in _NAMES.items()
}

_ROWS = 10_000
_pack, _unpack = MsgpackEncoder().encode, MsgpackDecoder().decode


def exported(
    name: Name,
    verdicts: Iterable[Given],
    *,
    all_columns: bool = False,
    progress: Callable[[int], None] = lambda read: None,
) -> tuple[Mapping[str, str], Iterator[Row]]:
    """Returns the columns of a table, and its rows with values in their order.

    Args:
        name: the table.
        verdicts: the verdicts of a scan or of a topic.
        all_columns: whether to include the internal columns.
        progress: receives the number of verdicts that were read.

    Raises BadInput for lines that are no verdicts, with the first row or later.
    """
    made = rows(name, verdicts, progress)
    first = list(next(made, ()))
    columns, names = list(TABLES[name]), _NAMES[name]
    last = _URLS if first and _of_documents(first, columns) else _IDS
    names = (*(each for each in names if each not in last), *(each for each in names if each in last))
    names += INTERNAL[name] if all_columns else ()
    values = itemgetter(*map(columns.index, names))
    return {each: COLUMNS[each][0] for each in names}, map(values, chain([first] if first else [], made))


def _of_documents(row: list[Any], columns: list[str]) -> bool:
    """Whether a row names documents by ids. An id may be empty where normalising the URL removed a part of it."""
    urls = row[columns.index("members")] if "members" in columns else [row[columns.index("url")]]
    return any(map(is_document, urls))


def rows(name: Name, verdicts: Iterable[Given], progress: Callable[[int], None] = lambda read: None) -> Iterator[Row]:
    """A table's rows, values in the order of TABLES. progress: verdicts read. Raises BadInput for other lines."""
    if name == "verdicts":
        return _flat(verdicts, progress)
    return _standing(name, verdicts, progress)


def fields_of(verdict: Given) -> VerdictFields:
    """Returns the fields of a verdict. Raises BadInput for an object that is no verdict."""
    if isinstance(verdict, VerdictFields):
        return verdict
    try:
        return VerdictFields.of(verdict)
    except ValidationError as error:
        raise BadInput(f"not a verdict of neardup ({error}): {str(verdict)[:200]}") from error


def _flat(verdicts: Iterable[Given], progress: Callable[[int], None]) -> Iterator[Row]:
    for read, verdict in enumerate(map(fields_of, verdicts), 1):
        if read % _ROWS == 0:
            progress(read)
        representative, place = url_of(verdict.representative), verdict.coordinates
        yield (
            id_of(verdict.url),
            *(verdict.page_id, verdict.n, verdict.verdict, verdict.url),
            *(id_of(representative), representative),
            verdict.standing and verdict.standing.verdict,
            verdict.in_force().cluster,
            *(verdict.cluster_size, verdict.canonical),
            url_of(verdict.content_of),
            verdict.evidence and verdict.evidence.by,
            _site_of(verdict),
            *(verdict.title, verdict.lang, verdict.reason),
            *_apart(verdict),
            verdict.fetched_at,
            *(verdict.thin, verdict.opaque, verdict.shell, verdict.truncated),
            verdict.revision,
            *(place.source, place.partition, place.offset, place.position),
            *(verdict.scheme, verdict.decider),
        )


def _standing(name: Name, verdicts: Iterable[Given], progress: Callable[[int], None]) -> Iterator[Row]:
    with scratch_table(STANDING) as table:
        fill_standing(table, verdicts, progress)
        yield from _urls(table) if name == "urls" else _clusters(table)


#: Tables of `fill_standing`: the latest verdict of each URL, and the page id of its first; and the canonical URL and
#: the representative of each cluster's latest verdict. packed: what no statement reads, see `_url_row`.
STANDING = """
CREATE TABLE urls (url TEXT PRIMARY KEY, page_id INT, n INT, verdict TEXT, cluster INT, representative TEXT,
    title TEXT, lang TEXT, reason TEXT, packed BLOB, first INT);
CREATE TABLE clusters (cluster INTEGER PRIMARY KEY, page_id INT, n INT, canonical TEXT, representative TEXT);
"""
_PUT_URL = f"""
INSERT INTO urls VALUES ({", ".join("?" * 11)}) ON CONFLICT (url) DO UPDATE SET page_id = excluded.page_id,
    n = excluded.n, first = min(first, excluded.first), verdict = excluded.verdict, cluster = excluded.cluster,
    representative = excluded.representative,
    title = iif(excluded.reason = '{TAKEN_DOWN}', NULL, coalesce(excluded.title, title)),
    lang = iif(excluded.reason = '{TAKEN_DOWN}', NULL, coalesce(excluded.lang, lang)), reason = excluded.reason,
    packed = excluded.packed
WHERE (excluded.page_id, excluded.n) > (page_id, n)
"""
_PUT_FIRST = "UPDATE urls SET first = min(first, ?) WHERE url = ?"
_PUT_CLUSTER = """
INSERT INTO clusters VALUES (?, ?, ?, ?, ?) ON CONFLICT (cluster) DO UPDATE SET page_id = excluded.page_id,
    n = excluded.n, canonical = excluded.canonical, representative = coalesce(excluded.representative, representative)
    WHERE (excluded.page_id, excluded.n) > (page_id, n)
"""


def fill_standing(table: sqlite3.Connection, verdicts: Iterable[Given], progress: Callable[[int], None]) -> None:
    """Fills the tables of STANDING. progress: verdicts read. Raises BadInput for lines that are no verdicts."""
    table.execute("BEGIN")
    read, newest, given = 0, (-1, -1), map(fields_of, verdicts)
    while some := list(islice(given, _ROWS)):
        urls, clusters, late = [], [], []
        try:
            for verdict in some:
                standing, at = verdict.in_force(), (verdict.page_id, verdict.n)
                urls.append(_url_row(verdict, standing))
                if verdict.canonical is not None:
                    shown = verdict.url if standing.shown else standing.representative
                    clusters.append((standing.cluster, *at, verdict.canonical, shown))
                if at > newest:
                    newest = at
                else:  # partitions of a topic come in any order
                    late.append((at[0], verdict.url))
            for sql, given_rows in ((_PUT_URL, urls), (_PUT_FIRST, late), (_PUT_CLUSTER, clusters)):
                table.executemany(sql, given_rows)
        except (sqlite3.Error, OverflowError) as error:
            raise BadInput(f"not verdicts of neardup, from {some[0].url[:200]} on: {error}") from error
        read += len(some)
        progress(read)
    table.execute("COMMIT")


def _url_row(verdict: VerdictFields, standing: Standing[str]) -> Row:
    place, representative = verdict.coordinates, standing.representative
    packed = _pack(
        (
            *(standing.content_of, _site_of(verdict), *_apart(verdict), verdict.verdict, verdict.fetched_at),
            *(place.source, place.partition, place.offset, place.position),
        )
    )
    return (
        *(verdict.url, verdict.page_id, verdict.n, standing.kind, standing.cluster, representative),
        *(verdict.title, verdict.lang, verdict.reason, packed, verdict.page_id),
    )


def _urls(table: sqlite3.Connection) -> Iterator[Row]:
    for url, page_id, n, kind, cluster, representative, title, lang, reason, packed, canonical, shown in table.execute(
        "SELECT url, urls.page_id, urls.n, verdict, cluster, urls.representative, title, lang, reason, packed,"
        " clusters.canonical, clusters.representative FROM urls LEFT JOIN clusters USING (cluster) ORDER BY first, url"
    ):
        if kind in DUPLICATES and shown is not None:
            representative = shown  # that of the present
        content_of, site, apart, alike, last, fetched_at, *place = _unpack(packed)
        yield (
            *(id_of(url), url, kind in SHOWN, kind, id_of(representative), representative, cluster, canonical),
            *(content_of, site, title, lang, reason, apart, alike, last, fetched_at, page_id, n, *place),
        )


def _clusters(table: sqlite3.Connection) -> Iterator[Row]:
    members: list[tuple[Any, ...]] = []
    for row in table.execute(
        f"SELECT cluster, url, verdict, clusters.canonical FROM urls LEFT JOIN clusters USING (cluster)"
        f" WHERE cluster IS NOT NULL AND verdict IN {(*SHOWN, *DUPLICATES)} ORDER BY cluster, urls.page_id, urls.n, url"
    ):
        if members and members[0][0] != row[0]:
            yield from _cluster_row(members)
            members = []
        members.append(row)
    yield from _cluster_row(members)


def _cluster_row(members: list[tuple[Any, ...]]) -> Iterator[Row]:
    if len(members) > 1:
        standing = next((url for _, url, verdict, _ in members if verdict in SHOWN), None)
        ids = [id_of(url) for _, url, _, _ in members]
        urls = [url for _, url, _, _ in members]
        cluster, _, _, canonical = members[0]
        yield ids if any(ids) else None, id_of(standing), cluster, len(members), canonical, standing, urls


def _site_of(verdict: VerdictFields) -> str | None:
    """The site of a page; None for a document with an id, whose URL has a digest for a host."""
    return site_named(verdict.url, verdict.site) or None


def _apart(verdict: VerdictFields) -> tuple[str | None, str | None]:
    """Return the step that keeps the page apart from a similar one, and that page's URL."""
    evidence = verdict.evidence
    return (evidence.kept_apart, url_of(evidence.nearest)) if evidence and evidence.kept_apart else (None, None)
