"""`neardup signals`: every signal of two files, and the decision of a model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult

from neardup.errors import BadInput
from neardup.signals.idf import Idf
from neardup.signals.model import Model, ModelDecision
from neardup.signals.of_sketches import OF_SKETCHES, sketch_signals
from neardup.signals.result_pages import Body, Result
from neardup.signals.table import SIGNALS, signals_of
from neardup.urls import normalise_url
from streams.process.terminal import safe, table_of
from streams.verdicts.compare import SCHEME, page_of_file, pair_of_pages


@dataclass(frozen=True)
class PairPage:
    """A page of the pair. url: URL of the page; by default the URL of the file."""

    path: Path
    url: str | None = None
    rendered: Path | None = None


@dataclass(frozen=True)
class PairSignals:
    """The signals of two pages. of_sketches: signals of their sketches; empty if one page has none."""

    urls: tuple[str, str]
    values: dict[str, float]
    of_sketches: dict[str, float]
    decision: ModelDecision | None = None

    def to_json(self) -> dict[str, Any]:
        decided = None if self.decision is None else self.decision._asdict()
        return {"urls": list(self.urls), "signals": self.values, "of_sketches": self.of_sketches, "decision": decided}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = table_of("signal", "group", ">value")
        for name, value in self.values.items():
            table.add_row(name, SIGNALS[name].group or "–", f"{value:.4f}")
        for name, value in self.of_sketches.items():
            table.add_row(name, "of sketches", f"{value:.4f}")
        yield table
        if self.decision is not None:
            answer = "duplicate" if self.decision.duplicate else "different"
            yield safe(f"{answer}: {self.decision.rule}", 4000)


def signals_command(a: PairPage, b: PairPage, *, query: str = "", model: Model | None = None) -> PairSignals:
    """Computes all signals of two pages. Without a model terms rank by frequency.

    Raises BadInput for unreadable files.
    """
    pages = [page_of_file(side.path, side.url, SCHEME) for side in (a, b)]
    one, other = (
        Result(normalise_url(page.url), Body.of(page.body or b"", page.content_type), _rendered(side), query)
        for side, page in zip((a, b), pages, strict=True)
    )
    values = signals_of(one, other, Idf() if model is None else model.idf)
    pair = pair_of_pages(pages, SCHEME)
    of_sketches = {} if pair is None else sketch_signals(pair)
    decision = None
    if model is not None:
        known = of_sketches if set(model.signals) <= set(OF_SKETCHES) else values
        if missing := set(model.signals) - set(known):
            raise BadInput(f"the model asks for {', '.join(sorted(missing))}, which these two have not")
        decision = model.decide(known)
    return PairSignals((one.url, other.url), values, of_sketches, decision)


def _rendered(side: PairPage) -> Body | None:
    if side.rendered is None:
        return None
    return Body.of(page_of_file(side.rendered, None, SCHEME).body or b"", "text/html; charset=utf-8")
