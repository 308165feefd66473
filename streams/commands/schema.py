import sys

from streams.commands.options import Given, command


class Options(Given):
    pass


@command("schema", "neardup schema > verdict.schema.json")
def schema(options: Options) -> None:
    """Print the JSON Schema of a verdict."""
    from neardup.verdict import schema as text

    sys.stdout.write(text())
