"""Commands that print or make what the stream is configured by."""

import os
import secrets
import sys
from pathlib import Path
from typing import Annotated

from streams.commands.app import STREAM, command, family
from streams.commands.options import AllFlags, AsJson, Opt
from streams.commands.output import echo, print_json
from streams.config.settings import OPTIONS
from streams.errors import WrongUsage
from streams.process.logs import printable

family(STREAM, "config")


@command(STREAM, "neardup config --config neardup.toml", name="config")
def config(*, as_json: AsJson = False, settings: AllFlags = AllFlags.NONE) -> None:
    """Print every setting and its source.

    Print every setting in force, its source, and the values that it admits. Secrets are not shown.
    """
    rows = settings.read().describe()
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    for row in rows:
        secret = row.setting in OPTIONS and OPTIONS[row.setting].kind.secret
        names = ", ".join(filter(None, (row.flag, row.env, f"{row.env}_FILE" if secret else "")))
        echo(printable(f"{row.setting} = {row.value}  ({row.origin})"))
        echo(f"    {row.help} [{names}]" + (f"; {row.allowed}" if row.allowed else ""))


@command(STREAM, "neardup config schema > verdict.schema.json", name="config schema")
def schema() -> None:
    """Print the JSON Schema of a verdict."""
    from neardup.verdict import schema as text

    sys.stdout.write(text())


@command(
    STREAM,
    "neardup config seed /etc/neardup/seed && export NEARDUP_SEED_FILE=/etc/neardup/seed",
    name="config seed",
)
def seed(file: Annotated[Path, Opt("A new file, readable by its owner alone.", "FILE")], /) -> None:
    """Draw a secret seed, and write it to a file.

    NEARDUP_SEED_FILE names the file. All sketchers and the matcher of one crawl have the same seed. Keep it as long as
    the crawl: with another seed an index finds no duplicates of its pages. An attacker with the seed can build pages
    that collide with others.
    """
    try:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
            out.write(f"0x{secrets.randbits(64):016x}\n")
    except FileExistsError:
        raise WrongUsage(f"{file} exists already; a seed that is in use must stay") from None
    except OSError as error:
        raise WrongUsage(f"cannot write {file}: {error.strerror}") from error
    echo(f"{file}: a secret; NEARDUP_SEED_FILE={file} gives it to every role")
