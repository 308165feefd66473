"""The policy for canonical pages in a scan's directory: one small file.

Verdicts do not depend on it: a new policy needs neither a fold nor the lock.
"""

from pathlib import Path

import orjson

from neardup.canonical import policy_of, policy_text
from neardup.errors import BadInput, CorruptRecord
from streams.state.locked_folder import state_error, state_errors, write_whole

_NAME = "canonical.json"


def kept_policy(path: Path) -> tuple[str, ...]:
    """Return the policy of a scan's directory; empty if none is set. Raises StateError, CorruptRecord."""
    file = path / _NAME
    try:
        return policy_of(str(orjson.loads(file.read_bytes())["policy"]))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise state_error("read", file, error) from error
    except (ValueError, TypeError, KeyError, BadInput) as error:
        raise CorruptRecord(f"{file} is no policy: {error}; set it again: neardup canonical") from error


def keep_policy(path: Path, policy: tuple[str, ...]) -> None:
    """Set the policy, whole or not at all; empty: none. Raises StateError."""
    file = path / _NAME
    with state_errors("write", file):
        write_whole(file, orjson.dumps({"policy": policy_text(policy)}).decode(), 0o644)
