"""Compares two files or pages: numbers and decision of every online rule, evidence, differences."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.page import CONTENT_TYPES, Page
from neardup.pairs.scoring import compare
from neardup.report.differ import Difference, compare_texts, text_words
from neardup.report.evidence_sentences import found_through
from neardup.report.page_templates import visible
from neardup.report.passages import Passages, Segment, passages, plain
from neardup.report.reasons import Draft, draft_of
from neardup.report.samples import page_text
from neardup.rules import RULES, Pair, Ruling, rule_of, rules_for, why_refused
from neardup.rules.key_families import family_of
from neardup.rules.posted_keys import families_of, similarity_keys
from neardup.rules.veto_words import PageWords, only_at_beginning, only_in_title
from neardup.scheme import FIXED_SEED, Scheme
from neardup.signals.model import Model
from neardup.signals.of_sketches import online_text
from neardup.sketch.header import Header
from neardup.sketch.layout import RecordKind
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from neardup.urls import host_of, is_document, name_of, named_url, site_named
from neardup.verdict import Kind
from neardup.wording import counted
from streams.errors import bad_input
from streams.process.terminal import folded, table_of

#: The seed shapes the sketches; a fixed one makes two comparisons of the same files agree.
SCHEME = Scheme(seed=FIXED_SEED)
_VETO = ("none", "holds", "unproved: a long page's filter cannot tell")
HEAD_WORDS = SCHEME.head_tokens
NAMES_SHOWN = 12
#: Fields of the sketches in the JSON form of a comparison.
_OF_SKETCH = (
    *("url", "site", "title", "tokens", "distinct", "content_tokens", "digest", "tape_level", "opaque", "shell"),
    "truncated",
)


class RuleResult(NamedTuple):
    """The result of one rule.

    shared: number of common index keys by family; an index compares only pairs with one. outcome: the verdict that a
    scan would give after comparing the pair. Pages of equal digests are exact duplicates before any rule is applied.
    """

    rule: str
    numbers: str
    needed: str
    ruling: Ruling
    outcome: Kind | None
    shared: dict[str, int]

    def to_json(self, same_digest: bool) -> dict[str, Any]:
        """Returns plain values only."""
        return {
            "rule": self.rule,
            "verdict": self.outcome,
            "numbers": self.numbers,
            "needed": self.needed,
            "by": "digest" if same_digest else self.ruling.by,
            "shared_keys": self.shared,
        }


@dataclass(frozen=True)
class Comparison:
    """The comparison of two files.

    names: words that the vetoes use. if_urls_end_alike: the decision for URLs with the same end; None if URLs were
    given or the decision is the same. draft: the kind of difference.
    """

    files: tuple[str, str]
    sketches: tuple[Sketch, Sketch]
    decider: Decider
    pair: Pair
    rules: list[RuleResult]
    names: list[str]
    difference: Difference | None
    passages: Passages | None
    if_urls_end_alike: Kind | None = None
    draft: Draft | None = None

    @property
    def same_digest(self) -> bool:
        return self.pair.same_digest

    def to_json(self) -> dict[str, Any]:
        """Returns plain values only."""
        sketches = [sketch.to_dict() for sketch in self.sketches]
        return {
            "files": [
                {"path": str(path), **{name: sketch[name] for name in _OF_SKETCH}}
                for path, sketch in zip(self.files, sketches, strict=True)
            ],
            "pair": self.pair._asdict(),
            "rules": [one.to_json(self.same_digest) for one in self.rules],
            "if_urls_end_alike": self.if_urls_end_alike,
            "names": self.names,
            "difference": None if self.draft is None else self.draft.to_json(),
            "differences": None if self.difference is None else _differences(self.difference, self.passages),
            "scheme": self.decider.scheme,
            "decider": self.decider.digest,
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._files()
        yield ""
        yield self._rules()
        if self.if_urls_end_alike:
            yield Text(
                f"File names are used as URLs here. For pages whose URLs end alike, {self.decider.rule} decides: "
                f"{self.if_urls_end_alike.replace('_', ' ')}. Give URLs with --a-url and --b-url.",
                style="bold",
            )
        yield ""
        yield self._evidence()
        seed = "the fixed seed of this command" if self.decider.scheme == SCHEME.digest else "the seed of the state"
        yield Text(f"Sampled with {seed}: the same files always give the same numbers.", style="dim")
        yield from map(folded, self.names)
        if self.draft is not None and self.draft.sentence():
            yield Text(self.draft.sentence())
        yield ""
        yield from shown_differences(self.difference, self.passages)

    def _files(self) -> Table:
        table = table_of("", "A", "B")
        a, b = self.sketches
        names = name_of(a.url), name_of(b.url)
        table.add_row("page" if self.files == names else "file", *map(folded, self.files))
        if self.files != names and not (a.url.startswith("file:") and b.url.startswith("file:")):
            table.add_row("URL", *map(folded, names))
        table.add_row("title", folded(a.title or "-"), folded(b.title or "-"))
        table.add_row("words", f"{a.tokens:,}", f"{b.tokens:,}")
        same = "the same words in the same order" if self.same_digest else "different"
        table.add_row("digest", a.digest.hex()[:16], f"{b.digest.hex()[:16]} ({same})")
        for name in ("opaque", "shell", "truncated"):
            if getattr(a, name) or getattr(b, name):
                table.add_row(name, *("yes" if getattr(one, name) else "no" for one in (a, b)))
        return table

    def _rules(self) -> Table:
        table = table_of("rule", "numbers", "needed", "decision", "found through")
        for one in self.rules:
            kind = one.outcome
            decision = Text(
                f"{'=' if kind else 'x'} {decision_text(one, self.same_digest)}", style="green" if kind else "yellow"
            )
            own = replace(self.decider, rule=one.rule)
            found = found_through(one.shared, own) if one.shared else Text("no common key", style="dim")
            table.add_row(one.rule, one.numbers, one.needed, decision, found)
        return table

    def _evidence(self) -> Table:
        table = table_of("evidence", "A", "B", "pair")
        pair, (a, b) = self.pair, self.sketches
        tapes = (f"{len(one.tape)} B, level {one.tape_level}" for one in (a, b))
        lengths = f"level {max(a.tape_level, b.tape_level)}: {pair.tape_a} and {pair.tape_b} bytes"
        table.add_row("tape", *tapes, lengths)
        words = (f"{tokens:,} words" for tokens in (pair.content_tokens_a, pair.content_tokens_b))
        content = f"score {pair.content_score:.2f} of {pair.content_a} and {pair.content_b} bytes"
        table.add_row("main content", *words, content)
        if not (is_document(a.url) and is_document(b.url)):
            site, of_henzinger = ("one" if same else "two" for same in (pair.same_site, pair.same_hen_site))
            sites = (folded(site_named(one.url, one.site) or "-") for one in (a, b))
            table.add_row("site", *sites, f"{site} (Henzinger's rule: {of_henzinger})")
        table.add_row("title veto", "", "", _VETO[pair.title_veto])
        table.add_row("head veto", "", "", _VETO[pair.head_veto])
        titles = "neither title has a word of its own" if pair.same_words else "a title has a word of its own"
        heading = ("no", "by words", "by numbers alone")[pair.heading_veto]
        table.add_row("names", "", "", f"{titles}; headings tell them apart: {heading}")
        ends = "one end of their URLs" if pair.same_tail else "other ends of their URLs"
        table.add_row("place", "", "", ends)
        gaps = f"{pair.gap_digits} tokens with digits, {pair.loose_words} words away from them"
        table.add_row("differences", "", "", f"in {pair.gaps} places: {gaps}")
        return table


def compare_command(
    a: Path | str | Page,
    b: Path | str | Page,
    *,
    a_url: str | None = None,
    b_url: str | None = None,
    scheme: Scheme = SCHEME,
    decider: Decider | None = None,
    model: Model | None = None,
) -> Comparison:
    """Compares two pages, or files as pages. Without URLs files count as pages of one site. model: model of the rule
    `signals`.

    Raises BadInput for an unreadable file, an invalid URL, or a model that reads texts.
    """
    decider = decider or Decider(scheme=scheme.digest)
    if model is not None:
        decider = replace(decider, model=online_text(model, "the model"))
    pages = [
        one if isinstance(one, Page) else page_of_file(Path(one), url, scheme) for one, url in ((a, a_url), (b, b_url))
    ]
    files = tuple(name_of(one.url) if isinstance(one, Page) else str(Path(one)) for one in (a, b))
    named = a_url or b_url or isinstance(a, Page) or isinstance(b, Page)
    records = sketch_pages(pages, scheme)
    sketches = Sketch(records[0]), Sketch(records[1])
    for path, sketch in zip(files, sketches, strict=True):
        if sketch.kind is not RecordKind.PAGE:
            raise BadInput(f"{path}: {sketch.reason or 'not a page'}")
    pair = compare(*sketches)
    words = [text_words(text) if (text := page_text(page)) is not None else None for page in pages]
    difference = None if words[0] is None or words[1] is None else compare_texts(words[0], words[1])
    kind, kind_alike = (rule_of(decider).decide(one, decider).kind for one in (pair, pair._replace(same_tail=True)))
    depends_on_urls = not named and not pair.same_digest and kind_alike is not kind
    return Comparison(
        (files[0], files[1]),
        sketches,
        decider,
        pair,
        rule_results(records, pair, decider),
        [] if difference is None else veto_names(difference, sketches, pair),
        difference,
        None if difference is None else passages(difference, count_max=12),
        kind_alike if depends_on_urls else None,
        None if difference is None else draft_of(difference, pages[0].url, pages[1].url),
    )


def page_of_file(path: Path, url: str | None, scheme: Scheme) -> Page:
    """Reads a file as a page. Raises BadInput for an unreadable file, BadPage for an invalid URL."""
    with bad_input(str(path)):
        with path.open("rb") as file:
            body = file.read(scheme.body_bytes_max + 1)
        return Page(
            named_url(url) if url else path.absolute().as_uri(), body, CONTENT_TYPES.get(path.suffix.lower(), "")
        )


def pair_of_pages(pages: Sequence[Page], scheme: Scheme) -> Pair | None:
    """Sketches two pages and computes their numbers; None if one cannot be sketched as a page."""
    sketches = [Sketch(record) for record in sketch_pages(pages, scheme)]
    return compare(*sketches) if all(sketch.kind is RecordKind.PAGE for sketch in sketches) else None


def rule_results(records: Sequence[bytes], pair: Pair, decider: Decider) -> list[RuleResult]:
    """Applies every online rule to two sketch records of one scheme."""
    return [_rule(rule, records, pair, decider) for rule in rules_for(decider)]


def _rule(rule: str, records: Sequence[bytes], pair: Pair, decider: Decider) -> RuleResult:
    own = replace(decider, rule=rule)
    ruling = RULES[rule].decide(pair, own)
    numbers, needed = RULES[rule].in_short(pair, own, ruling)
    outcome = Kind.EXACT_DUPLICATE if pair.same_digest else ruling.kind
    mine, others = (similarity_keys(Header(record), own) for record in records)
    shared = Counter(family_of(key).name.lower() for key in set(mine) & set(others))
    counts = {family: shared[family] for family in families_of(own) if shared[family]}
    return RuleResult(rule, numbers, needed, ruling, outcome, {"digest": 1} | counts if pair.same_digest else counts)


def decision_text(one: RuleResult, same_digest: bool) -> str:
    """Formats the rule's decision."""
    if same_digest:
        return "exact duplicate"
    if one.ruling.kind:
        return one.ruling.kind.replace("_", " ")
    return f"no: {why_refused(one.ruling.by)}"


def veto_names(difference: Difference, sketches: tuple[Sketch, Sketch], pair: Pair) -> list[str]:
    """Lists words of titles and beginnings that differ, whether or not they suffice for a veto."""
    texts = difference.left.words, difference.right.words
    pages = [
        PageWords(words, text_words(sketch.title).words, frozenset(re.findall(r"\w+", host_of(sketch.url))))
        for words, sketch in zip(texts, sketches, strict=True)
    ]
    titles, heads = [], []
    for side, words, page, other in zip("AB", texts, pages, pages[::-1], strict=True):
        if only := only_in_title(page, other, pair.same_site):
            titles.append(f"only in the title of {side}: {_listed(only, Counter(words))}")
        if only := only_at_beginning(page, other, HEAD_WORDS):
            listed = _listed(only, Counter(words))
            heads.append(f"in the first {HEAD_WORDS} words of {side}, never in the other: {listed}")
    return titles + heads


def _listed(words: Sequence[str], counts: Counter[str]) -> str:
    distinct = list(dict.fromkeys(words))
    shown = ", ".join(f"{word[:60]} ({counts[word]}x)" for word in distinct[:NAMES_SHOWN])
    return shown + (f" and {len(distinct) - NAMES_SHOWN} more" if len(distinct) > NAMES_SHOWN else "")


def _differences(difference: Difference, shown: Passages | None) -> dict[str, Any]:
    return {
        "only_a": difference.removed,
        "only_b": difference.added,
        "words": [len(difference.left.words), len(difference.right.words)],
        "aligned": not difference.coarse,
        "cut": difference.left.cut or difference.right.cut,
        "passages": [plain(passage.inline) for passage in shown.shown] if shown else [],
        "not_shown": shown.more if shown else 0,
    }


_STYLES = {"": "", "-": "red", "+": "green"}


def shown_differences(difference: Difference | None, shown: Passages | None) -> RenderResult:
    """Formats passages with `[-only in A-]` and `[+only in B+]`, also in colour."""
    if difference is None or shown is None:
        yield Text("No text to compare: at least one of the two is neither HTML nor text.", style="dim")
        return
    if not difference.changes:
        yield Text(f"Word for word the same: {counted(len(difference.left.words), 'word')}.", style="bold")
    else:
        yield Text.assemble(
            (f"{counted(difference.removed, 'word')} only in A ", "bold"),
            ("[-so-]", _STYLES["-"]),
            (f", {difference.added:,} only in B ", "bold"),
            ("[+so+]", _STYLES["+"]),
            (f", of {len(difference.left.words):,} and {len(difference.right.words):,}. ¶ is a new block.", "bold"),
        )
    if difference.coarse:
        yield Text("Some parts differ too much to be aligned; there, words that the other side lacks are marked.")
    if difference.left.cut or difference.right.cut:
        yield Text("Only the beginnings were compared.")
    for passage in shown.shown:
        if passage.same_before:
            yield Text(f"… {counted(passage.same_before, 'equal word')} …", style="dim")
        yield Padding(Text.assemble(*map(_styled, passage.inline)), (0, 0, 0, 2))
    if shown.more:
        yield Text(f"… {counted(shown.more, 'further difference')} not shown …", style="dim")
    elif shown.same_after > 0:
        yield Text(f"… {counted(shown.same_after, 'equal word')} to the end", style="dim")


def _styled(segment: Segment) -> tuple[str, str]:
    return visible(plain([segment])), "dim" if segment.gap else _STYLES[segment.sign]
