"""Has the fork server load all kernels that roles call, so that the processes that it forks need not."""

import gc

from neardup.decider import Decider
from neardup.fold import fold
from neardup.index import rocks
from neardup.index.memory import MemoryStore
from neardup.matching.kernels.walk import walk
from neardup.page import Page
from neardup.sketch.make_sketches import sketch_pages
from neardup.warm import warm
from streams.formats.message import own_version
from tests import forked
from tests.streams.archives import SCHEME, crawl

#: Pages of a message. Later pages of one see lists that earlier ones have changed.
MESSAGE = 8


def fold_a_crawl() -> None:
    """Judges near-duplicates within a message and across messages: not every kernel is called for each page."""
    store = MemoryStore()
    pages = [Page(f"http://a.example/{sample.path}", sample.body, "text/html", sample.ms) for sample in crawl()]
    numbered = list(enumerate(sketch_pages(pages, SCHEME)))
    for first in range(0, len(numbered), MESSAGE):
        store.write(fold(numbered[first : first + MESSAGE], store, Decider(SCHEME.digest)).writes)


if forked.IN_SERVER:
    warm(("sketching", "judging", "comparing"))
    fold_a_crawl()
    assert walk.signatures
    own_version()
    assert rocks.RocksStore is not None
    gc.collect()
    gc.freeze()  # a process that closes its index looks through its own garbage alone
