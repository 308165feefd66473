"""OpenAPI description of the pages' JSON twins."""

from typing import Any, NamedTuple

_TEXT, _COUNT, _TRUTH = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_OBJECT = {"type": "object"}
_COUNTS = {"type": "object", "additionalProperties": _COUNT}
_MAYBE_TEXT = {"type": ["string", "null"]}
_MAYBE_COUNT = {"type": ["integer", "null"]}


def _list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": sorted(properties)}


_SPANS = _list_of(_object(**{"from": _COUNT, "verdicts": _COUNT, "duplicates": _COUNT, "kinds": _COUNTS}))
_COUNTED = {
    "verdicts": _COUNT,
    "duplicates": _COUNT,
    "kinds": _COUNTS,
    "rejected": _COUNTS,
    "kept_apart": _COUNT,
    "time": _object(
        first=_MAYBE_TEXT,
        last=_MAYBE_TEXT,
        kinds=_COUNTS,
        span_hours=_COUNT,
        spans=_SPANS,
        **{"from": _MAYBE_TEXT, "to": _MAYBE_TEXT},
    ),
}
_HOT = _object(total=_COUNT, families=_COUNTS, newest=_list_of(_OBJECT))
_SITES = _list_of(_object(site=_TEXT, verdicts=_COUNT, duplicates=_COUNT))
_CLUSTERS = _list_of(_object(cluster=_COUNT, size=_COUNT, canonical=_TEXT))
_RANGE = {"from": ("first day, YYYY-MM-DD", False), "to": ("last day, YYYY-MM-DD", False)}
_PAGED = {"page": _COUNT, "pages": _COUNT}
#: A verdict as `neardup schema` describes it.
_VERDICT = {"type": "object", "description": "a verdict; `neardup schema` prints its JSON Schema"}
_SIDE = _object(
    url=_TEXT, page_id=_COUNT, fetched_at=_MAYBE_COUNT, verdict=_MAYBE_TEXT, title=_MAYBE_TEXT, site=_MAYBE_TEXT,
    tokens=_MAYBE_COUNT, digest=_MAYBE_TEXT, missing={"type": "object", "additionalProperties": _TEXT},
)  # fmt: skip


class Twin(NamedTuple):
    """One address. takes: parameter -> (meaning, required). answers: schema by field."""

    summary: str
    takes: dict[str, tuple[str, bool]]
    answers: dict[str, Any]


_PAGE = ("page of the list, from 1 on", False)
TWINS = {
    "overview": Twin(
        "counts of the whole crawl, over a range of log time; lag: offsets not yet applied, by partition",
        _RANGE,
        {"of": _TEXT, **_COUNTED, "lag": {"type": ["object", "null"]}, "behind": _MAYBE_COUNT,
         "partitions": _MAYBE_COUNT, "problem": _MAYBE_TEXT, "rate": {"type": ["number", "null"]}, "sites": _SITES,
         "hot": _HOT, "clusters": _CLUSTERS, "kept_apart_newest": _list_of(_OBJECT)},
    ),
    "url": Twin(
        "a URL's latest verdict, the one that judged it, its evidence in words, and its history, newest first",
        {"url": ("the URL, as it was fetched or as people type it", True)},
        {"url": _TEXT, "verdict": _VERDICT, "judged": _VERDICT, "words": _list_of(_TEXT), "thresholds_known": _TRUTH,
         "flags": _list_of(_TEXT), "cluster": _MAYBE_COUNT, "history": _list_of(_OBJECT)},
    ),
    "cluster": Twin(
        "the members of a cluster, and its canonical URL",
        {"id": ("the cluster's number", True)},
        {"cluster": _COUNT, "canonical": _MAYBE_TEXT, "size": _MAYBE_COUNT, "revision": _MAYBE_COUNT,
         "policy": _list_of(_TEXT), "why": {"type": ["object", "null"]}, "members": _list_of(_OBJECT),
         "complete": _TRUTH},
    ),
    "site": Twin(
        "counts of one registrable domain",
        {"name": ("the registrable domain", True), **_RANGE},
        {"site": _TEXT, **_COUNTED, "hot": _HOT,
         "suppressed": _object(newest=_list_of(_OBJECT), originals=_COUNTS)},
    ),
    "sites": Twin("the sites with the most verdicts", {"page": _PAGE}, {"sites": _SITES, **_PAGED}),
    "patterns": Twin(
        "URL patterns whose pages repeat pages without them, those with the most repeats first; regex finds a pattern "
        "in a URL; url repeats original",
        {"site": ("a registrable domain; by default the sites with the most verdicts", False), "page": _PAGE},
        {"site": _MAYBE_TEXT, "patterns": _list_of(_object(
            site=_TEXT, pattern=_TEXT, kind=_TEXT, name=_TEXT, regex=_TEXT, pages=_COUNT, repeats=_COUNT,
            share={"type": "number"}, url=_TEXT, original=_TEXT)), **_PAGED},
    ),
    "clusters": Twin("the largest clusters", {"page": _PAGE}, {"clusters": _CLUSTERS, **_PAGED}),
    "kind": Twin(
        "the newest verdicts of a kind, or of the pages kept apart from a similar one",
        {"name": ("a kind of verdict, or kept_apart", True), "page": _PAGE},
        {"kind": _TEXT, "verdicts": _COUNT, "items": _list_of(_OBJECT), **_PAGED},
    ),
    "search": Twin(
        "URLs with a text in URL or title; complete: whether all were searched and listed",
        {"text": ("part of a URL or title", True)},
        {"text": _TEXT, "items": _list_of(_OBJECT), "rows": _COUNT, "complete": _TRUTH},
    ),
    "compare": Twin(
        "a comparison of two pages: the result of each rule, and the differences of their texts",
        {"a": ("a URL", True), "b": ("another URL", True), "shown": ("differing passages at most", False)},
        {"a": _SIDE, "b": _SIDE, "decider": _TEXT, "pair": {"type": ["object", "null"]},
         "same_digest": {"type": ["boolean", "null"]}, "rules": _list_of(_OBJECT), "batch_rules": _list_of(_OBJECT),
         "names": _list_of(_TEXT), "differences": {"type": ["object", "null"]}},
    ),
    "close": Twin(
        "the scores of a day that were closest to the threshold, the closest first",
        {"day": ("YYYY-MM-DD, by default the latest with any", False)},
        {"day": _TEXT, "before": _TEXT, "after": _TEXT, "items": _list_of(_OBJECT)},
    ),
    "rejects": Twin(
        "reasons of rejection, and the newest pages of one reason",
        {"reason": ("one of `reasons`", False), "page": _PAGE},
        {"reasons": _COUNTS, "reason": _MAYBE_TEXT, "items": _list_of(_OBJECT), **_PAGED},
    ),
    "health": Twin(
        "topic and lag of each step, generations, workers, the roles' own figures; problems as sentences; times in ms "
        "since the epoch",
        {},
        {"of": _TEXT, "at": _COUNT, "problems": _list_of(_TEXT), "steps": _list_of(_OBJECT),
         "newest_verdict": _MAYBE_COUNT, "taken_verdict": _MAYBE_COUNT, "live": _MAYBE_TEXT,
         "generations": {"type": ["array", "null"], "items": _OBJECT}, "workers": _list_of(_OBJECT),
         "unread": _list_of(_TEXT), "roles": _list_of(_OBJECT), "disk": {"type": ["object", "null"]}},
    ),
    "audits": Twin(
        "the newest audited pairs with the reason of drawing, the rulings, and their labels",
        {"sample": ("one of `samples`", False), "page": _PAGE},
        {"samples": _COUNTS, "sample": _MAYBE_TEXT, "problem": _MAYBE_TEXT, "labelled": _COUNT,
         "items": _list_of(_OBJECT), **_PAGED},
    ),
}  # fmt: skip
_ERROR = {"content": {"application/json": {"schema": _object(error=_TEXT)}}}


def description(version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 description of all twins."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "neardup views", "version": version, "description": "Verdicts about pages, read-only."},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
        "paths": {f"/{name}.json": {"get": _operation(name, twin)} for name, twin in TWINS.items()},
    }


def _operation(name: str, twin: Twin) -> dict[str, Any]:
    parameters = [
        {"name": parameter, "in": "query", "required": must, "description": what, "schema": _TEXT}
        for parameter, (what, must) in twin.takes.items()
    ]
    answers = {"application/json": {"schema": _object(**twin.answers)}}
    return {
        "operationId": name,
        "summary": twin.summary,
        "parameters": parameters,
        "responses": {
            "200": {"description": "the facts", "content": answers},
            "404": {"description": "not found; `error` has the reason", **_ERROR},
            "503": {"description": "another worker does not answer; `error` names it", **_ERROR},
        },
    }
