"""Commands that serve verdicts over HTTP, and those by which an operator changes what an index shows."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from neardup.canonical import CRITERIA, policy_of
from neardup.errors import BadInput
from streams.commands.app import VERDICTS, command
from streams.commands.options import (
    AsJson,
    ConnectionFlags,
    ForgetFlags,
    Host,
    HostNames,
    NoFlags,
    OfScan,
    Opt,
    Port,
    Reads,
    ViewsFlags,
    must_be_state,
)
from streams.commands.output import announce_serving, bar, complain, echo, print_json
from streams.config.settings import ASK_PORT, VIEWS_PORT, Settings
from streams.errors import BrokerError, WrongUsage

if TYPE_CHECKING:
    from neardup.sketch.takedown_hashes import Takedown
    from streams.commands.output import Bar


@command(VERDICTS, "neardup views neardup-state", "neardup views --bootstrap 127.0.0.1:9092")
def views(
    state: OfScan = None,
    *,
    host: Host = "127.0.0.1",
    port: Port = VIEWS_PORT,
    names: HostNames = (),
    address: Annotated[
        str | None, Opt("Stream: address of this worker for the others; by default --host.", metavar="URL")
    ] = None,
    audit: Annotated[Path | None, Reads("File of pairs that a scan drew by --audit.")] = None,
    labels: Annotated[
        Path | None, Opt("File for labels: users with the token label the pairs.", metavar="FILE")
    ] = None,
    rebuild: Annotated[bool, Opt("Stream: rebuild the tables from the topic.")] = False,
    settings: ViewsFlags = ViewsFlags.NONE,
) -> None:
    """Serve verdicts, clusters and sites as web pages.

    Serve web pages about verdicts: an overview, pages with evidence and history, clusters, sites, comparisons.

    Without DIR, the views follow the topic of verdicts and keep tables in a folder. Several workers of one group, each
    with a folder of its own, share the topic's partitions, and each serves all pages. Give the views the rule and
    numbers of the matcher if they are not the default; the evidence is explained by them. Every page has a JSON form,
    as url.json?url=... If NEARDUP_VIEWS_TOKEN or NEARDUP_VIEWS_TOKEN_FILE is set, requests need this token; a browser
    asks for it as a password, with any user name.
    """
    given = settings.read()
    if state is not None and rebuild:
        raise WrongUsage("--rebuild is for the stream: of a scan, delete DIR/views, and its tables are built again")
    if state is None and audit is not None:
        raise WrongUsage("--audit is for a scan; the stream's pairs are in a topic: --audit-topic, as for the matcher")
    if labels is not None and given.views_token is None:
        raise WrongUsage("--labels: labelling needs a token; set NEARDUP_VIEWS_TOKEN(_FILE)")

    import asyncio

    from streams.evaluation.label import LabelFile
    from streams.process import logs
    from streams.process.resource_limits import raise_open_files
    from streams.process.web_server import listen
    from streams.views import web

    if state is not None:
        from streams.views.audited_pairs import audits_of
        from streams.views.source import ScanSource

        with bar(shown=True, counts=True) as progress:
            source = ScanSource(state, None if audit is None else audits_of(audit), _building(progress))
    raise_open_files()
    file = None if labels is None else LabelFile(labels)
    sock = listen(host, port, given.views_token)
    try:
        with logs.configured(given.log_level, given.log_format, secrets=given.secrets()):
            if state is not None:
                token = given.views_token
                serving = web.serve(
                    source, source.decider, sock, names=names, token=token, labels=file, ready=announce_serving
                )
            else:
                from streams.views.stream_source import run

                serving = run(
                    given, sock, rebuild=rebuild, names=names, address=address, labels=file, ready=announce_serving
                )
            asyncio.run(serving)
    finally:
        sock.close()
        if file is not None:
            file.close()


def _building(progress: "Bar") -> Callable[[int, int, int], None]:
    """Return what shows how far the tables of a scan are built: in the bar, or as a line for each tenth."""
    tenth = -1

    def shown(done: int, total: int, verdicts: int) -> None:
        nonlocal tenth
        progress.phase(f"tables of the views, {verdicts:,} verdicts", done, total)
        if not progress.watched and (now := 10 * done // max(1, total)) > tenth:
            tenth = now
            complain(f"building the tables of the views: {verdicts:,} verdicts, {done / max(1, total):.0%}")

    return shown


@command(VERDICTS, "neardup ask neardup-state", "NEARDUP_ASK_TOKEN_FILE=token neardup ask DIR --host 0.0.0.0")
def ask(
    state: Annotated[
        Path, Opt("The state directory of a scan or a matcher, which may be running.", "--state", metavar="DIR")
    ],
    *,
    host: Host = "127.0.0.1",
    port: Port = ASK_PORT,
    names: HostNames = (),
    wait: Annotated[bool, Opt("Wait until the directory has an index.")] = False,
    settings: NoFlags = NoFlags.NONE,
) -> None:
    """Answer what adding a page would give, over HTTP.

    Serve POST /ask over HTTP: the verdict that a page would get, without adding the page.

    A request is a page as a JSON object, as `scan` reads it (`url`, `body`, `content_type`). The index is the one that
    the scan or matcher last flushed; the answer has the verdict, and the age of this index, which --flush-ms of the
    matcher shortens. GET / tells this age, too. Questions need the token of NEARDUP_ASK_TOKEN(_FILE), if it is set.
    """
    import asyncio

    from streams.ask.answers import IndexSnapshot
    from streams.ask.http_service import serve
    from streams.process.web_server import listen

    if wait:
        if not _waited(state):
            return
    else:
        must_be_state(state)
    token = settings.read().ask_token
    sock = listen(host, port, token, "NEARDUP_ASK_TOKEN(_FILE)")
    try:
        index = IndexSnapshot(state)
        try:
            complain(f"the index is {index.state()['age_s']:,.0f} s old: {index.flushes}")
            asyncio.run(serve(index, sock, token, announce_serving, names=names))
        finally:
            index.close()
    finally:
        sock.close()


def _waited(directory: Path) -> bool:
    """Wait until the directory has an index. Return False if a signal ended the wait."""
    from streams.ask.answers import index_files
    from streams.process.shutdown import stopped_by_signals

    stop = threading.Event()
    with stopped_by_signals(stop):
        while not (found := all(path.is_file() for path in index_files(directory))) and not stop.wait(1):
            pass
    return found


@command(
    VERDICTS,
    "neardup canonical rel-canonical,https,score,shorter-url,first-seen",
    "neardup canonical --state neardup-state https,first-seen",
    "neardup canonical --none",
    "neardup canonical",
)
def canonical(
    policy: Annotated[
        str | None, Opt(f"Criteria in order, of {', '.join(CRITERIA)}.", "--policy", metavar="POLICY")
    ] = None,
    *,
    none: Annotated[bool, Opt("Remove the policy: the canonical page of the verdicts holds.")] = False,
    state: OfScan = None,
    as_json: AsJson = False,
    settings: ConnectionFlags = ConnectionFlags.NONE,
) -> None:
    """Set the policy that chooses canonical pages.

    Set the policy that chooses the canonical page of each cluster; without an argument, print it.

    Each criterion keeps the best of the members that the one before has left. rel-canonical follows the links of the
    pages; score is given by the crawler. On the stream, a policy is a record of the control topic: views and clients
    choose again, and no verdict is emitted again. Without a policy, the `canonical` of a verdict holds.
    """
    if none and policy is not None:
        raise WrongUsage("a policy and --none exclude each other; choose one")
    text = "" if none else policy
    try:
        required = None if text is None else policy_of(text)
    except BadInput as error:
        raise WrongUsage(str(error)) from None
    if state is None:
        from streams.operate.generations import hold_stream

        held = hold_stream(settings.read(), text)
    else:
        from streams.state.directory import keep_policy, kept_policy

        if required is not None:
            keep_policy(state, required)
        held = kept_policy(state)
    if as_json:
        print_json({"policy": list(held)})
    else:
        echo(", then ".join(held) or "no policy: the canonical page of the verdicts holds")


@command(
    VERDICTS,
    "neardup forget https://a.example/private.html",
    "neardup forget --prefix https://a.example/people/",
    "neardup forget --state DIR --site a.example",
    "neardup forget --state DIR --id 'doc 17'",
)
def forget(
    url: Annotated[str | None, Opt("The page.", "--url", metavar="URL")] = None,
    *,
    id: Annotated[
        str | None, Opt("The document with this id, which is no URL; with --state also FILE#ID.", metavar="ID")
    ] = None,
    site: Annotated[str | None, Opt("All pages of this registrable domain.", metavar="SITE")] = None,
    prefix: Annotated[str | None, Opt("All pages whose URLs begin with this.", metavar="PREFIX")] = None,
    state: OfScan = None,
    verbose: Annotated[bool, Opt("Print what to do about each copy that is not reached.")] = False,
    as_json: AsJson = False,
    settings: ForgetFlags = ForgetFlags.NONE,
) -> None:
    """Take pages down, in every fold of the log.

    Take down a page or document, the pages of a site, or the pages whose URLs have a prefix.

    The index drops them. The decision becomes a record of the sketch log, as a hash, so that every fold of the log
    repeats it. It applies to the pages before it in the log: a page that still waits in `pages` for a sketcher comes
    back as a new page, so stop crawling it, wait for the sketchers, and then take it down. Each page gets a verdict
    `gone` with the reason `taken down`, so that indexes and views drop it; if it represented others, the next of them
    is promoted. The command prints the number of pages, and the copies that it does not reach.
    --verbose and --json say what to do about each of them.
    """
    takedown, given = _takedown_of(url, id, site, prefix), settings.read()
    result: dict[str, Any]
    lines: list[str]
    pages: int | None
    promoted: int | None
    if state is not None:
        from neardup.sketch.takedown_hashes import of_url
        from streams.state.scan_directory import ScanDirectory

        with ScanDirectory.open(state) as opened:
            done = opened.forget(takedown if id is None else of_url(opened.url_of(id)))
        result, pages, promoted, lines = done.to_json(), done.pages, done.promoted, []
    else:
        from streams.operate.operator_decisions import forget_stream

        try:
            written = forget_stream(given, takedown)
        except BrokerError as error:
            raise BrokerError(f"{error}; pages of a scan are taken down with --state DIR") from error
        pages, promoted = written.pages, written.promoted
        result = {"offset": written.offset, "pages": pages, "promoted": promoted}
        lines = [f"written at offset {written.offset} of the log"]
    if pages is None:
        lines.append(
            "the matcher takes pages down when it gets there; verdicts `gone` with page id "
            f"{written.cause} then name them"
        )
    elif pages:
        lines.append(f"pages taken down: {pages:,}; other pages promoted: {promoted:,}")
    else:
        complain("no page is taken down: the index holds none of that name; compare it with the URL in a verdict")
    unreached = _unreached(given, state)
    if promoted:
        unreached.append(_COPIES)
    if as_json:
        print_json({**result, "unreached": unreached})
        return
    if not verbose:
        copies = (_COPIES,) if promoted else ()
        unreached = [
            "; ".join((*copies, _UNREACHED_IN_SHORT[state is None])) + "; --verbose says what to do about each"
        ]
    for line in (*lines, *(f"not reached: {each}" for each in unreached)):
        echo(line)


#: Copies that may be shown now.
_COPIES = (
    "copies of the pages under other URLs: the verdicts `promoted` name those that are shown now; take the copies "
    "down, too, if the text must vanish"
)
#: `_unreached` in one line, by whether the pages are those of a stream.
_UNREACHED_IN_SHORT = {
    False: "the scanned files, earlier bytes of the log and of the verdicts, and what was written elsewhere",
    True: "pages that wait for a sketcher, bytes in Kafka's topics until their retention, texts that an index keeps, "
    "earlier checkpoints, and stored bodies",
}


def _takedown_of(url: str | None, id: str | None, site: str | None, prefix: str | None) -> "Takedown":
    """Raises WrongUsage unless one thing is named, and can be."""
    from neardup.sketch.takedown_hashes import of_prefix, of_site, of_url
    from neardup.urls import url_of_document_id

    if sum(value is not None for value in (url, id, site, prefix)) != 1:
        raise WrongUsage("name one: a URL, --id, --site or --prefix")
    if url is not None and "://" not in url:
        raise WrongUsage(f"{url}: no absolute URL; --id names a document by its id")
    try:
        if id is not None:
            return of_url(url_of_document_id(id))
        if url is not None:
            return of_url(url)
        return of_site(site) if site is not None else of_prefix(prefix or "")
    except BadInput as error:
        raise WrongUsage(str(error)) from None


def _unreached(settings: Settings, scan: Path | None) -> list[str]:
    """Copies of the pages that the takedown does not reach, with advice."""
    if scan is not None:
        return [
            f"the files that were scanned, and the bytes of {scan / 'log'} and {scan / 'verdicts'}: reports, exports "
            "and views contain the verdict `gone` with the URL, and nothing else of the pages; a replay of earlier "
            "verdicts contains them; to delete the bytes, too, scan the files that remain into another directory, and "
            "delete this one",
            "what was written elsewhere: --out files, reports, exports, earlier checkpoints (the next "
            "`neardup checkpoint make` removes those)",
        ]
    names = settings.topics
    return [
        f"pages that wait in topic {names.pages} for a sketcher: one of that name comes back as a new page; once "
        "`neardup generation list` shows that the sketchers have caught up, call this again, which is safe",
        f"topics {names.pages} and {names.rejected}, which hold the pages themselves, until their retention "
        "(or kafka-delete-records): a sketcher that reads them again brings the pages back",
        f"the bytes of topic {names.sketches}, until its retention; every fold forgets the pages at this offset",
        f"earlier verdicts in topic {names.verdicts}, with their URLs and titles, until its retention; where it is "
        "compacted, the verdict `gone` replaces them, and names the URL alone: a null record with the URL as its key "
        "deletes that too, once all indexes have read it. Lists of the views may name a page until newer pages push it "
        "out: `neardup views --rebuild` after that",
        "texts that an index keeps: its client hides a page whose verdict is `gone`; delete the text where its reason "
        "is `taken down`",
        "earlier checkpoints, until the matcher has taken the pages down: then it makes another one and removes them",
        "bytes of topics of an audit, until their retention; bodies that `neardup publish --bodies` stored: delete "
        "them there",
    ]
