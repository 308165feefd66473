from typing import Annotated

from streams.commands.options import SKETCH, Flags, Given, command
from streams.config.settings import Settings


class Options(Given):
    settings: Annotated[Settings, Flags(SKETCH, role="sketch")]


@command("sketch", "NEARDUP_SEED_FILE=seed neardup sketch --bootstrap 127.0.0.1:9092")
def sketch(options: Options) -> None:
    """Run a sketcher: pages in, sketches to the log. Any number of them share the work.

    The secret seed comes from NEARDUP_SEED or NEARDUP_SEED_FILE, the same for all sketchers and the matcher.
    """
    from streams.roles.adapters import run_sketcher
    from streams.roles.runtime import serving

    with serving(options.settings, "sketch") as runtime:
        run_sketcher(options.settings, runtime)
