"""Keeps a search engine in step with the verdicts, by the `_bulk` requests of Elasticsearch and OpenSearch.

    python deploy/walks/bulk.py 127.0.0.1:9092 verdicts http://127.0.0.1:9200 pages

A document's id is the SHA-256 of its URL. The crawler writes text and title of a document. This program writes the
fields from verdicts: `shown`, which queries filter by, `verdict`, `cluster`, and `representative`, the page that is
shown instead. Both update parts of a document, so their order does not matter. A page that is gone is deleted.

The positions of the consumed verdicts are stored in the engine, too, in the index `NAME-positions`, after all documents
before them are acknowledged. After a kill in between, the last batch is written again. This changes nothing in the end:
verdicts of one URL come in order, and the last one is complete. One process writes an index. `--once` ends after the
present verdicts. Another generation has its own topic: fill another index from it, and switch the engine's alias to
that index at the cut-over. The environment has the login of the engine: ENGINE_AUTHORIZATION="ApiKey ...".
"""

import argparse
import hashlib
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from neardup.standing import duplicate_of, standing_of
from streams.client import VerdictConsumer

#: Documents per request: engines work best with some thousands.
BATCH = 2_000
#: An engine that is busy (429) or away is asked again so often, each time after twice the wait.
TRIES, WAIT_SECONDS = 8, 0.5
_BUSY = (429, 502, 503)


class EngineRefused(Exception):
    """The engine says no, and will say it again."""


class SearchIndex:
    """One index of a search engine, and beside it how far the verdicts are taken: a `PositionStore`."""

    def __init__(self, url: str, name: str, authorization: str = "") -> None:
        self._url, self._name = url.rstrip("/"), name
        self._headers = {"Authorization": authorization} if authorization else {}

    def load(self) -> dict[str, int]:
        found = self._ask("GET", f"{self._name}-positions/_doc/verdicts", allowed=(404,))
        return dict(found["_source"]) if found else {}

    def take(self, verdicts: Sequence[Mapping[str, Any]], positions: Mapping[str, int]) -> None:
        """Raises Refused with the first document that the engine does not take."""
        left = list(verdicts)
        for again in range(TRIES):
            left = self._bulk(left)
            if not left:
                break
            time.sleep(WAIT_SECONDS * 2**again)
        else:
            raise EngineRefused(f"{self._name}: too busy for {len(left)} documents")
        self._ask("PUT", f"{self._name}-positions/_doc/verdicts", json.dumps(dict(positions)).encode())

    def _bulk(self, verdicts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Those that it was too busy for, and what comes after them about the same URLs."""
        body = "".join(line + "\n" for verdict in verdicts for line in action(verdict))
        answer = self._ask("POST", f"{self._name}/_bulk", body.encode(), "application/x-ndjson")
        again: list[Mapping[str, Any]] = []
        urls: set[str] = set()
        for verdict, item in zip(verdicts, answer["items"], strict=True):
            ((kind, done),) = item.items()
            if done["status"] in _BUSY or verdict["url"] in urls:
                again.append(verdict)
                urls.add(verdict["url"])
            elif done["status"] >= 300 and not (kind == "delete" and done["status"] == 404):
                raise EngineRefused(f"{self._name}: {kind} of {verdict['url']}: {json.dumps(done.get('error'))[:500]}")
        return again

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str = "application/json",
        allowed: Collection[int] = (),
    ) -> Any:
        headers = {"Content-Type": kind, **self._headers}
        text = ""
        for again in range(TRIES):
            request = urllib.request.Request(f"{self._url}/{path}", body, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code in allowed:
                    return None
                text = f"{error.code} {error.read(500).decode('utf-8', 'replace')}"
                if error.code not in _BUSY:
                    break
            except OSError as error:
                text = str(error)
            time.sleep(WAIT_SECONDS * 2**again)
        raise EngineRefused(f"{method} {self._url}/{path}: {text}")


def action(verdict: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a bulk request that a verdict comes to."""
    standing = standing_of(verdict)
    place = {"_id": hashlib.sha256(verdict["url"].encode()).hexdigest()}
    if standing.kind == "gone":
        yield json.dumps({"delete": place})
        return
    yield json.dumps({"update": place})
    fields = {
        "url": verdict["url"],
        "verdict": standing.kind,
        "shown": standing.shown,
        "cluster": standing.cluster,
        "representative": duplicate_of(verdict),
    }
    yield json.dumps({"doc": fields, "doc_as_upsert": True})


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("engine", help="http://HOST:PORT")
    parser.add_argument("index")
    parser.add_argument("--once", action="store_true", help="end with the verdicts that are there")
    given = parser.parse_args(arguments)
    engine, taken = SearchIndex(given.engine, given.index, os.environ.get("ENGINE_AUTHORIZATION", "")), 0
    try:
        with VerdictConsumer(given.bootstrap, engine, given.topic) as consumer:
            for batch in consumer.batches(follow=not given.once, count=BATCH):
                engine.take(batch.verdicts, batch.positions)
                taken += len(batch.verdicts)
    except EngineRefused as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    print(f"{taken} verdicts taken")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
