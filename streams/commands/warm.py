from streams.commands.options import Given, command
from streams.commands.output import announce_compiler, complain


class Options(Given):
    pass


@command("warm", "neardup warm")
def warm(options: Options) -> None:
    """Compile all kernels for this processor into the cache; otherwise the first command that needs them does it.

    The cache is ~/.cache/neardup; NUMBA_CACHE_DIR names another folder. A complete cache may then be read-only.
    """
    announce_compiler()

    from neardup.warm import is_warm

    complain("all kernels are compiled" if is_warm() else "kernels are compiled by each process for itself")
