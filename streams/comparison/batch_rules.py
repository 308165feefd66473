"""Applies the batch rules to two pages; these rules read texts instead of sketches, and find pairs by signatures."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from neardup.page import Page
from neardup.signals.model import HALF, Model
from neardup.signals.pages import Body, Result
from neardup.signals.table import signals_of
from neardup.wording import counted
from streams.process.terminal import table_of


class BatchResult(NamedTuple):
    """The result of one batch rule. near_duplicate: None if the rule lacks an input.

    shared_signatures: number of signatures that both pages have; a partition compares only pairs with one. None if the
    rule uses no signatures.
    """

    rule: str
    near_duplicate: bool | None
    numbers: str
    needed: str
    shared_signatures: int | None


def batch_results(pages: Sequence[Page], body_bytes_max: int) -> list[BatchResult]:
    """Applies `tlcs` and `cosine` with their default numbers; empty if their extra is not installed."""
    try:
        from neardup.partition import Parameters, compare, document_of, signatures
    except ModuleNotFoundError as error:
        if error.name != "rapidfuzz":
            raise
        return []
    from neardup.partition.cosine import cosine, frequencies

    parameters = Parameters()
    texts = [document_of(page, parameters, body_bytes_max=body_bytes_max).text for page in pages]
    one, other = ({(int(high), int(low)) for high, low in signatures(text, parameters)} for text in texts)
    shared = len(one & other)
    found = compare(texts[0], texts[1], parameters)
    share = cosine(frequencies(texts[0]), frequencies(texts[1]))
    thresholds = f"more than {parameters.resemblance_min:.0%} or {parameters.containment_min:.0%}"
    return [
        BatchResult(
            "tlcs",
            found.similar,
            f"resemblance {found.resemblance:.0%}, containment {found.containment:.0%}",
            thresholds,
            shared,
        ),
        BatchResult(
            "cosine", share > parameters.cosine_min, f"cosine {share:.3f}", f"more than {parameters.cosine_min}", shared
        ),
    ]


def learned_result(pages: Sequence[Page], model: Model | None) -> BatchResult:
    """Applies a learned model to two pages, as results without a query."""
    if model is None:
        return BatchResult("signals", None, "no model", "--model FILE, which `neardup train` makes", None)
    one, other = (Result(page.url, Body.of(page.body or b"", page.content_type)) for page in pages)
    found = model.decide(signals_of(one, other, model.idf, model.signals))
    return BatchResult("signals", found.duplicate, f"{found.rule}: {found.score:.0%}", f"{HALF:.0%}", None)


def batch_table(results: Sequence[BatchResult]) -> Table:
    table = table_of("batch rule", "numbers", "needed", "decision", "found through")
    for one in results:
        decision = Text("= near duplicate", style="green") if one.near_duplicate else Text("x no", style="yellow")
        found = (
            counted(one.shared_signatures, "common signature")
            if one.shared_signatures
            else Text("no common signature", style="dim")
        )
        if one.near_duplicate is None:
            decision = Text("–", style="dim")
        if one.shared_signatures is None:
            found = Text("compared with all", style="dim")
        table.add_row(one.rule, one.numbers, one.needed, decision, found)
    return table
