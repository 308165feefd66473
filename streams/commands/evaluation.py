"""Commands that label pairs, and measure rules and methods on them."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from neardup.errors import BadInput
from neardup.wording import counted
from streams.commands.app import EVALUATE, STUDIES, command, family
from streams.commands.options import (
    NO_TRUTH,
    THREADS,
    Adjudicator,
    AsJson,
    BaseUrl,
    ConnectionFlags,
    Folder,
    Folds,
    FollowLinks,
    InsteadState,
    Labels,
    Many,
    Number,
    Opt,
    Pages,
    Port,
    Reads,
    RequiredResults,
    Results,
    Seed,
    Seeds,
    SettingFlags,
    Threads,
    Truth,
    Workers,
    Writes,
    inputs,
    is_topic,
    must_exist,
)
from streams.commands.output import (
    announce_compiler,
    bar,
    complain,
    complain_of,
    echo,
    print_json,
    print_rich,
    show_evaluation,
)
from streams.config.settings import LABEL_PORT
from streams.errors import WrongUsage

family(EVALUATE, "evaluate")

_TOPIC = "topic:"


def _must_be_audit(audits: Sequence[str]) -> None:
    must_exist([each for each in audits if not is_topic(each)])


Audits = Annotated[
    tuple[str, ...],
    Many(
        "Pairs that a scan or the matcher drew: a file, or topic:NAME.",
        "--audit",
        check=_must_be_audit,
        metavar="FILE|topic:NAME",
    ),
]


Ratio = Annotated[float, Opt("Common share of two releases' texts from which they are duplicates.", "--ratio")]


@contextmanager
def _audit_files(audits: Sequence[str], settings: SettingFlags) -> Iterator[list[Path]]:
    """Yields audits as files; the present records of topics are copied into temporary ones."""
    with tempfile.TemporaryDirectory(prefix="neardup-audits-") as folder:
        files = []
        for number, audit in enumerate(audits):
            if not audit.startswith(_TOPIC):
                files.append(Path(audit))
                continue
            from rich.console import Console

            from streams.verdicts.print_verdicts import show

            files.append(Path(folder, f"{number}.jsonl"))
            with files[-1].open("wb") as out:
                topic = audit.removeprefix(_TOPIC)
                show(settings.read(connects="verdicts"), Console(), json_out=out, topic=topic, follow=False)
        yield files


@command(
    EVALUATE,
    "neardup label crawl.warc.gz --labels labels.jsonl --rule B --count 100",
    "neardup label crawl.warc.gz --labels labels.jsonl --audit topic:audit",
    "neardup label results.jsonl --labels labels.jsonl --queries",
)
def label(
    *paths: Pages,
    labels: Annotated[Path, Opt("File that labels are appended to, and read from.", metavar="FILE")],
    state: InsteadState = None,
    rule: Annotated[
        str,
        Opt(
            "Pairs to draw: in-use (of the scan's rule, those closest to its threshold first), or of an algorithm of "
            "Henzinger 2006: B, C, combined, site-split, B-only, C-only.",
            metavar="RULE",
        ),
    ] = "in-use",
    count: Annotated[int, Number("Pairs to draw.", "--count", low=1, high=100_000)] = 200,
    by: Annotated[str, Opt("Strata of the sample.", metavar="all|level|site")] = "all",
    audits: Audits = (),
    sets: Annotated[Path | None, Reads("Draw pairs from the sets of a partition: its sets.jsonl.", "--sets")] = None,
    queries: Annotated[
        bool, Opt("Draw all pairs of the results of queries, whole queries until --count pairs.")
    ] = False,
    base_url: BaseUrl = None,
    follow_links: FollowLinks = False,
    seed: Seed = 0,
    port: Port = LABEL_PORT,
    threads: Threads = THREADS,
    settings: ConnectionFlags = ConnectionFlags.NONE,
) -> None:
    """Label pairs of a crawl in a browser.

    Label pairs of a crawl in a browser, with their texts side by side. Ctrl-C ends it.

    The page is served on this machine only. --audit labels the pairs that a scan or the matcher drew. --queries shows
    the query of each pair: duplicates have the same content for it.
    """
    from streams.evaluation.label import check_options, label_command

    with _audit_files(audits, settings) as drawn:
        try:
            check_options(
                labels=labels, state=state, rule=rule, count=count, by=by, audits=drawn, port=port, paths=paths
            )
        except BadInput as error:
            raise WrongUsage(str(error)) from error
        announce_compiler()
        with inputs(paths) as files, bar(shown=True) as shown:
            complain_of(files.not_read.lines)
            label_command(
                files.paths,
                labels=labels,
                state=state,
                rule=rule,
                count=count,
                by=by,
                audits=drawn,
                sets=sets,
                queries=queries,
                base_url=base_url,
                follow_links=follow_links,
                seed=seed,
                port=port,
                threads=threads,
                progress=shown.phase,
                ready=lambda url: echo(f"label pairs at {url} (Ctrl-C ends)"),
                warn=complain,
            )


@command(
    EVALUATE,
    "neardup evaluate crawl.warc.gz --out evaluation",
    "neardup evaluate --state DIR --labels labels.jsonl --propose",
    "neardup evaluate crawl.warc.gz --releases '[0-9.]+' --out evaluation",
    "neardup evaluate --verdicts verdicts.jsonl --labels labels.jsonl",
    name="evaluate",
    codes='A label is a line {"a": {"url": URL}, "b": {"url": URL}, "label": "correct"} (incorrect, undecided), an '
    'item {"url": URL, "item": TEXT}, with an "edition" where one item has several.',
)
def evaluate(
    *paths: Pages,
    state: InsteadState = None,
    labels: Labels = (),
    truth: Truth = NO_TRUTH,
    verdicts: Annotated[
        Path | None,
        Reads("Verdicts by `scan --out` or `verdicts --json`: the run to evaluate.", allow_leading_hyphen=True),
    ] = None,
    ratio_min: Ratio = 0.75,
    propose: Annotated[
        bool, Opt("Propose numbers of the decider that fit the labels better, and show what they would change.")
    ] = False,
    content: Annotated[bool, Opt("With --propose: count same_content as a duplicate, too.", "--same-content")] = False,
    out: Annotated[Path, Folder("Folder for the report, its pictures and data.")] = Path("evaluation"),
    labels_out: Annotated[Path | None, Writes("Write all labels that were used.")] = None,
    audits: Audits = (),
    base_url: BaseUrl = None,
    follow_links: FollowLinks = False,
    seed: Seed = 0,
    threads: Threads = THREADS,
    as_json: AsJson = False,
    settings: ConnectionFlags = ConnectionFlags.NONE,
) -> int:
    """Measure rules on a crawl; the tables of Henzinger 2006.

    Evaluate a crawl as Henzinger 2006 did: tables and plots, with the figures of the paper.

    Every rule is measured on labelled pairs, with intervals. Without labels, only the tables that need none are made.
    With --propose, numbers of the decider are chosen on one half of the labels and measured on the other half; with
    --state the scan's log is folded again with them, and the changed verdicts are shown. Nothing is changed.
    """
    if propose and not labels:
        raise WrongUsage("--propose needs labels: name files of them by --labels")
    from streams.evaluation.evaluate import evaluate_command

    announce_compiler()
    with _audit_files(audits, settings) as drawn, inputs(paths) as files, bar(shown=not as_json) as shown:
        made = evaluate_command(
            files.paths,
            state=state,
            verdicts=verdicts,
            labels=labels,
            natural=truth.natural,
            releases=truth.releases,
            items=truth.items,
            ratio_min=ratio_min,
            out=out,
            base_url=base_url,
            follow_links=follow_links,
            seed=seed,
            threads=threads,
            labels_out=labels_out,
            audits=drawn,
            progress=shown.phase,
        )
        proposal = None
        if propose:
            from streams.evaluation.tune import tune_command

            proposal = tune_command(
                labels,
                files.paths,
                state=state,
                base_url=base_url,
                content=content,
                seed=seed,
                threads=threads,
                progress=shown.phase,
            )
    if as_json:
        print_json({**made.to_json(), **({} if proposal is None else {"proposal": proposal.to_json()})})
    else:
        _print_evaluation(made, proposal, state, out, exact="exact copies set aside" if paths or state else "")
    complain_of(files.not_read.lines)
    return 3 if made.unread or files.not_read.lines else 0


def _print_evaluation(made: Any, proposal: Any, state: Path | None, out: Path, exact: str) -> None:
    counts = made.counts
    labelled = ", ".join(f"{count:,} {label}" for label, count in made.labels.items()) or "none"
    copies = exact or "of them exact copies"
    echo(f"{counted(counts.pages, 'page')}, {counts.repeats:,} {copies}; labelled pairs: {labelled}")
    if made.labels["correct"] or made.labels["incorrect"]:
        _print_rules(made.to_json())
    for note in made.notes:
        complain(note)
    if proposal is not None:
        from streams.evaluation.tune import command as advised
        from streams.evaluation.tune import shown

        print_rich(shown(proposal))
        if advice := advised(proposal, state):
            echo(f"\n{advice}")  # by itself, so that no terminal's width breaks it
        for problem in proposal.tuning.problems:
            complain(problem)
    echo(f"evaluation: {out / 'evaluation.html'}")


def _print_rules(evaluation: dict[str, Any]) -> None:
    """Prints all rules side by side, with the intervals of F1."""
    from streams.process.terminal import table_of

    table = table_of("rule", ">precision", ">recall", ">F1", ">F1 95%")
    for row in evaluation["sections"]["rules"]["tables"].get("rules-all", []):
        shares = [f"{row[name]:.2f}" if row[name] is not None else "-" for name in ("precision", "recall", "F1")]
        table.add_row(row["rule"], *shares, str(row["F1 95%"] or "-"))
    print_rich(table)


@command(
    STUDIES,
    "neardup evaluate tlcs crawl.warc.gz --releases '[0-9.]+' --out evaluation",
    name="evaluate tlcs",
)
def evaluate_tlcs(
    *paths: RequiredResults,
    out: Annotated[Path, Folder("Folder for the report, its data, and the partitions.")] = Path("evaluation-tlcs"),
    pairs: Annotated[
        int, Number("Near-duplicates, and other pairs, to measure.", "--pairs", low=1, high=100_000)
    ] = 500,
    labels: Labels = (),
    truth: Truth = NO_TRUTH,
    ratio_min: Ratio = 0.75,
    base_url: BaseUrl = None,
    follow_links: FollowLinks = False,
    workers: Workers = THREADS,
    as_json: AsJson = False,
) -> int:
    """Measure trustable LCS as Huang 2008 did.

    Measure trustable LCS as Huang 2008 did: signatures, windows, slopes, steps, three systems, kinds of errors.
    """
    from streams.evaluation.evaluate_tlcs import evaluate_tlcs as run

    announce_compiler()
    with bar(shown=not as_json) as shown:
        made = run(
            paths,
            editions=truth.editions(),
            out=out,
            pairs=pairs,
            ratio_min=ratio_min,
            labels=labels,
            base_url=base_url,
            follow_links=follow_links,
            workers=workers,
            progress=shown.phase,
        )
    return show_evaluation(made, out, as_json=as_json)


@command(
    STUDIES,
    "neardup evaluate signals results.jsonl --labels labels.jsonl --out evaluation",
    "neardup evaluate signals crawl.warc.gz --natural --seeds 3",
    "neardup evaluate signals --train german.jsonl --judge french.jsonl --labels labels.jsonl",
    name="evaluate signals",
)
def evaluate_signals(
    *paths: Results,
    judge: Annotated[
        tuple[Path, ...], Many("Pages to judge, as PATH.", "--judge", check=must_exist, metavar="PATH")
    ] = (),
    train: Annotated[
        tuple[Path, ...],
        Many("Pages to learn from, whose models judge PATH.", "--train", check=must_exist, metavar="PATH"),
    ] = (),
    group: Annotated[Literal["page", "query"] | None, Opt("Compare with folds that keep a group whole.")] = None,
    labels: Labels = (),
    truth: Truth = NO_TRUTH,
    adjudicator: Adjudicator = "",
    base_url: BaseUrl = None,
    out: Annotated[Path, Folder("Folder for the report, its pictures and data.")] = Path("evaluation-signals"),
    pairs: Annotated[int, Number("Most pairs to label by natural truth.", "--pairs", low=1, high=100_000)] = 1000,
    seeds: Seeds = 9,
    folds: Folds = 10,
    workers: Workers = THREADS,
    as_json: AsJson = False,
) -> int:
    """Measure signals and classifiers as Huffman 2007 did.

    Measure signals and classifiers as Huffman 2007 did: each signal, sets of them, curves, cost, languages.
    """
    judged = (*paths, *judge)
    if not judged:
        raise WrongUsage("no pages: name files of them, by PATH or --judge")
    from streams.evaluation.evaluate_signals import evaluate_signals as run

    announce_compiler()
    with bar(shown=not as_json) as shown:
        made = run(
            judged,
            labels,
            editions=truth.editions(),
            train=train,
            group=group,
            adjudicator=adjudicator,
            base_url=base_url,
            out=out,
            pairs=pairs,
            seeds=seeds,
            folds=folds,
            workers=workers,
            progress=shown.phase,
        )
    return show_evaluation(made, out, as_json=as_json)
