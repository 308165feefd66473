"""Log lines: one event per line, with fields such as topic, partition, offset and url.

    log = logs.get("match")
    log.warning("source gap", topic="pages", partition=3, offset=17)

The event is a constant text, and its variables are fields. So lines can be counted by event, and repeated lines can be
suppressed. Lines are text on a terminal, and JSON elsewhere. The module uses standard logging, so lines of libraries
have the same form. A library of log lines (structlog was tried) replaces the class `Log` and a call of `json.dumps`;
redaction, suppression and the escapes of lines for a terminal remain, and more code joins them.
"""

import contextlib
import json
import logging
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

from neardup.errors import InvariantBroken, NeardupError
from streams.errors import HIDDEN

#: Lines per event and window that are written. Further ones are counted, and the next written line has their number.
BURST = 5
WINDOW_SECONDS = 10.0
_EVENTS_MAX = 512  # kinds of events remembered at once
_FIELD_CHARS_MAX = 2_000
_TRACE_CHARS_MAX = 20_000
_OURS = ("neardup", "streams")  # loggers that follow log_level; libraries log from "warning" on


class Log:
    """Events of one part of the program. Keyword arguments are fields; exc_info as in standard logging."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **fields: object) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._write(logging.ERROR, event, fields)

    def _write(self, level: int, event: str, fields: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, exc_info=fields.pop("exc_info", None), extra={"fields": fields})


def get(name: str) -> Log:
    return Log(logging.getLogger(f"neardup.{name}"))


class Redactor:
    """Replaces known secrets: those of 8 or more characters anywhere in a text, shorter ones as whole words."""

    def __init__(self, secrets: Iterable[str]) -> None:
        ordered = sorted(set(filter(None, secrets)), key=len, reverse=True)
        parts = [re.escape(s) if len(s) >= 8 else rf"(?<!\w){re.escape(s)}(?!\w)" for s in ordered]
        self._pattern = re.compile("|".join(parts)) if parts else None

    def __call__(self, text: str) -> str:
        return self._pattern.sub(HIDDEN, text) if self._pattern else text


class Handler(logging.StreamHandler[TextIO]):
    """Writes lines to a stream; see `configure`."""

    def __init__(self, stream: TextIO, *, as_json: bool, redact: Redactor) -> None:
        super().__init__(stream)
        self.as_json = as_json
        self._redact = redact
        self._seen: dict[tuple[str, int, str], list[float]] = {}  # event -> [start of its window, lines, held back]

    def emit(self, record: logging.LogRecord) -> None:
        try:
            held = self._held_back(record)
        except Exception:  # noqa: BLE001 - a line that cannot be written must not stop the stream
            self.handleError(record)
            return
        if held is not None:
            record.repeated = held
            super().emit(record)

    def _held_back(self, record: logging.LogRecord) -> int | None:
        """Returns the number of lines that were suppressed since the last one of this event; None to suppress this
        one, too.
        """
        # Libraries write numbers (ports, ids) into the text; the text without them is the event.
        key = (record.name, record.levelno, re.sub(r"\d+", "0", self._redact(_message(record))[:200]))
        window = self._seen.pop(key, None)
        if window is None or not 0 <= record.created - window[0] < WINDOW_SECONDS:
            held = int(window[2]) if window else 0
            window = [record.created, 0, 0]
        else:
            held = 0
        self._seen[key] = window  # moved to the end: the first event is the one with the oldest line
        if len(self._seen) > _EVENTS_MAX:
            self._write_count_of(next(iter(self._seen)))
        window[1] += 1
        if window[1] <= BURST:
            return held
        window[2] += 1
        return None

    def _write_count_of(self, key: tuple[str, int, str]) -> None:
        _, _, held = self._seen.pop(key)
        if held:
            name, level, event = key
            record = logging.LogRecord(name, level, "", 0, event, None, None)
            record.repeated = int(held)
            super().emit(record)

    def close(self) -> None:
        """Writes the counts of suppressed lines."""
        with self.lock or contextlib.nullcontext():
            while self._seen:
                self._write_count_of(next(iter(self._seen)))
        super().close()

    def format(self, record: logging.LogRecord) -> str:
        fields: Mapping[str, Any] = getattr(record, "fields", {})
        values = {name: self._value(value) for name, value in fields.items()}
        if repeated := getattr(record, "repeated", 0):
            values["repeated"] = repeated
        event = self._text(_message(record))
        trace = None
        if record.exc_info:
            trace = self._redact(logging.Formatter().formatException(record.exc_info))[-_TRACE_CHARS_MAX:]
        if self.as_json:
            line = {"time": _time(record.created), "level": record.levelname.lower(), "logger": record.name}
            line["event"] = event
            if trace is not None:
                values["exception"] = trace
            return json.dumps(line | {name + "_" * (name in line): value for name, value in values.items()})
        shown = "  ".join([event, *(f"{name}={_quoted(value)}" for name, value in values.items())])
        lines = [f"{_time(record.created)[11:23]} {record.levelname.lower():<7} {record.name}  {shown}"]
        # A page's URL must not control the reader's terminal.
        return "\n    ".join(_escaped(part) for part in lines + (trace.splitlines() if trace else []))

    def _value(self, value: object) -> object:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            # Numbers are redacted only if they are long: offset 7 is not the seed 7.
            text = repr(value)
            return HIDDEN if len(text) >= 8 and self._redact(text) != text else value
        return self._text(value)

    def _text(self, value: object) -> str:
        text = self._redact(str(value))
        return text if len(text) <= _FIELD_CHARS_MAX else text[:_FIELD_CHARS_MAX] + "..."


def configure(
    level: str = "info", form: str = "auto", *, secrets: Iterable[str] = (), stream: TextIO | None = None
) -> Handler:
    """Sends all logging of the process to `stream` (stderr), and returns the handler for `release`.

    level: debug, info, warning, error. form: auto (human on a terminal, else json), human, json.
    """
    stream = sys.stderr if stream is None else stream
    handler = Handler(
        stream, as_json=form == "json" or (form == "auto" and not stream.isatty()), redact=Redactor(secrets)
    )
    logging.getLogger().addHandler(handler)
    for name in _OURS:
        logging.getLogger(name).setLevel(level.upper())
    return handler


@contextlib.contextmanager
def configured(level: str, form: str, *, secrets: Iterable[str] = ()) -> Iterator[Handler]:
    """`configure` for a block, and `release` after it. With JSON lines, an error that leaves the block becomes the last
    line; see `is_logged`.
    """
    handler = configure(level, form, secrets=secrets)
    try:
        yield handler
    except Exception as error:
        if handler.as_json:
            expected = isinstance(error, NeardupError) and not isinstance(error, InvariantBroken)
            name, trace = type(error).__name__, None if expected else error
            get("roles").error("ended by an error", error=name, reason=str(error), exc_info=trace)
            error.__dict__[_LOGGED] = True
        raise
    finally:
        release(handler)


#: An attribute of errors that were logged already. Built-in errors take no weak reference.
_LOGGED = "_neardup_logged"


def is_logged(error: BaseException) -> bool:
    """Whether the last log line reports this error, so that nothing else need be written."""
    return _LOGGED in error.__dict__


def last_words(logger: str, text: str) -> bytes:
    """A log line for stderr, made without the locks of logging, for a process that ends at once."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, Handler):
            record = logging.LogRecord(f"neardup.{logger}", logging.ERROR, "", 0, text, None, None)
            return handler.format(record).encode() + b"\n"
    return f"error: {text}\n".encode()


def release(handler: Handler) -> None:
    """Undoes `configure`, and writes the counts of suppressed lines."""
    logging.getLogger().removeHandler(handler)
    handler.close()
    for name in _OURS:
        logging.getLogger(name).setLevel(logging.NOTSET)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - wrong arguments: a bug of a library must not stop the stream
        return f"{record.msg} {record.args}"


def _time(created: float) -> str:
    """UTC, to the millisecond."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(created)) + f".{int(created * 1000) % 1000:03d}Z"


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or re.search(r"[\s\"=]", text) else text


def printable(text: str) -> str:
    """Text in which control characters and invisible characters are escaped, for a terminal."""
    return "\n".join(map(_escaped, text.split("\n")))


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
