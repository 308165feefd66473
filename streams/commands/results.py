"""Commands on results of queries: signals, a learned model, rendered bodies."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

from neardup.wording import counted
from streams.commands.app import STUDIES, command
from streams.commands.options import (
    CPUS,
    NO_TRUTH,
    Adjudicator,
    AsJson,
    BaseUrl,
    Folds,
    Labels,
    Many,
    Model,
    Number,
    Opt,
    Quiet,
    Reads,
    RequiredResults,
    Seeds,
    Truth,
    Workers,
    Writes,
    must_exist,
)
from streams.commands.output import announce_compiler, bar, complain, complain_of, echo, print_json, show
from streams.errors import WrongUsage


@command(
    STUDIES,
    "neardup dedupe-results results.jsonl --model model.json --out groups.jsonl",
    codes='A result is a line {"query": TEXT, "url": URL, "body": TEXT, "rendered": TEXT}; rendered may be left out.',
)
def dedupe_results(
    results: Annotated[
        Path, Reads("Results as JSON lines, those of a query in their order.", "RESULTS", allow_leading_hyphen=True)
    ],
    /,
    *,
    model: Annotated[Path, Reads("Model by `neardup train`, which decides.", metavar="MODEL")],
    by: Annotated[
        Literal["tree", "rules"] | None, Opt("The classifier that decides; by default that of the model.")
    ] = None,
    out: Annotated[Path, Writes("File for the groups, a line for each query; - for standard output.")] = Path("-"),
    quiet: Quiet = False,
) -> int:
    """Group the results of queries by a learned model.

    Put the results of each query into groups of duplicates, each with the rule that decided.
    """
    import orjson

    from neardup.signals.model import read_model
    from streams.results.dedupe_results import DedupeCounts
    from streams.results.dedupe_results import dedupe_results as lines_of
    from streams.results.query_results import result_file

    announce_compiler(quiet=quiet)
    learned = read_model(model)
    learned = learned if by is None else learned.decided_by(by)
    tally, piped = DedupeCounts(), str(out) == "-"
    with ExitStack() as stack:
        shown = stack.enter_context(bar(shown=not quiet and not piped))
        file = sys.stdout.buffer if piped else stack.enter_context(result_file(out))
        for line in lines_of(results, learned, tally, progress=shown.phase):
            file.write(orjson.dumps(line) + b"\n")
    if not quiet:
        queries = f"{tally.queries:,} {'query' if tally.queries == 1 else 'queries'}"
        text = f"{queries}, {counted(tally.results, 'result')}, {counted(tally.duplicates, 'duplicate')}"
        echo(text, err=piped)
    complain_of(tally.problems)
    return 3 if tally.problems else 0


@command(
    STUDIES,
    "neardup train results.jsonl --labels labels.jsonl --out model.json",
    "neardup train crawl.warc.gz --labels labels.jsonl --signals sketches --out online.json",
    codes='A result is a line {"query": TEXT, "url": URL, "body": TEXT, "rendered": TEXT}, a label is a line '
    '{"a": {"url": URL}, "b": {"url": URL}, "label": "correct"} (incorrect, undecided).',
)
def train(
    *paths: RequiredResults,
    labels: Labels = (),
    truth: Truth = NO_TRUTH,
    adjudicator: Adjudicator = "",
    base_url: BaseUrl = None,
    out: Annotated[Path, Writes("File for the model.")] = Path("model.json"),
    signals: Annotated[
        str, Opt("F, F+R, F+R+FS+RS, ..., sketches, or names of signals with commas between.", metavar="SET")
    ] = "F+R+FS+RS",
    by: Annotated[Literal["tree", "rules"], Opt("The classifier that decides.")] = "tree",
    seeds: Seeds = 9,
    folds: Folds = 10,
    workers: Workers = CPUS,
    as_json: AsJson = False,
) -> int:
    """Train a model from labelled pairs.

    Train a decision tree and rules from labelled pairs, and measure both by the protocol of Huffman 2007.
    """
    from streams.evaluation.train import train_command

    announce_compiler()
    with bar(shown=not as_json) as shown:
        made = train_command(
            paths,
            labels,
            editions=truth.editions(),
            adjudicator=adjudicator,
            base_url=base_url,
            out=out,
            signals=signals,
            by=by,
            seeds=seeds,
            folds=folds,
            workers=workers,
            progress=shown.phase,
        )
    if as_json:
        print_json(made.to_json())
    else:
        echo(made.model.text())
        for name in ("tree", "rules", "average"):
            shares = ", ".join(f"{key} {value:.2f}" for key, value in made.model.measured[name].items())
            echo(f"{name}: {shares}")
        echo(f"{counted(made.pairs, 'labelled pair')}, {counted(made.duplicates, 'duplicate')}; model: {out}")
    for note in made.notes:
        complain(note)
    complain_of(made.problems)
    return 3 if made.problems else 0


@command(
    STUDIES,
    "neardup signals a.html b.html",
    "neardup signals a.html b.html --query 'blue wool' --model model.json",
    "neardup signals a.html b.html --a-rendered a.dom.html --b-rendered b.dom.html",
)
def signals(
    a: Annotated[Path, Opt("A file.", "A", check=must_exist)],
    b: Annotated[Path, Opt("Another file.", "B", check=must_exist)],
    /,
    *,
    a_url: Annotated[str | None, Opt("URL of A; signals use its domain.", metavar="URL")] = None,
    b_url: Annotated[str | None, Opt("URL of B.", metavar="URL")] = None,
    a_rendered: Annotated[Path | None, Reads("A as a browser serialises it.")] = None,
    b_rendered: Annotated[Path | None, Reads("B as a browser serialises it.")] = None,
    query: Annotated[str, Opt("Query that found both: snippets are around its words.", metavar="TEXT")] = "",
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Print every signal of two files.

    Print every signal of two files as Huffman 2007 defines them, and the decision of a model.
    """
    from neardup.signals.model import read_model
    from streams.results.signals_of_files import PairPage, signals_command

    announce_compiler()
    pages = PairPage(a, a_url, a_rendered), PairPage(b, b_url, b_rendered)
    show(signals_command(*pages, query=query, model=None if model is None else read_model(model)), as_json=as_json)


@command(
    STUDIES,
    "neardup render results.jsonl --world crawl.warc.gz --out rendered.jsonl",
    "neardup render results.jsonl --network site --tabs 4 --out rendered.jsonl",
    codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but some pages could not be rendered or read, "
    "130 interrupted.",
)
def render(
    *paths: RequiredResults,
    out: Annotated[Path, Writes("File for the results with their rendered bodies.")] = Path("rendered.jsonl"),
    world: Annotated[
        tuple[Path, ...],
        Many("Archives that answer requests of pages.", "--world", check=must_exist, metavar="PATH"),
    ] = (),
    network: Annotated[Literal["none", "site"], Opt("site: pages also load from servers of their own site.")] = "none",
    private: Annotated[bool, Opt("Admit servers without a public address: for pages of an intranet.")] = False,
    tabs: Annotated[int, Number("Pages at a time.", "--tabs", low=1, high=64)] = 2,
    page_seconds: Annotated[
        float, Number("Seconds for a page to become idle.", "--page-seconds", low=1, high=600)
    ] = 10,
    browser: Annotated[str, Opt("Chromium, if it is not on the path.", metavar="PROGRAM")] = "",
    no_sandbox: Annotated[bool, Opt("Run without Chromium's sandbox: only in a container of its own.")] = False,
    base_url: BaseUrl = None,
    quiet: Quiet = False,
) -> int:
    """Add bodies that a browser rendered to results.

    Let Chromium run the scripts of results, graft their frames in and follow their refreshes.

    Pages reach only what --world and --network give them.
    """
    if private and network != "site":
        raise WrongUsage("--private is for --network site")

    from streams.results.render_network import Network
    from streams.results.render_results import render_command

    with bar(shown=not quiet) as shown:
        tally = render_command(
            paths,
            out,
            world=world,
            network=Network(private=private) if network == "site" else None,
            tabs=tabs,
            base_url=base_url,
            progress=shown.phase,
            program=browser,
            sandbox=not no_sandbox,
            page_seconds=page_seconds,
        )
    if not quiet:
        text = f"{tally.results:,} results: {tally.rendered:,} rendered, {tally.failed:,} not, {tally.others:,} left"
        echo(f"{text} as they were; {out}")
    complain_of(tally.problems)
    return 3 if tally.problems else 0
