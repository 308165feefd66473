import asyncio
import threading
from pathlib import Path
from typing import Annotated

from streams.commands.options import Arg, Flags, Given, Opt, command
from streams.commands.output import announce_serving
from streams.commands.shared import must_be_state
from streams.config.settings import ASK_PORT, Settings


class Options(Given):
    state: Annotated[Path, Arg("DIR", "The state directory of a scan or a matcher, which may be running.")]
    host: Annotated[str, Opt("Address to serve at; a public one needs a token.", metavar="HOST")] = "127.0.0.1"
    port: Annotated[int, Opt("Port; 0: any free one.", low=0, high=65_535)] = ASK_PORT
    names: Annotated[
        tuple[str, ...],
        Opt("Further host name of the server; may be repeated.", "--name", metavar="HOST[:PORT]"),
    ] = ()
    wait: Annotated[bool, Opt("Wait until the directory has an index.")] = False
    settings: Annotated[Settings, Flags(())]


@command("ask", "neardup ask neardup-state", "NEARDUP_ASK_TOKEN_FILE=token neardup ask DIR --host 0.0.0.0")
def ask(options: Options) -> None:
    """Serve POST /ask over HTTP: the verdict that a page would get, without adding the page.

    A request is a page as a JSON object, as `scan` reads it (`url`, `body`, `content_type`). The index is the one that
    the scan or matcher last flushed; the answer has the verdict, and the age of this index. Requests need the token of
    NEARDUP_ASK_TOKEN(_FILE), if it is set.
    """
    from streams.ask.answers import IndexSnapshot
    from streams.ask.http_service import serve
    from streams.process.web_server import listen

    if options.wait:
        if not _waited(options.state):
            return
    else:
        must_be_state(options.state)
    token = options.settings.ask_token
    sock = listen(options.host, options.port, token, "NEARDUP_ASK_TOKEN(_FILE)")
    try:
        index = IndexSnapshot(options.state)
        try:
            asyncio.run(serve(index, sock, token, announce_serving, names=options.names))
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
