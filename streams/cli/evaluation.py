"""The commands of the evaluation: Henzinger's tables over a crawl, and the page for labelling its pairs."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from neardup.errors import BadInput
from streams.cli.options import (
    INPUTS,
    FollowLinksOption,
    JsonOption,
    announce_compiler,
    complain,
    examples,
    inputs,
    must_exist,
    print_json,
)
from streams.errors import WrongUsage

app = typer.Typer(rich_markup_mode=None)

SEED_MAX = (1 << 63) - 1
_THREADS = max(1, (os.cpu_count() or 2) - 1)

PathsArgument = Annotated[list[str] | None, typer.Argument(metavar="[PATH]...", help=INPUTS)]
StateOption = Annotated[
    Path | None, typer.Option("--state", metavar="DIR", help="Instead of files: what a scan knows.")
]
BaseUrlOption = Annotated[
    str | None, typer.Option(metavar="URL", help="What the file names of folders are appended to.")
]
LabelsOption = Annotated[
    list[Path] | None, typer.Option("--labels", metavar="FILE", help="What people said of pairs; may be repeated.")
]
NaturalOption = Annotated[bool, typer.Option("--natural", help="Truth by one path in several releases.")]
ReleasesOption = Annotated[
    str | None, typer.Option(metavar="REGEX", help="What tells releases apart in a path; implies --natural.")
]
ItemsOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="What pages are about, where it is known; implies --natural.")
]
AdjudicatorOption = Annotated[
    str, typer.Option("--adjudicator", metavar="NAME", help="The labeller whose label counts where labels differ.")
]
AuditOption = Annotated[
    list[Path] | None, typer.Option("--audit", metavar="FILE", help="What a scan or the matcher drew; may be repeated.")
]
ThreadsOption = Annotated[int, typer.Option(min=1, max=256, help="Threads.")]


@app.command(
    short_help="Make the tables of Henzinger 2006 over a crawl.",
    epilog=examples(
        "neardup evaluate crawl.warc.gz --out evaluation",
        "neardup evaluate --state DIR --labels labels.jsonl --out evaluation",
        "neardup evaluate crawl.warc.gz --releases '[0-9.]+' --out evaluation",
        "neardup evaluate --verdicts verdicts.jsonl --labels labels.jsonl.   "
        'A label is a line {"a": {"url": URL}, "b": {"url": URL}, "label": "correct"} (incorrect, undecided), an item '
        '{"url": URL, "item": TEXT}, with an "edition" where one item has several.',
    ),
)
def evaluate(
    paths: PathsArgument = None,
    state: StateOption = None,
    labels: LabelsOption = None,
    natural: NaturalOption = False,
    releases: ReleasesOption = None,
    items: ItemsOption = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What `scan --out` or `verdicts` wrote: the run; alone, only what it tells."),
    ] = None,
    ratio: Annotated[
        float, typer.Option(help="Two releases of a page are duplicates from this share of common text on.")
    ] = 0.75,
    out: Annotated[Path, typer.Option(metavar="DIR", help="For the report, its pictures and data.")] = Path(
        "evaluation"
    ),
    labels_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all labels there that were used.")
    ] = None,
    audits: AuditOption = None,
    base_url: BaseUrlOption = None,
    follow_links: FollowLinksOption = False,
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Of samples, splits and intervals.")] = 0,
    threads: ThreadsOption = _THREADS,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a crawl as Henzinger 2006 did: her tables and plots, beside the paper's figures where known.

    Without labels only what needs none is made. Every rule is put side by side on labelled pairs, with intervals.
    """
    from streams.commands.terminal import bar
    from streams.evaluation.evaluate import evaluate_command

    must_exist((verdicts, items, *(labels or ()), *(audits or ()), *(paths or ())))
    announce_compiler()
    with inputs(paths or ()) as files, bar(shown=not as_json) as shown:
        made = evaluate_command(
            files,
            state=state,
            labels=labels or (),
            natural=natural,
            releases=releases,
            items=items,
            verdicts=verdicts,
            ratio_min=ratio,
            out=out,
            base_url=base_url,
            follow_links=follow_links,
            seed=seed,
            threads=threads,
            labels_out=labels_out,
            audits=audits or (),
            progress=shown.phase,
        )
    if as_json:
        print_json(made.to_json())
    else:
        counts = made.counts
        said = ", ".join(f"{count:,} {label}" for label, count in made.labels.items()) or "none"
        aside = "exact copies set aside" if paths or state else "of them exact copies"
        pages = "page" if counts.pages == 1 else "pages"
        typer.echo(f"{counts.pages:,} {pages}, {counts.repeats:,} {aside}; labelled pairs: {said}")
        if made.labels["correct"] or made.labels["incorrect"]:
            _show_rules(made.to_json())
        for note in made.notes:
            complain(note)
        typer.echo(f"evaluation: {out / 'evaluation.html'}")
    if made.unread:
        raise typer.Exit(3)  # as after a scan that could not read everything


@app.command(
    short_help="Ask labelled pairs for numbers of the rule.",
    epilog=examples(
        "neardup tune labels.jsonl --state DIR",
        "neardup tune labels.jsonl --pages crawl.warc.gz",
        "neardup tune labels.jsonl --state DIR --json | jq .flags",
    ),
)
def tune(
    labels: Annotated[
        list[Path], typer.Argument(metavar="LABELS...", help="What `neardup label` or `evaluate --labels-out` wrote.")
    ],
    state: StateOption = None,
    pages: Annotated[
        list[str] | None, typer.Option("--pages", metavar="PATH", help=f"Instead, may be repeated: {INPUTS}")
    ] = None,
    content: Annotated[bool, typer.Option("--same-content", help="same_content counts as a duplicate, too.")] = False,
    base_url: BaseUrlOption = None,
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Of halves and intervals.")] = 0,
    threads: ThreadsOption = _THREADS,
    as_json: JsonOption = False,
) -> None:
    """Propose numbers of the decider for a crawl of your own; nothing is changed.

    Numbers are chosen on one half of the labelled pairs and told of the other, with 95% intervals. With --state the
    scan's log is folded once more under them, and what would have been said otherwise is shown.
    """
    from streams.commands.terminal import bar
    from streams.evaluation.tune import command, shown, tune_command

    must_exist((*labels, *(pages or ())))
    announce_compiler()
    with inputs(pages or ()) as files, bar(shown=not as_json) as progress:
        found = tune_command(
            labels,
            files,
            state=state,
            base_url=base_url,
            content=content,
            seed=seed,
            threads=threads,
            progress=progress.phase,
        )
    if as_json:
        print_json(found.to_json())
        return
    from rich.console import Console

    Console().print(shown(found))
    if advice := command(found, state):
        typer.echo(f"\n{advice}")  # by itself, so that no terminal's width breaks it
    for problem in found.tuning.problems:
        complain(problem)


def _show_rules(told: dict[str, Any]) -> None:
    """All rules side by side, with the intervals of F1."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("rule", "precision", "recall", "F1", "F1 95%"):
        table.add_column(name, justify="left" if name == "rule" else "right")
    for row in told["sections"]["rules"]["tables"].get("rules-all", []):
        shares = [f"{row[name]:.2f}" if row[name] is not None else "-" for name in ("precision", "recall", "F1")]
        table.add_row(row["rule"], *shares, str(row["F1 95%"] or "-"))
    Console().print(table)


@app.command(
    short_help="Label pairs of a crawl in a browser.",
    epilog=examples("neardup label crawl.warc.gz --labels labels.jsonl --rule B --count 100"),
)
def label(
    labels: Annotated[
        Path, typer.Option("--labels", metavar="FILE", help="Labels are appended there, and read again.")
    ],
    paths: PathsArgument = None,
    state: StateOption = None,
    rule: Annotated[
        str, typer.Option(metavar="RULE", help="Which pairs are drawn: B, C, combined, site-split, B-only, C-only.")
    ] = "B",
    count: Annotated[int, typer.Option(min=1, max=100_000, help="How many pairs.")] = 200,
    by: Annotated[str, typer.Option(metavar="all|level|site", help="Evenly over what.")] = "all",
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Of the draw.")] = 0,
    audits: AuditOption = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="On 127.0.0.1; 0: any free one.")] = 8765,
    base_url: BaseUrlOption = None,
    follow_links: FollowLinksOption = False,
    threads: ThreadsOption = _THREADS,
) -> None:
    """Label pairs of a crawl in a browser: their text side by side, on this machine only, until Ctrl-C."""
    from streams.commands.terminal import bar
    from streams.evaluation.label import check_options, label_command

    must_exist(paths or ())
    try:
        check_options(
            paths or (), labels=labels, state=state, rule=rule, count=count, by=by, port=port, audits=audits or ()
        )
    except BadInput as error:
        raise WrongUsage(str(error)) from error
    announce_compiler()
    with inputs(paths or ()) as files, bar(shown=True) as shown:
        label_command(
            files,
            labels=labels,
            state=state,
            rule=rule,
            count=count,
            by=by,
            seed=seed,
            audits=audits or (),
            port=port,
            base_url=base_url,
            follow_links=follow_links,
            threads=threads,
            progress=shown.phase,
            ready=lambda url: typer.echo(f"label pairs at {url} (Ctrl-C ends)"),
            told=complain,
        )


@app.command(
    "evaluate tlcs",
    short_help="Measure trustable LCS as Huang 2008 did.",
    epilog=examples(
        "neardup evaluate tlcs crawl.warc.gz --releases '[0-9.]+' --out evaluation",
        "neardup evaluate tlcs crawl.warc.gz --items items.jsonl",
    ),
)
def evaluate_tlcs(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="WARC files, folders of HTML, JSON lines, as for scan.")
    ],
    natural: NaturalOption = False,
    releases: ReleasesOption = None,
    items: ItemsOption = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="For the report, its data, and the partitions.")] = Path(
        "evaluation-tlcs"
    ),
    pairs: Annotated[int, typer.Option(min=1, max=100_000, help="Near-duplicates, and others, to measure.")] = 500,
    base_url: BaseUrlOption = None,
    follow_links: FollowLinksOption = False,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that compare texts.")] = _THREADS,
    as_json: JsonOption = False,
) -> None:
    """Measure trustable LCS as Huang 2008 did: signatures, windows, slopes, and three systems side by side."""

    from streams.commands.terminal import bar
    from streams.evaluation import tlcs as command
    from streams.evaluation.evaluate import editions_of

    must_exist((items, *paths))
    announce_compiler()
    editions = editions_of(releases, items, natural)
    options = command.TlcsOptions(out, editions, pairs, workers, 1000 + 500 * workers)
    with bar(shown=not as_json) as shown:
        made = command.evaluate_tlcs(paths, options, base_url=base_url, follow_links=follow_links, progress=shown.phase)
    if as_json:
        print_json(made.to_json())
    else:
        for section in made.sections:
            for table in section.tables:
                _show_table(table)
            if section.missing:
                complain(f"{section.title}: {section.missing}")
        typer.echo(f"evaluation: {out / 'evaluation.html'}")
    if made.unread:
        raise typer.Exit(3)


@app.command(
    "evaluate signals",
    short_help="Measure signals and classifiers as Huffman 2007 did.",
    epilog=examples(
        "neardup evaluate signals results.jsonl --labels labels.jsonl --out evaluation",
        "neardup evaluate signals crawl.warc.gz --natural --seeds 3",
    ),
)
def evaluate_signals(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Results as JSON lines; or pages, as for scan.")
    ],
    labels: LabelsOption = None,
    natural: NaturalOption = False,
    releases: ReleasesOption = None,
    items: ItemsOption = None,
    adjudicator: AdjudicatorOption = "",
    out: Annotated[Path, typer.Option(metavar="DIR", help="For the report, its pictures and data.")] = Path(
        "evaluation-signals"
    ),
    pairs: Annotated[int, typer.Option(min=1, max=100_000, help="Pairs that natural truth labels.")] = 1000,
    seeds: Annotated[int, typer.Option(min=1, max=99, help="Cross-validations of each learner.")] = 9,
    folds: Annotated[int, typer.Option(min=2, max=100, help="Of a cross-validation.")] = 10,
    base_url: BaseUrlOption = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that learn.")] = _THREADS,
    as_json: JsonOption = False,
) -> None:
    """Measure signals and classifiers as Huffman 2007 did: each signal, sets of them, curves, cost, languages."""

    from streams.batch.workers import Stopped
    from streams.commands.terminal import bar
    from streams.evaluation import signals as command
    from streams.evaluation.evaluate import editions_of

    must_exist((items, *(labels or ()), *paths))
    announce_compiler()
    options = command.SignalsOptions(
        out, editions_of(releases, items, natural), pairs, seeds, folds, workers, adjudicator
    )
    with bar(shown=not as_json) as shown:
        try:
            made = command.evaluate_signals(paths, labels or (), options, base_url=base_url, progress=shown.phase)
        except Stopped:
            typer.echo("neardup: interrupted", err=True)
            raise typer.Exit(130) from None
    if as_json:
        print_json(made.to_json())
    else:
        _show_sections(made, out)
    if made.unread:
        raise typer.Exit(3)


def _show_sections(made: Any, out: Path) -> None:
    """Every table, what is missing, and where the page lies."""
    for section in made.sections:
        for table in section.tables:
            _show_table(table)
        if section.missing:
            typer.echo(f"neardup: {section.title}: {section.missing}", err=True)
    for note in made.notes:
        typer.echo(f"neardup: {note}", err=True)
    typer.echo(f"evaluation: {out / 'evaluation.html'}")


def _show_table(made: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    from neardup.evaluation.figures.sections import shown

    table = Table(title=made.caption, title_justify="left", box=None, pad_edge=False)
    for name, kind in zip(made.columns, made.kinds, strict=True):
        # names stay whole in a narrow terminal: they differ at their ends
        table.add_column(name, justify="left" if kind == "text" else "right", no_wrap=kind == "text", overflow="fold")
    for row in made.rows:
        table.add_row(*(shown(cell, kind) for cell, kind in zip(row, made.kinds, strict=True)))
    Console().print(table)
