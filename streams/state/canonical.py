"""The policy by which a scan's canonical pages are chosen: one small file beside the state, for whoever shows pages.

It is no part of what verdicts are made from: nothing is folded again for another one, and no lock is taken.
"""

from pathlib import Path

import orjson

from neardup.canonical import policy_of, policy_text
from neardup.errors import BadInput, CorruptRecord
from streams.state.locked_folder import state_error, write_whole

_NAME = "canonical.json"


def kept_policy(path: Path) -> tuple[str, ...]:
    """The policy of a scan's directory; empty where none is set. Raises StateError, CorruptRecord."""
    file = path / _NAME
    try:
        return policy_of(str(orjson.loads(file.read_bytes())["policy"]))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise state_error("read", file, error) from error
    except (ValueError, TypeError, KeyError, BadInput) as error:
        raise CorruptRecord(f"{file} is no policy: {error}; set it anew: neardup canonical") from error


def keep_policy(path: Path, policy: tuple[str, ...]) -> None:
    """Sets it, whole or not at all; empty: none. Raises StateError."""
    file = path / _NAME
    try:
        write_whole(file, orjson.dumps({"policy": policy_text(policy)}).decode(), 0o644)
    except OSError as error:
        raise state_error("write", file, error) from error
