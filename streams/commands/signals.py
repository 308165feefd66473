from pathlib import Path
from typing import Annotated

from streams.commands.options import Arg, Opt, command
from streams.commands.output import announce_compiler, show
from streams.commands.shared import Json, Reads, must_exist


class Options(Json):
    a: Annotated[Path, Arg("A", "A file.", check=must_exist)]
    b: Annotated[Path, Arg("B", "Another file.", check=must_exist)]
    a_url: Annotated[str | None, Opt("URL of A; signals use its domain.", metavar="URL")] = None
    b_url: Annotated[str | None, Opt("URL of B.", metavar="URL")] = None
    a_rendered: Annotated[Path | None, Reads("A as a browser serialises it.")] = None
    b_rendered: Annotated[Path | None, Reads("B as a browser serialises it.")] = None
    query: Annotated[str, Opt("Query that found both: snippets are around its words.", metavar="TEXT")] = ""
    model: Annotated[
        Path | None, Opt("Model by `neardup train`, which decides.", metavar="MODEL", check=must_exist)
    ] = None


@command(
    "signals",
    "neardup signals a.html b.html",
    "neardup signals a.html b.html --query 'blue wool' --model model.json",
    "neardup signals a.html b.html --a-rendered a.dom.html --b-rendered b.dom.html",
)
def signals(options: Options) -> None:
    """Print every signal of two files as Huffman 2007 defines them, and the decision of a model."""
    from neardup.signals.model import read_model
    from streams.comparison.signals import PairPage, signals_command

    announce_compiler()
    a = PairPage(options.a, options.a_url, options.a_rendered)
    b = PairPage(options.b, options.b_url, options.b_rendered)
    model = None if options.model is None else read_model(options.model)
    show(signals_command(a, b, query=options.query, model=model), as_json=options.as_json)
