import os
import secrets
from pathlib import Path
from typing import Annotated

import click

from streams.commands.options import Arg, Given, command
from streams.errors import WrongUsage


class Options(Given):
    file: Annotated[Path, Arg("FILE", "A new file, readable by its owner alone.")]


@command("seed", "neardup seed /etc/neardup/seed && export NEARDUP_SEED_FILE=/etc/neardup/seed")
def seed(options: Options) -> None:
    """Draw a secret seed at random, and write it to a file for NEARDUP_SEED_FILE.

    All sketchers and the matcher of one crawl have the same seed. Keep it as long as the crawl: with another seed an
    index finds no duplicates of its pages. An attacker with the seed can build pages that collide with others.
    """
    try:
        with open(os.open(options.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
            out.write(f"0x{secrets.randbits(64):016x}\n")
    except FileExistsError:
        raise WrongUsage(f"{options.file} exists already; a seed that is in use must stay") from None
    except OSError as error:
        raise WrongUsage(f"cannot write {options.file}: {error.strerror}") from error
    click.echo(f"{options.file}: a secret; NEARDUP_SEED_FILE={options.file} gives it to every role")
