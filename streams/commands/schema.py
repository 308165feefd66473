"""`neardup schema`."""

import sys
from dataclasses import dataclass

from streams.commands.options import command


@dataclass(frozen=True)
class Options:
    pass


@command("schema", "neardup schema > verdict.schema.json")
def schema(options: Options) -> None:
    """Print the JSON Schema of a verdict."""
    from neardup.verdict import schema as text

    sys.stdout.write(text())
