"""The limit of open files: an index keeps each of its tables open, and Kafka clients keep sockets to each broker."""

import resource

from neardup.errors import BadInput

#: A role or scan with a small index needs about 100. Each table of the index, of 64 MB or more, needs one more.
OPEN_FILES_MIN = 512


def raise_open_files() -> None:
    """Raises the soft limit of open files to the hard limit.

    Raises BadInput if that is less than `OPEN_FILES_MIN`: clients that get no socket wait for one without end.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < OPEN_FILES_MIN:
        raise BadInput(
            f"the process may open {hard} files only, needed: {OPEN_FILES_MIN} or more: raise its hard limit "
            "(ulimit -Hn, systemd's LimitNOFILE, nofile of the container), and start again"
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
