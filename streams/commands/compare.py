from pathlib import Path
from typing import Annotated

from streams.commands.options import Arg, Opt, command
from streams.commands.output import announce_compiler, show
from streams.commands.shared import Json, Numbers, decider_of, must_be_state, must_exist


class Options(Json):
    a: Annotated[Path, Arg("A", "A file.", check=must_exist)]
    b: Annotated[Path, Arg("B", "Another file.", check=must_exist)]
    a_url: Annotated[str | None, Opt("URL of A; rules use its site and host.", metavar="URL")] = None
    b_url: Annotated[str | None, Opt("URL of B.", metavar="URL")] = None
    numbers: Numbers = ()
    model: Annotated[
        Path | None, Opt("Model of the rule signals, by `neardup train`.", metavar="MODEL", check=must_exist)
    ] = None
    state: Annotated[
        Path | None, Opt("Use seed and decider of this state directory.", metavar="DIR", check=must_be_state)
    ] = None


@command(
    "compare",
    "neardup compare old.html new.html",
    "neardup compare a.html b.html --a-url https://a.example/1/x --b-url https://a.example/2/x",
    "neardup compare a.html b.html --state neardup-state",
)
def compare(options: Options) -> None:
    """Compare two files by every rule: numbers, decisions, evidence, and the differing words.

    The hash seed is fixed, so the same files always give the same numbers. With --state, seed and numbers are those of
    a scan.
    """
    make = decider_of(numbers=options.numbers)

    from neardup.signals.model import read_model
    from streams.comparison.compare import SCHEME, compare_command

    announce_compiler()
    scheme, decider = SCHEME, None
    if options.state is not None:
        from streams.files.scan_reader import read_scan

        with read_scan(options.state) as opened:
            scheme, decider = opened.scheme, opened.decider
    made = compare_command(
        options.a,
        options.b,
        a_url=options.a_url,
        b_url=options.b_url,
        scheme=scheme,
        decider=make(scheme) if make else decider,
        model=None if options.model is None else read_model(options.model),
    )
    show(made, as_json=options.as_json)
