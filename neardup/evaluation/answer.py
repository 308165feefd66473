"""Summarises an evaluation in sentences: the rules compared, and the verdicts of the run."""

from collections.abc import Mapping, Sequence

from neardup.evaluation.figures.sections import Cell, ResultTable, Section, by_name
from neardup.verdict import Kind
from neardup.wording import counted


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
