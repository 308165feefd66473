"""The commands of the signals of a pair, and of what is learned of them."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from streams.cli.options import announce_compiler, examples

app = typer.Typer(rich_markup_mode=None)

ModelOption = Annotated[Path | None, typer.Option(metavar="MODEL", help="What `neardup train` made: it decides.")]
JsonOption = Annotated[bool, typer.Option("--json", help="For machines: JSON on standard output.")]


@app.command(
    short_help="Show every signal of two files.",
    epilog=examples(
        "neardup signals a.html b.html",
        "neardup signals a.html b.html --query 'blue wool' --model model.json",
        "neardup signals a.html b.html --a-rendered a.dom.html --b-rendered b.dom.html",
    ),
)
def signals(
    a: Annotated[Path, typer.Argument(metavar="A")],
    b: Annotated[Path, typer.Argument(metavar="B")],
    a_url: Annotated[str | None, typer.Option(metavar="URL", help="URL of A; its domain counts.")] = None,
    b_url: Annotated[str | None, typer.Option(metavar="URL", help="URL of B.")] = None,
    a_rendered: Annotated[Path | None, typer.Option(metavar="FILE", help="A as a browser serialises it.")] = None,
    b_rendered: Annotated[Path | None, typer.Option(metavar="FILE", help="B as a browser serialises it.")] = None,
    query: Annotated[str, typer.Option(metavar="TEXT", help="What found both: snippets are around its words.")] = "",
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every signal of two files as Huffman 2007 defines them, and what a model says of the pair."""
    from neardup.signals.model import read_model
    from streams.commands.signals import Given, signals_command

    announce_compiler()
    known = None if model is None else read_model(model)
    _show(signals_command(Given(a, a_url, a_rendered), Given(b, b_url, b_rendered), query=query, model=known), as_json)


def _show(result: Any, as_json: bool) -> None:
    if as_json:
        import orjson

        sys.stdout.buffer.write(orjson.dumps(result.to_json(), option=orjson.OPT_INDENT_2) + b"\n")
        return
    from rich.console import Console

    Console().print(result)
