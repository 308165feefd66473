"""JSON of what a command did: its summary on standard output, and files of results."""

from typing import Any


def result_json(value: Any) -> bytes:
    r"""Encodes a result as indented JSON.

    NaN is null, because JSON lacks it. A name of a file may hold bytes that are not UTF-8, which Python reads as
    surrogates and JSON cannot hold: they are escaped (`\udce9`), as in the messages of commands.
    """
    import orjson  # takes longer to import than --help takes

    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    try:
        return orjson.dumps(value, option=options)
    except orjson.JSONEncodeError:
        return orjson.dumps(_escaped(value), option=options)


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(one) for key, one in value.items()}
    return [_escaped(one) for one in value] if isinstance(value, list | tuple) else value
