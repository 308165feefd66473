"""Compiles every kernel into the cache, where that is not done: `python -m neardup.warm`, when an image is built.

The cache is per CPU model, version of numba, and state of the kernels' sources.
"""

from pathlib import Path

import numba

from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch import Sketch, compare, sketch_pages


def is_warm() -> bool:
    """Whether the cache of these sources holds the two kernels that are compiled last, as everything is part of them.

    Code compiled for another CPU would count, too.
    """
    cache = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
    return all(any(cache.rglob(f"{name}-*.nbi")) for name in ("batch.sketch_batch", "pairs.score_pairs"))


def warm() -> None:
    """Runs every kernel once, on two small pages."""
    text = "<title>Wool</title><p>" + " ".join(f"word{i} größe 羊毛" for i in range(100))
    pages = [Page("https://a.example/", (text + end).encode()) for end in ("", " <a href=b>more</a><img src=b.png>")]
    a, b = map(
        Sketch, sketch_pages([*pages, Page("https://a.example/x", b"\x00\x01", "image/png")], Scheme(seed=1))[:2]
    )
    compare(a, b)


if __name__ == "__main__":
    warm()
