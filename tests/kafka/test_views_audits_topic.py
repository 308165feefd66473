"""Audited pairs of a stream on the pages: from the topic that the matcher writes, and labelled there."""

import http.client
import re
import signal
from urllib.parse import urlencode

import orjson
import pytest
from broker import eventually
from confluent_kafka import Producer
from line import Line, story
from test_audit_topic import lines_of
from test_views import Worker

from neardup.errors import NeardupError
from neardup.evaluation.audits import read_audits
from neardup.evaluation.labels import read_labels
from streams.views import stream_topics
from streams.views.stream_topics import TopicAudits
from tests.streams.views.test_audited_pairs import line as audit_line
from tests.streams.views.test_audited_pairs import token_of

pytest.importorskip("faust", reason="faust-streaming is not installed")

TOKEN = "0123456789abcdef"


def ask(worker: Worker, how: str, path: str, form: dict[str, object] | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", worker.port, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/x-www-form-urlencoded"}
        connection.request(how, path, None if form is None else urlencode(form), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.whole
@pytest.mark.slow
def test_pairs_of_the_stream_are_listed_and_labelled(audited: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    audited.judge(story())
    audited.check()
    drawn = [one for one in lines_of(audited) if one["audit"] == "pair"]
    pairs = read_audits([audited.folder / "audit.jsonl"]).pairs
    assert len(drawn) >= len(pairs) > 3
    monkeypatch.setenv("NEARDUP_VIEWS_TOKEN", TOKEN)
    labels, names = audited.folder / "labels.jsonl", audited.names
    topics = ("--audit-topic", names.audit, "--sketches-topic", names.sketches, "--pages-topic", names.pages)
    worker = Worker(audited.bootstrap, names, audited.folder / "tables", *topics, "--labels", str(labels))
    try:
        eventually(
            lambda: orjson.loads(ask(worker, "GET", "/overview.json")[1])["verdicts"] >= audited.total(),
            "all verdicts taken in",
        )
        found = orjson.loads(ask(worker, "GET", "/audits.json")[1])
        assert sum(found["samples"].values()) == len(pairs)
        assert [(one["a"], one["b"]) for one in found["items"]] == [(one.a, one.b) for one in reversed(pairs)][:25]
        status, page = ask(worker, "GET", "/label/")
        assert status == 200, page
        page = ask(worker, "GET", "/label/pair?labeller=ana")[1]
        assert "only on the left" in page, "both texts were read again"
        form = {"token": token_of(page), "labeller": "ana", "place": 0, "judgement": "incorrect"}
        assert ask(worker, "POST", "/label/label", {**form, "token": "another"})[0] == 403
        assert ask(worker, "POST", "/label/label", form)[0] == 303
        (label,) = read_labels(labels)
        assert (str(label.label), label.labeller) == ("incorrect", "ana")
        assert label.pair in {pair.urls for pair in pairs}
        assert re.search(r"\bana\b", ask(worker, "GET", "/audits")[1])
    finally:
        print(worker.log())
        worker.end(signal.SIGKILL)


def test_the_newest_committed_lines_are_read(audited: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_topics, "AUDIT_RECORDS_READ", 6)
    producer = Producer({"bootstrap.servers": audited.bootstrap, "transactional.id": audited.names.audit})
    producer.init_transactions(60)

    def write(*numbers: int, commit: bool = True) -> None:
        producer.begin_transaction()
        for number in numbers:
            producer.produce(audited.names.audit, audit_line(f"https://a.example/{number}", "https://a.example/"))
        if commit:
            producer.commit_transaction(60)
        else:
            assert producer.flush(60) == 0
            producer.abort_transaction(60)

    audits = TopicAudits(audited.settings)
    try:
        write(*range(10))
        first = [pair.a.rpartition("/")[2] for pair in audits.pairs()]
        assert first == ["5", "6", "7", "8", "9"], "the sixth of the last records ends the transaction"
        write(11, commit=False)
        write(12)
        assert [pair.a.rpartition("/")[2] for pair in audits.pairs()] == [*first, "12"]
        audited.recreate(audited.names.audit)
        with pytest.raises(NeardupError):
            audits.pairs()
        assert audits.pairs() == []
    finally:
        audits.close()
