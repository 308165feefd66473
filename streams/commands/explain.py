from typing import Annotated

from streams.commands.options import Arg, Opt, command
from streams.commands.output import announce_compiler, bar, show
from streams.commands.shared import Json, StateOption


class Options(StateOption, Json):
    url: Annotated[str, Arg("URL", "The page.")]
    page_id: Annotated[
        int | None,
        Opt("Page id of an earlier fetch; by default the latest verdict.", metavar="ID"),
    ] = None


@command("explain", "neardup explain https://a.example/page.html DIR")
def explain(options: Options) -> None:
    """Explain the verdict of a page, and the rejection of each candidate.

    The page is judged again, with the index as it was when the page arrived.
    """
    from streams.comparison.explain import explain_command
    from streams.files.state import State

    announce_compiler()
    with State.open(options.state) as opened:
        with bar(shown=not options.as_json) as shown:
            result = explain_command(opened, options.url, page_id=options.page_id, progress=shown.folded)
        show(result, as_json=options.as_json)
