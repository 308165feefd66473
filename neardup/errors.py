"""All errors that neardup raises on purpose. Each class states what an operator does about it."""


class NeardupError(Exception):
    """Base of all errors of this module; the command line prints its text without a stack trace."""


class BadPage(NeardupError):
    """A page that cannot be read. It becomes a `rejected` verdict with this text; nothing to do."""


class BadInput(NeardupError):
    """A file, folder or flag that cannot be used. Correct the item that the text names, and run again."""


class CorruptRecord(NeardupError):
    """Bytes that do not decode as a record of a known version. Restore the named file, or rebuild from the log."""


class OtherVersion(CorruptRecord):
    """Data of another version of neardup, with fields that this version does not know. Run that version."""


class StateError(NeardupError):
    """A state directory that cannot be used: locked, read-only, full, or of another scheme or decider.

    The text names the problem and what to do.
    """


class InvariantBroken(NeardupError):
    """A contradiction in the program's own state, which stopped it. Report it; rebuild the index from the log."""
