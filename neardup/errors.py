"""Every error that neardup raises on purpose. Each class says what the operator does about it."""


class NeardupError(Exception):
    """Base of all errors below; the command line prints its text without a stack trace."""


class BadPage(NeardupError):
    """A page that cannot be read. It becomes a `rejected` verdict with this text; nothing to do."""


class BadInput(NeardupError):
    """A file, folder or flag that cannot be used. Mend what the text names and run again."""


class CorruptRecord(NeardupError):
    """Bytes that do not decode as a record of a known version. Restore the named file, or rebuild from the log."""


class OtherVersion(CorruptRecord):
    """Something that another version of neardup wrote, with fields that this one has not. Run that version."""


class StateError(NeardupError):
    """A state directory that cannot be used as it is: locked, read-only, full, or of another scheme or decider.

    The text says which of these and what to do.
    """


class InvariantBroken(NeardupError):
    """The program found its own state contradictory and stopped. Report it; rebuild the index from the log."""
