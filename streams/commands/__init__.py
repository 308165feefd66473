"""The command line: a module for each command, imported when the command is called."""

import gc
import os
import sys


def main() -> None:
    """The entry point of `neardup`."""
    # Nothing here multiplies large matrices. OpenBLAS takes memory for each of its threads when it is imported, and
    # where a limit of memory leaves no room for them it tries for ever.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from streams.commands import app

    try:
        app.main()
    finally:
        # At the end of a process Python searches all objects for garbage: a sixth of the time of a small scan. DuckDB
        # prints a warning for each of its objects that is not collected.
        if "duckdb" not in sys.modules:
            gc.freeze()
