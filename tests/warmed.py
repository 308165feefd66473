"""Has the fork server load all kernels that roles and shards call, so that the processes that it forks need not."""

import gc

from neardup.index import rocks
from neardup.warm import warm
from tests import forked

if forked.IN_SERVER:
    warm(("sketching", "judging", "sharding"))
    assert rocks.RocksStore is not None
    gc.collect()
    gc.freeze()  # a process that closes its index looks through its own garbage alone
