"""Documents of a crawl that labels and items name by their ids: the id of a file's row names one of many."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from neardup.errors import BadInput
from neardup.evaluation.pairs.labels import Label
from neardup.evaluation.pairs.truth import Editions, Items
from neardup.urls import id_of, ids_named, one_named


class Documents:
    """The documents of a crawl. files: names of a file in the URLs of its ids, by the path of the file."""

    def __init__(self, urls: Iterable[str], files: Mapping[str, Sequence[str]]) -> None:
        self._urls, self._files = set(urls), files
        self._by_id: dict[str, list[str]] = {}
        for url in self._urls:
            if (given := id_of(url)) is not None:
                self._by_id.setdefault(given, []).append(url)

    def url(self, url: str) -> str:
        """Returns the URL of the document that an id names; any other URL unchanged.

        url: result of `named_url` for a URL, an id or FILE#ID. Raises BadInput for an id of several documents.
        """
        given = id_of(url)
        if given is None or url in self._urls:
            return url
        named = {found: name for name, found in ids_named(given, self._files)}
        for found in sorted(self._by_id.get(given, ())):
            named.setdefault(found, found)
        return one_named(given, named, self._urls.__contains__) or url

    def labels(self, labels: Iterable[Label]) -> list[Label]:
        """Returns labels with the URLs of their documents. Raises BadInput for an id of several documents."""
        out = []
        for label in labels:
            a, b = sorted((self.url(label.a), self.url(label.b)))
            out.append(label if (a, b) == label.pair else replace(label, a=a, b=b))
        return out

    def editions(self, editions: Editions) -> Editions:
        """Returns items with the URLs of their documents, other editions unchanged.

        Raises BadInput for an id of several documents, and for a document of two items.
        """
        if not isinstance(editions, Items):
            return editions
        items: dict[str, tuple[str, str]] = {}
        for url, item in editions.items.items():
            if items.setdefault(self.url(url), item) != item:
                raise BadInput(f"{id_of(url) or url}: the items name two of one document")
        return Items(items)
