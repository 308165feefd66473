"""What must hold in any store between batches, checked by reading all of it."""

from collections import Counter, defaultdict

from neardup.index import naming_rows, posting_rows, rows, sketch_rows
from neardup.index.column_families import Family
from neardup.rules.key_families import KeyFamily, family_of
from neardup.rules.posted_keys import similarity_keys
from neardup.sketch.header import Header
from neardup.verdict import Kind


def contents_of(store):
    """Every pair of every family, META aside."""
    return {family: dict(store.scan(family)) for family in Family if family is not Family.META}


class Checked:
    """Decodes a store and checks it; `headers`, `urls`, `clusters`, `members`, `digests` are there for more checks."""

    def __init__(self, store, decider):
        raw = contents_of(store)
        self.decider = decider
        self.urls = {key: rows.decode_url(value) for key, value in raw[Family.URLS].items()}
        self.clusters = {_id(key): rows.decode_cluster(value) for key, value in raw[Family.CLUSTERS].items()}
        self.members = {
            (_id(key[:8]), _id(key[8:])): rows.decode_member(value) for key, value in raw[Family.MEMBERS].items()
        }
        self.sketches = {_id(key): value for key, value in raw[Family.SKETCHES].items()}
        self.headers = {page: self._header(page) for page in self.sketches}
        self.digests, self.more, self.postings, self.namings = {}, defaultdict(list), {}, {}
        for key, value in raw[Family.KEYS].items():
            family = family_of(key)
            if family in (KeyFamily.DIGEST, KeyFamily.OPAQUE):
                self.digests[key] = rows.decode_digest(value)
            elif family in (KeyFamily.DIGEST_MORE, KeyFamily.OPAQUE_MORE):
                self.more[key[:-8]].append(_id(key[-8:]))
            elif family is KeyFamily.NAMING:
                self.namings[key] = naming_rows.decode(value)
            else:
                self.postings[key] = value
        self.live = {row.page_id: (hashed, row) for hashed, row in self.urls.items() if row.live}
        self._clusters()
        self._sketches()
        self._digests()
        self._postings()

    def _header(self, page):
        row = self.sketches[page]
        rest = sketch_rows.rest_of_row(row)
        return Header(sketch_rows.record_of_rows(row, None if rest is None else self.sketches[rest]))

    def _clusters(self):
        sizes, representatives = Counter(), set()
        for hashed, row in self.urls.items():
            assert len({note.cluster for note in row.notes}) == len(row.notes) <= rows.NOTES_MAX
            assert all(note.left <= row.seen for note in row.notes)
            assert not row.notes or self.decider.reclaim_days
            if not row.live:
                assert (row.cluster, row.member) == (0, 0)
                continue
            assert self.headers[row.page_id].url_hash == hashed
            cluster = self.clusters[row.cluster]
            sizes[row.cluster] += 1
            if row.member:
                member = self.members[row.cluster, row.member]
                assert member.url_hash == hashed
                assert row.standing in (Kind.EXACT_DUPLICATE, Kind.NEAR_DUPLICATE)
                assert row.cluster <= row.member <= row.page_id
            else:
                assert (cluster.url_hash, cluster.current) == (hashed, row.page_id)
                assert row.standing in (Kind.UNIQUE, Kind.SAME_CONTENT)
                assert (row.standing is Kind.SAME_CONTENT) == (cluster.content_of != rows.NO_PAGE)
                representatives.add(row.cluster)
        assert sizes == Counter({name: cluster.size for name, cluster in self.clusters.items()})
        assert representatives == set(self.clusters)
        assert len(self.members) == sum(bool(row.member) for _, row in self.live.values())
        assert all(member > self.clusters[name].promoted for name, member in self.members)
        for name, cluster in self.clusters.items():
            assert name <= cluster.founding
            assert self.headers[cluster.founding].url_hash == cluster.url_hash
            wanted = self.urls.get(cluster.named_canonical)
            present = wanted is not None and wanted.live and wanted.cluster == name
            assert cluster.canonical == (self.headers[cluster.current].canonical if present else "")

    def _sketches(self):
        needed = set(self.live) | {cluster.founding for cluster in self.clusters.values()}
        kept = {digest.rest for digest in self.digests.values()} - {rows.NO_PAGE}
        assert set(self.sketches) == needed | kept
        users = Counter()
        for page in needed:
            header = self.headers[page]
            key = rows.digest_key(header)
            rest = sketch_rows.rest_of_row(self.sketches[page])
            if not key:
                assert rest is None
            elif rest is not None or self.digests[key].rest == page:
                users[key] += 1
                assert rest in (None, self.digests[key].rest)
        assert users == Counter({key: digest.refs for key, digest in self.digests.items() if digest.refs})

    def _digests(self):
        pages = defaultdict(list)
        for page in sorted(self.live):
            key = rows.digest_key(self.headers[page])
            if key:
                pages[key].append(page)
        for key, digest in self.digests.items():
            more = self.more.pop(rows.more_prefix(key), [])
            assert [*digest.pages, *more] == pages[key]
            assert digest.live == len(pages[key])
            assert digest.live or digest.refs
            assert len(digest.pages) <= rows.DIGEST_PAGES_MAX
            assert bool(digest.pages) == bool(digest.live)
            if digest.rest != rows.NO_PAGE:
                assert rows.digest_key(self.headers[digest.rest]) == key
        assert not self.more
        assert all(key in self.digests for key in pages if pages[key])

    def _postings(self):
        wanted = defaultdict(set)
        for cluster in self.clusters.values():
            header = self.headers[cluster.founding]
            for key in similarity_keys(header, self.decider):
                wanted[key].add(posting_rows.word_of(cluster.founding, header))
        for key, row in self.postings.items():
            words = posting_rows.postings(row)
            assert len(set(words)) == len(words)
            if posting_rows.is_hot(row):
                assert len(words) <= self.decider.hot_postings_kept
                assert set(words) <= wanted[key]
            else:
                assert 0 < len(words) <= self.decider.postings_max
                assert set(words) == wanted[key]
        for key, words in wanted.items():
            assert not words or key in self.postings


def _id(key):
    return int.from_bytes(key, "big")
