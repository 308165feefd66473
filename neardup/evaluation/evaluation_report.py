"""Writes an evaluation: one HTML page that loads and runs nothing, plots as SVG, data as CSV and JSON."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from neardup.errors import BadInput
from neardup.evaluation.corpus import CorpusCounts
from neardup.evaluation.henzinger_choice_tables import combined_section, t_section
from neardup.evaluation.henzinger_choices import knee_warnings
from neardup.evaluation.henzinger_label_tables import (
    b_judged,
    c_judged,
    far_apart,
    kinds_of_difference,
    reasons_of_undecided,
    worst_sites,
)
from neardup.evaluation.henzinger_pairs_tables import (
    between_section,
    graph_section,
    hosts_section,
    levels_section,
    term_differences,
)
from neardup.evaluation.henzinger_variants import ablation_section
from neardup.evaluation.labels import Judgement
from neardup.evaluation.rule_tables import rules_section
from neardup.evaluation.run_tables import RunStudy, run_section, run_sections
from neardup.evaluation.sections import Cell, ResultTable, Section, by_name, shown
from neardup.evaluation.study import CrawlStudy, LabelledStudy
from neardup.report.page_templates import environment, styled
from neardup.report.plots import standalone
from neardup.verdict import Kind
from neardup.wording import counted


class Paper(NamedTuple):
    """The paper that an evaluation repeats. title: title of the page. source: sentence about the paper's figures."""

    title: str
    source: str


HENZINGER = Paper(
    "Evaluation",
    "After M. Henzinger, “Finding near-duplicate web pages: a large-scale evaluation of algorithms” (SIGIR 2006); her "
    "figures stand beside these in italics in tables 2, 3, 4 and 10 and at the choice of t.",
)
HUFFMAN = Paper(
    "Many signals, measured as Huffman 2007",
    "After S. Huffman and others, “Multiple-signal duplicate detection for search evaluation” (SIGIR 2007); the "
    "paper's figures stand beside these in italics.",
)
HUANG = Paper(
    "Trustable LCS, measured as Huang 2008",
    "After L. Huang and others, “Achieving both high precision and high recall in near-duplicate detection” (CIKM "
    "2008); the paper's figures stand beside these in italics.",
)


@dataclass
class Evaluation:
    """The result of an evaluation.

    counts: counts of the corpus. answer: a summary in sentences. notes: caveats of the figures. fetched: sentences on
    the origin of the corpus. unread: number of places of the input that could not be read.
    """

    sections: list[Section]
    counts: CorpusCounts
    fetched: str
    notes: list[str] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    unread: int = 0

    @property
    def answer(self) -> list[str]:
        return answer(self.sections)

    def to_json(self) -> dict[str, Any]:
        """Returns every table, row by row."""
        return {
            "answer": self.answer,
            "corpus": asdict(self.counts),
            "made": self.fetched,
            "labels": self.labels,
            "notes": self.notes,
            "sections": {section.key: section.to_json() for section in self.sections},
        }


#: File names of tables and plots.
_WRITTEN = re.compile(r"table-[a-z0-9-]+\.csv|plot-[a-z0-9-]+\.(?:csv|svg)")

_PARTS = (
    *(graph_section, levels_section, b_judged, c_judged, kinds_of_difference, reasons_of_undecided, term_differences),
    *(far_apart, between_section, combined_section, worst_sites, t_section, ablation_section),
)


def evaluate(study: CrawlStudy) -> Evaluation:
    """Computes all sections: rules, run, the paper's tables and plots, the choice of t, and variants."""
    sections = [rules_section(study)]
    if study.run is not None:
        sections.append(run_section(study.run, study, study.editions))
    sections += [hosts_section(study.corpus.urls), *(part(study) for part in _PARTS)]
    notes = [*study.notes, *study.labels.problems(), *knee_warnings(study)]
    if not study.b.whole or not study.c.whole:
        notes.append("The larger graph keeps only a sample of its pairs; its counts and degrees are exact.")
    if study.texts.problems:
        unread = study.texts.problems
        notes.append(f"Pages that could not be read again: {len(unread)}, as {unread[0]}")
    fetched = (
        f"{_fetched(study.corpus.counts)} B-similar: at least {study.b.least} of 6 supershingles equal; C-similar: "
        f"at least {study.c.least} of 384 bits. Samples, splits and intervals by seed {study.seed}."
    )
    return Evaluation(sections, study.corpus.counts, fetched, notes, _labels(study))


def evaluate_run(study: RunStudy) -> Evaluation:
    """Computes the sections that need only verdicts. Every other section states the input that it lacks."""
    run = study.run
    counts = CorpusCounts(fetches=sum(run.kinds.values()), pages=len(run.clusters), repeats=len(run.exact))
    counts.rejected, counts.gone = run.kinds[Kind.REJECTED], run.kinds[Kind.GONE]
    lost = f"unreadable: {counts.rejected:,}; gone: {counts.gone:,}"
    fetched = f"From {counted(counts.fetches, 'verdict')} alone; {lost}."
    return Evaluation(run_sections(study), counts, fetched, study.labels.problems(), _labels(study))


def _labels(study: LabelledStudy) -> dict[str, int]:
    return {str(judgement): study.labels.count(judgement) for judgement in list(Judgement)[:3]}


def _fetched(counts: CorpusCounts) -> str:
    return (
        f"Of {counts.fetches:,} fetches: {counts.fetched_again:,} were of URLs fetched again later, "
        f"{counts.rejected:,} could not be read, {counts.gone:,} are gone, {counts.opaque:,} are neither HTML nor "
        f"text, {counts.empty:,} have no words. The paper set aside 25% to 33% of a crawl as identical."
    )


def to_html(evaluation: Evaluation, paper: Paper = HENZINGER) -> str:
    """Renders the page. Its Content-Security-Policy allows only its own style sheet."""
    style = styled(resources.files("neardup.evaluation").joinpath("evaluation.css").read_text(encoding="utf-8"))
    page = _templates.get_template("evaluation.html.j2")
    return page.render(paper=paper, evaluation=evaluation, counts=evaluation.counts, **style)


def write(evaluation: Evaluation, out: Path, paper: Paper = HENZINGER) -> list[Path]:
    """Writes evaluation.html, evaluation.json, a CSV for each table and plot, an SVG for each plot; returns the paths.

    Deletes tables and plots of an earlier evaluation in the folder that this one does not have. Raises BadInput if the
    folder cannot be written.
    """
    files = {"evaluation.html": to_html(evaluation, paper)}
    for section in evaluation.sections:
        for table in section.tables:
            files[f"table-{table.name}.csv"] = table.to_csv()
        for made in section.plots:
            files[f"plot-{made.name}.csv"] = made.to_csv()
            files[f"plot-{made.name}.svg"] = standalone(made.svg, made.caption, made.legend)
    data = evaluation.to_json() | {"files": sorted(files)}
    files["evaluation.json"] = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    make_folder(out)
    with _writing(out):
        for name in _written(out) - files.keys():
            (out / name).unlink(missing_ok=True)
        for name, text in files.items():
            (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in files]


def _written(out: Path) -> set[str]:
    """Lists the tables and plots that an earlier evaluation wrote into the folder."""
    try:
        names = json.loads((out / "evaluation.json").read_bytes())["files"]
        return {name for name in names if _WRITTEN.fullmatch(name)}
    except (OSError, ValueError, TypeError, KeyError):
        return set()


def make_folder(out: Path) -> None:
    """Creates the folder. Raises BadInput on failure."""
    with _writing(out):
        out.mkdir(parents=True, exist_ok=True)


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot write {error.filename or out}: {error.strerror or error}") from error


def answer(sections: Sequence[Section]) -> list[str]:
    """Writes the summary from the sections "rules" and "run". States what cannot be measured."""
    tables = by_name(sections)
    rules = next((section for section in sections if section.key == "rules"), None)
    out = []
    if rules is not None:
        out.append(_rules(tables["rules-all"]) if "rules-all" in tables else rules.missing)
    if "run-kinds" in tables:
        out += _run(tables)
    return [sentence for sentence in out if sentence]


def _rules(table: ResultTable) -> str:
    """Names the rule with the best F1, and rules with overlapping intervals; ignores runs that know fewer pairs."""
    pairs = max(int(row["pairs"] or 0) for row in table.to_json())
    measured_rows = [row for row in table.to_json() if isinstance(row["F1"], float) and row["pairs"] == pairs]
    if not measured_rows:
        return "All labelled pairs are of one kind, so rules cannot be compared."
    if len(table.rows) == 1:
        return ""  # the only row is the run: `_run` states its figures
    best = max(measured_rows, key=lambda row: float(row["F1"] or 0))
    text = f"On {counted(pairs, 'labelled pair')} {_named(best)} has the best F1: {_measured(best)}."
    least = _range(best)[0]
    near = [_named(row) for row in measured_rows if row is not best and _range(row)[1] >= least]
    if near:
        text += f" Its interval overlaps those of {_listed(near)}: these labels do not separate them."
    return text


def _run(tables: Mapping[str, ResultTable]) -> list[str]:
    counts = {str(row["verdict"]): int(row["pages"] or 0) for row in tables["run-kinds"].to_json()}
    exact, near = (counts[kind] for kind in (Kind.EXACT_DUPLICATE, Kind.NEAR_DUPLICATE))
    held, shown = (row[1] for row in tables["run-clusters"].rows[:2])
    repeats = [counted(near, "near-duplicate")]
    if exact:  # 0 if the evaluation made the run: it sets identity sets aside first
        repeats.append(counted(exact, "exact duplicate"))
    text = f"The run emitted {counted(sum(counts.values()), 'verdict')}: {', '.join(repeats)}"
    out = [f"{text}. An index would show {shown:,} of {counted(int(held or 0), 'page')}."]
    judged = tables["rules-all"].to_json()[-1] if "rules-all" in tables else None
    if judged is not None and isinstance(judged["F1"], float):
        out[0] += f" On the labelled pairs that the run contains, its F1 is {_measured(judged)}."
    if "run-steps" in tables:
        row = tables["run-steps"].to_json()[0]
        labelled = sum(int(row[name] or 0) for name in ("labelled correct", "incorrect", "undecided"))
        if labelled:
            out.append(
                f"The run merged {counted(row['near-duplicates'], 'pair')}, of which {labelled:,} labelled, "
                f"{row['labelled correct']:,} as correct."
            )
    return out


def _named(row: Mapping[str, Cell]) -> str:
    return f"“{row['rule']}”"


def _measured(row: Mapping[str, Cell]) -> str:
    return f"{_share(row, 'F1')}; precision {_share(row, 'precision')}, recall {_share(row, 'recall')}"


def _share(row: Mapping[str, Cell], name: str) -> str:
    """Formats a share with its interval, if any."""
    value, between = row[name], row[f"{name} 95%"]
    if not isinstance(value, float):
        return "unknown"
    return f"{value:.2f} (95%: {between})" if between else f"{value:.2f}"


def _range(row: Mapping[str, Cell]) -> tuple[float, float]:
    low, _, high = str(row["F1 95%"] or "0-1").partition("-")
    return float(low), float(high)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


_templates = environment("neardup.evaluation")
_templates.filters["shown"] = shown
_templates.filters["numbers"] = lambda kinds: [kind != "text" for kind in kinds]
