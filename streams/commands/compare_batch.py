"""What the batch rules say of two pages: they read texts, not sketches, and meet through signatures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from neardup.page import Page


@dataclass(frozen=True)
class BatchResult:
    """One batch rule on a pair. signatures: those that both pages have; without any, a partition compares them not."""

    rule: str
    near_duplicate: bool
    numbers: str
    needed: str
    signatures: int

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "near_duplicate": self.near_duplicate,
            "numbers": self.numbers,
            "needed": self.needed,
            "shared_signatures": self.signatures,
        }


def batch_results(pages: Sequence[Page], body_bytes_max: int) -> list[BatchResult]:
    """`tlcs` and `cosine` with their usual numbers; nothing where their extra is not installed."""
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
    wanted = f"more than {parameters.resemblance_min:.0%} or {parameters.containment_min:.0%}"
    return [
        BatchResult(
            "tlcs",
            found.similar,
            f"resemblance {found.resemblance:.0%}, containment {found.containment:.0%}",
            wanted,
            shared,
        ),
        BatchResult(
            "cosine", share > parameters.cosine_min, f"cosine {share:.3f}", f"more than {parameters.cosine_min}", shared
        ),
    ]


def batch_table(results: Sequence[BatchResult]) -> Table:
    table = Table("batch rule", "numbers", "needed", "decision", "found through", box=None, pad_edge=False)
    table.header_style = "bold"
    for one in results:
        said = Text("= near duplicate", style="green") if one.near_duplicate else Text("x no", style="yellow")
        found = f"{one.signatures} common signatures" if one.signatures else Text("no common signature", style="dim")
        table.add_row(one.rule, one.numbers, one.needed, said, found)
    return table
