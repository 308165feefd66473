"""Log lines: their form, redaction, and suppression of repeats."""

import io
import json
import logging

import pytest

from streams.process import logs
from streams.process.logs import BURST, WINDOW_SECONDS, Handler, Redactor


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def written():
    """Configures logging to a stream; gives the stream and undoes it in the end."""
    handlers = []

    def configure(stream=None, **how) -> io.StringIO:
        stream = stream or io.StringIO()
        handlers.append(logs.configure(stream=stream, **how))
        return stream

    yield configure
    for handler in handlers:
        logs.release(handler)


def lines(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def record(text: str, second: float, level: int = logging.INFO, **fields) -> logging.LogRecord:
    return logging.makeLogRecord(
        {
            "name": "neardup.match",
            "levelno": level,
            "levelname": "INFO",
            "msg": text,
            "created": second,
            "fields": fields,
        }
    )


def test_one_event_is_one_line_of_json_with_its_fields(written):
    stream = written()
    logs.get("match").warning(
        "source gap", topic="pages", partition=3, offset=17, url="http://ä.org/\n\x1b[2J", why=None
    )
    assert stream.getvalue().count("\n") == 1
    (line,) = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "neardup.match",
        "event": "source gap",
        "topic": "pages",
        "partition": 3,
        "offset": 17,
        "url": "http://ä.org/\n\x1b[2J",
        "why": None,
    }


def test_times_are_utc_to_the_millisecond():
    stream = io.StringIO()
    Handler(stream, as_json=True, redact=Redactor(())).handle(record("x", 1_700_000_000.0625))
    assert lines(stream)[0]["time"] == "2023-11-14T22:13:20.062Z"


def test_field_does_not_hide_common_fields(written):
    stream = written()
    logs.get("match").info("x", time=3, level="high")
    (line,) = lines(stream)
    assert (line["level"], line["level_"], line["time_"]) == ("info", "high", 3)


def test_a_terminal_gets_lines_for_people_without_control_characters(written):
    stream = written(Terminal())
    logs.get("match").warning("source gap", topic="pages", offset=17, url="http://a/\x1b[2J\n", what="two words", no="")
    text = stream.getvalue()
    fields = 'topic=pages  offset=17  url="http://a/\\u001b[2J\\n"  what="two words"  no=""'
    assert text.endswith(f"warning neardup.match  source gap  {fields}\n")


def test_the_format_can_be_forced(written):
    stream = written(Terminal(), form="json")
    logs.get("match").info("x")
    assert lines(stream)[0]["event"] == "x"
    stream = written(form="human")
    logs.get("match").info("x")
    assert stream.getvalue().endswith("neardup.match  x\n")


def test_levels_hold_for_our_loggers_and_libraries_speak_from_warning_on(written):
    stream = written(level="warning")
    logs.get("match").info("quiet")
    logs.get("match").error("loud")
    logging.getLogger("library").info("quiet")
    logging.getLogger("library").warning("%d loud", 7)
    assert [line["event"] for line in lines(stream)] == ["loud", "7 loud"]


def test_secrets_are_replaced_in_events_fields_and_traces(written):
    secrets = ("correct horse", "abc", "11400714819323198485", "", 'quo"te\\d pass')
    for form in ("json", "human"):
        stream = written(form=form, secrets=secrets)
        try:
            raise ValueError("cannot log in with correct horse")
        except ValueError as error:
            logs.get("match").error(
                "seed is 11400714819323198485",
                seed=11400714819323198485,
                word="abc, abcd",
                conf={"sasl.password": "correct horse", "x": b"correct horse"},
                odd='a quo"te\\d pass',
                offset=7,
                exc_info=error,
            )
        logging.getLogger("library").warning("with %s", "correct horse")
        text = stream.getvalue()
        assert "Traceback" in text
        assert "cannot log in with ***" in text
        assert "***, abcd" in text
        assert "with ***" in text
        assert not [s for s in secrets if s and s != "abc" and (s in text or json.dumps(s)[1:-1] in text)]
        assert "offset=7" in text or '"offset": 7' in text


def test_a_short_seed_does_not_hide_offsets(written):
    stream = written(secrets=("7",))
    logs.get("match").info("at 7, not 17", offset=7)
    assert [(line["event"], line["offset"]) for line in lines(stream)] == [("at ***, not 17", 7)]


def test_long_and_odd_values_make_short_and_readable_lines(written):
    stream = written()
    logs.get("match").info("x", url="u" * 5000, body=b"\xff", odd="\ud800", share=0.5)
    (line,) = lines(stream)
    assert (len(line["url"]), line["body"], line["odd"], line["share"]) == (2003, "b'\\xff'", "\ud800", 0.5)


def test_arguments_that_do_not_fit_are_shown_and_raise_nothing():
    stream = io.StringIO()
    misfit = logging.LogRecord("library", logging.WARNING, "", 0, "%d pages", ("no",), None)
    Handler(stream, as_json=True, redact=Redactor(())).handle(misfit)
    assert lines(stream)[0]["event"] == "%d pages ('no',)"


def test_a_repeated_event_is_held_back_and_counted():
    stream = io.StringIO()
    handler = Handler(stream, as_json=True, redact=Redactor(()))
    for second in range(BURST + 3):
        handler.handle(record("rejected page", second, url=f"http://a/{second}"))
    handler.handle(record("rejected page", 1, logging.ERROR))
    handler.handle(record("another", 1))
    assert [line["event"] for line in lines(stream)] == ["rejected page"] * (BURST + 1) + ["another"]
    handler.handle(record("rejected page", WINDOW_SECONDS, url="http://a/last"))
    last = lines(stream)[-1]
    assert (last["url"], last["repeated"]) == ("http://a/last", 3)
    handler.handle(record("rejected page", WINDOW_SECONDS))
    assert "repeated" not in lines(stream)[-1]


def test_library_events_count_as_one_for_any_numbers():
    stream = io.StringIO()
    handler = Handler(stream, as_json=True, redact=Redactor(()))
    for port in range(40_000, 40_100):
        handler.handle(record(f"127.0.0.1:{port}: connection refused", 1))
    assert len(lines(stream)) == BURST


def test_no_count_gets_lost_by_closing_or_by_too_many_kinds_of_events():
    stream = io.StringIO()
    handler = Handler(stream, as_json=True, redact=Redactor(()))
    for _ in range(BURST + 2):
        handler.handle(record("first", 1))
    for number in range(2_000):
        handler.handle(record("x" * (number % 100) + "y" * (number // 100), 1))
    assert [line.get("repeated") for line in lines(stream) if line["event"] == "first"] == [None] * BURST + [2]
    for _ in range(BURST + 1):
        handler.handle(record("last", 1))
    handler.close()
    handler.close()
    assert (lines(stream)[-1]["event"], lines(stream)[-1]["repeated"]) == ("last", 1)


def test_counts_written_late_are_redacted_too():
    stream = io.StringIO()
    handler = Handler(stream, as_json=True, redact=Redactor(["hunter2hunter2"]))
    for _ in range(BURST + 1):
        handler.handle(record("login with hunter2hunter2 failed", 1))
    handler.close()
    assert {line["event"] for line in lines(stream)} == {"login with *** failed"}


def test_release_leaves_logging_as_it_was():
    root = logging.getLogger()
    before = list(root.handlers)
    handler = logs.configure(stream=io.StringIO())
    assert handler in root.handlers
    logs.release(handler)
    assert root.handlers == before
    assert logging.getLogger("neardup").level == logging.NOTSET


@pytest.mark.parametrize("kind", [TypeError, ValueError, KeyError, OSError, MemoryError, AssertionError])
def test_configured_logs_a_built_in_error_that_leaves_the_block(kind, capsys):
    """It is raised as it is."""
    error = kind("no such page")
    with pytest.raises(kind) as raised, logs.configured("info", "json"):
        raise error
    assert raised.value is error
    (line,) = [json.loads(each) for each in capsys.readouterr().err.splitlines()]
    assert (line["event"], line["error"]) == ("ended by an error", kind.__name__)
    assert "no such page" in line["exception"]
    assert logs.is_logged(error)
    assert not logs.is_logged(kind("no such page"))


def test_handler_raises_nothing_for_objects_without_text(capsys):
    class Odd:
        def __str__(self) -> str:
            raise AttributeError("no text")

    stream = io.StringIO()
    handler = Handler(stream, as_json=True, redact=Redactor(()))
    handler.handle(record("odd", 1, value=Odd()))
    for text, arguments in ((Odd(), None), ("%s is odd", (Odd(),))):
        handler.handle(logging.LogRecord("library", logging.WARNING, "", 0, text, arguments, None))
    handler.handle(record("goes on", 2))
    assert lines(stream)[-1]["event"] == "goes on"
    assert "no text" in capsys.readouterr().err
