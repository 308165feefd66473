"""The command line: its modules are imported when it is called."""


def main() -> None:
    """The entry point of `neardup`."""
    from streams.cli import app

    app.main()
