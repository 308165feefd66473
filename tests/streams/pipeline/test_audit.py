"""The audit of a run: its file, what a full disk does to it, the commands, the role, the evaluation and the labels."""

import json
import os
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.evaluation.audits import AuditPair, audit_section, drawn_of, read_audits
from neardup.evaluation.labels import Judgement, label_of
from neardup.index.column_families import Family
from neardup.shadow import Auditor, Counts
from streams.config.settings import Settings
from streams.evaluation.evaluate import evaluate_command, open_crawl
from streams.files.sources import ReadOptions
from streams.pipeline.audit import Audit, AuditFile, open_audit, shadow_numbers
from streams.pipeline.matcher import folded_to
from streams.roles.match_role import MatchRole
from streams.roles.runtime import Runtime
from streams.scan.scan import scan
from streams.scan.scan_result import ScanResult
from streams.state.scan_directory import ScanDirectory
from tests.quiet import quiet_runtime
from tests.streams.archives import SCHEME, WORDS, Sample, html, verdicts_in, write_folder
from tests.streams.scripted import Broker, ForgetfulStore, ScriptedLog, Transactions
from tests.streams.shell import Shell, site


def words(number: int, count: int = 120) -> str:
    """Words without a digit, of this number alone."""
    own = chr(97 + number // 26) + chr(97 + number % 26)
    return " ".join(
        f"{WORDS[(number * 7 + i * i) % len(WORDS)]}{own}{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(count)
    )


def samples() -> list[Sample]:
    """20 pages of their own, 5 edited a little, 5 much: 100 of 120 words stay, a tape score of about .71."""
    out = [Sample(f"page{i}.html", html(f"Item {words(i, 2)}", words(i))) for i in range(20)]
    out += [Sample(f"edit{i}.html", html(f"Item {words(i, 2)}", words(i) + " visited again today")) for i in range(5)]
    much = [words(i, 100) + " " + words(100 + i, 20) for i in range(5, 10)]
    return out + [Sample(f"much{i}.html", html(f"Item {words(i + 5, 2)}", body)) for i, body in enumerate(much)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("audited") / "site", samples())


BASE_URL = "http://a.example/"
#: Merges what is edited much as well; the live rule does not.
LOOSE = {"tape_min": 0.3, "short_tape_min": 0.3, "strict_tape_min": 0.3}


def scanned(folder: Path, at: Path, warned: list[str] | None = None, **wanted: Any) -> ScanResult:
    with ScanDirectory.open(at / "state", scheme=SCHEME) as state:
        warn = [] if warned is None else warned
        audit = open_audit(state.decider, warn=warn.append, **wanted)
        try:
            result = scan([folder], state, reading=ReadOptions(BASE_URL), out=str(at / "out"), audit=audit)
        finally:
            if audit is not None:
                audit.close()
        return result


def stored(at: Path) -> dict[str, bytes]:
    """Everything of a state directory that is the same in every run: the log, the verdicts, the rows of the index."""
    files = [at / "state" / name for name in ("decider.json", "scheme.json")]
    files += [file for part in ("log", "verdicts") for file in sorted((at / "state" / part).iterdir())]
    out = {str(file.relative_to(at)): file.read_bytes() for file in files}
    with ScanDirectory.open(at / "state") as state:
        return out | {family.name: b"".join(b"%b=%b\n" % row for row in state.store.scan(family)) for family in Family}


def test_a_scan_writes_pairs_and_counts(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    result = scanned(folder, tmp_path, file=file, rate=1.0, numbers=LOOSE)
    *pairs, counts = verdicts_in(file)
    assert counts["audit"] == "counts"
    assert counts["shadow_merges"] == result.audit["shadow_merges"] == 5
    assert counts["drawn"] == result.audit["drawn"] == len(pairs)
    merged = [pair for pair in pairs if pair["sample"] == "shadow_merges"]
    assert {pair["b"]["url"] for pair in merged} == {f"{BASE_URL}page{i}.html" for i in range(5, 10)}
    assert {pair["a"]["url"] for pair in merged} == {f"{BASE_URL}much{i}.html" for i in range(5)}
    scanned(folder, tmp_path, file=file, rate=1.0, numbers=LOOSE)
    assert verdicts_in(file) == [*pairs, counts], "nothing was scanned, nothing is added"


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [{"rate": 1.0}, {"rate": 0.0}, {"rate": 1.0, "shadow": "shingling"}])
def test_looking_on_changes_nothing(folder: Path, tmp_path: Path, wanted: dict[str, Any]) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "watched").mkdir()
    scanned(folder, tmp_path / "plain")
    scanned(folder, tmp_path / "watched", file=tmp_path / "audit", **wanted)
    assert (tmp_path / "plain" / "out").read_bytes() == (tmp_path / "watched" / "out").read_bytes()
    assert stored(tmp_path / "plain") == stored(tmp_path / "watched")
    assert [line for line in verdicts_in(tmp_path / "audit") if line["audit"] == "pair"] or wanted["rate"] == 0


def test_a_full_disk_stops_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "full").mkdir()
    warned: list[str] = []
    scanned(folder, tmp_path / "plain")
    result = scanned(folder, tmp_path / "full", warned, file=Path("/dev/full"), rate=1.0, numbers=LOOSE)
    assert result.pages == 30
    assert result.audit["lost"] >= 6
    assert len(warned) == 1
    assert "No space left" in warned[0]
    assert "\n" not in warned[0]
    assert (tmp_path / "plain" / "out").read_bytes() == (tmp_path / "full" / "out").read_bytes()


def test_half_a_line_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    file = AuditFile(tmp_path / "audit", warned.append)
    line = b'{"version":1,"audit":"counts"}\n'
    file.write([line])
    write = os.write

    def full(handle: int, data: bytes) -> int:
        if bytes(data) == b"e\n":
            raise OSError(28, "No space left on device")
        return write(handle, bytes(data)[:-2])

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            file.write([b"one more line\n"])
    assert (file.lost, len(warned)) == (2, 1)
    file.write([line])
    file.close()
    assert (tmp_path / "audit").read_bytes() == line * 2


def test_the_file_goes_on_after_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    line = b'{"version":1,"audit":"pair"}\n'
    path.write_bytes(line + line[:10])
    AuditFile(path, pytest.fail).close()
    assert path.read_bytes() == line + line[:10] + b"\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--audit", "there/is/no/folder"], "cannot be written"),
        (["--audit", "site/a.html"], "holds something else"),
        (["--audit", "site"], "a folder"),
        (["--audit", "x", "--out", "x"], "named twice"),
        (["--audit", "x", "--audit-rate", "1.5"], "from 0 to 1"),
        (["--audit", "x", "--audit-rate", "nan"], "from 0 to 1"),
        (["--shadow", "nosuch"], "there is shingling"),
        (["--shadow-set", "tape_min=2"], "from 0 to 1"),
        (["--shadow-set", "postings_max=3"], "must be that of the live rule"),
        (["--shadow-set", "tape_min"], "must be tape_min=NUMBER"),
        (["--shadow", "verified"], "is the live rule"),
    ],
)
def test_bad_audit_flags_are_reported_in_one_line(shell: Shell, flags: list[str], message: str) -> None:
    site(shell.folder / "site")
    ended = shell("scan", "site", "--memory", "--base-url", BASE_URL, "-q", *flags)
    assert ended.code == (1 if message in ("holds something else", "is the live rule", "there is shingling") else 2)
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert (shell.folder / "site" / "a.html").read_text().startswith("<title>"), "nothing is written there"


def test_summary_counts_decisions_of_the_shadow(shell: Shell) -> None:
    site(shell.folder / "site")
    command = ("scan", "site", "--memory", "--base-url", BASE_URL)
    ended = shell(*command, "--shadow", "tape", "--shadow-set", "tape_min=1", "--audit", "audit", "--audit-rate", "1")
    assert "1 the live rule alone merges" in ended.out
    assert "audit: 1 pair drawn" in ended.out
    counts = json.loads(shell(*command, "--json", "--shadow", "tape", "--shadow-set", "tape_min=1").out)["audit"]
    assert counts == {
        "pages": 1,
        "pairs": 1,
        "live_merges": 1,
        "shadow_merges": 0,
        "other_representative": 0,
        "other_content": 0,
    }
    assert json.loads(shell(*command, "--json").out)["audit"] == {}
    assert "shadow" not in shell(*command).out


def test_numbers_of_the_shadow() -> None:
    assert shadow_numbers(["tape_min=.8", " b_min=3"]) == {"tape_min": 0.8, "b_min": 3}
    assert open_audit(Decider(scheme=""), warn=pytest.fail) is None


# On the stream.


def log_of(folder: Path, at: Path) -> tuple[list[bytes], Decider]:
    with ScanDirectory.open(at / "log-of", scheme=SCHEME) as state:
        scan([folder], state, reading=ReadOptions(BASE_URL))
        return [data for _, data in state.log.read()], state.decider


def broker_with(messages: list[bytes]) -> Broker:
    """A log of these messages, and topics for what is made of them."""
    broker = Broker()
    for name in ("sketches", "verdicts", "audit"):
        broker.create(name, 1)
    for message in messages:
        broker.topic("sketches").partitions[0].append(message)
    return broker


def records_of(broker: Broker, topic: str) -> list[Any]:
    return [record for record in broker.topic(topic).partitions[0].records if record]


def test_role_counts_and_writes_committed_pairs_once(folder: Path, tmp_path: Path) -> None:
    messages, decider = log_of(folder, tmp_path)
    settings = Settings(seed=7, match_messages=1, flush_ms=3_600_000, audit_topic="audit")
    loose = replace(decider, **LOOSE)  # type: ignore[arg-type]

    def run(audit: Audit | None, store: ForgetfulStore, broker: Broker, committed: int) -> Runtime:
        runtime = quiet_runtime(settings)
        log = ScriptedLog(broker, "sketches")
        transactions = Transactions(broker, "sketches", "verdicts", "match", audit="audit")
        transactions.init()
        role = MatchRole(
            log, log.messages, transactions, store, decider, committed, runtime, now_ms=lambda: 0, audit=audit
        )
        while role.round():
            pass
        return runtime

    with Audit(Auditor(decider, loose, 1.0)) as audit:
        watched, plain = broker_with(messages), broker_with(messages)
        stores = ForgetfulStore(), ForgetfulStore()
        metrics = run(audit, stores[0], watched, 0).metrics.render().decode()
        run(None, stores[1], plain, 0)
        assert records_of(watched, "verdicts") == records_of(plain, "verdicts")
        for family in Family:
            assert list(stores[0].scan(family)) == list(stores[1].scan(family))
        assert 'neardup_shadow_disagreements_total{kind="shadow_merges"} 5.0' in metrics
        assert 'neardup_shadow_disagreements_total{kind="live_merges"} 0.0' in metrics
        assert f"neardup_audit_pairs_total {audit.counts.drawn:.1f}" in metrics
        drawn = audit.counts.drawn
        assert len([line for line in records_of(watched, "audit") if b'"audit":"pair"' in line]) == drawn >= 5
        again = run(audit, ForgetfulStore(), watched, len(messages)).metrics.render().decode()
        assert 'neardup_shadow_disagreements_total{kind="shadow_merges"} 0.0' in again
        assert audit.counts.drawn == drawn, "what is folded in silence was looked at before"


def parts(at: Path) -> tuple[list[bytes], Decider]:
    """The log of the samples in three messages, and their decider."""
    with ScanDirectory.open(at / "parts", scheme=SCHEME) as state:
        for i in range(3):
            part = write_folder(at / f"part{i}", samples()[i::3])
            scan([part], state, reading=ReadOptions(BASE_URL))
        return [data for _, data in state.log.read()], state.decider


class _Crash(Exception):
    pass


def audited_line(
    messages: list[bytes], decider: Decider, each: int, crashes: list[tuple[str, int]]
) -> tuple[Broker, Counter[str]]:
    """What a role commits that takes `each` messages at once and dies at the n-th of a moment, once for each crash."""
    broker, store = broker_with(messages), ForgetfulStore()
    for moment, number in [*crashes, ("", 0)]:
        seen: Counter[str] = Counter()

        def around(now: str, moment: str = moment, number: int = number, seen: Counter[str] = seen) -> None:
            seen[now] += 1
            if now == moment and seen[now] == number:
                raise _Crash

        log = ScriptedLog(broker, "sketches")
        log.follow(folded_to(store))
        runtime = quiet_runtime(Settings(seed=7, match_messages=each, flush_ms=3_600_000, audit_topic="audit"))
        audit = Audit(Auditor(decider, replace(decider, **LOOSE), 1.0))  # type: ignore[arg-type]
        transactions = Transactions(broker, "sketches", "verdicts", "match", audit="audit", around=around)
        transactions.init()
        known = transactions.committed()
        role = MatchRole(
            *(log, log.messages, transactions, store, decider, known.offset if known else 0, runtime),
            now_ms=lambda: 0,
            audit=audit,
        )
        with suppress(_Crash):
            while role.round():
                pass
        store = store.crashed()
    sums: Counter[str] = Counter()
    for printed_line in map(json.loads, records_of(broker, "audit")):
        if printed_line["audit"] == "counts":
            sums.update({name: value for name, value in printed_line.items() if isinstance(value, int)})
    return broker, sums


def test_audit_topic_has_each_line_once_under_any_crash_and_batching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.shadow.MESSAGE_PAIRS_MAX", 1)
    messages, decider = parts(tmp_path)
    assert len(messages) == 3
    plain, sums = audited_line(messages, decider, 1, [])
    pairs = [one for one in records_of(plain, "audit") if b'"audit":"pair"' in one]
    assert len(pairs) == sums["drawn"] >= 2
    assert sums["left_out"] > 0, "the bound of a message is not reached, and the test says little"
    assert sums["shadow_merges"] == 5
    crashes = [("begun", 2), ("committed", 1), ("begun", 1), ("committed", 2)]
    for each, dying in ((3, []), (2, []), (1, crashes), (2, crashes[:2])):
        found, same = audited_line(messages, decider, each, dying)
        assert [one for one in records_of(found, "audit") if b'"audit":"pair"' in one] == pairs
        assert {name: same[name] for name in asdict(Counts())} == {name: sums[name] for name in asdict(Counts())}
        assert records_of(found, "verdicts") == records_of(plain, "verdicts")


# What is made of it.


def audited(folder: Path, at: Path) -> Path:
    file = at / "audit.jsonl"
    scanned(folder, at, file=file, rate=1.0, numbers=LOOSE)
    return file


def test_an_audit_is_evaluated(folder: Path, tmp_path: Path) -> None:
    file = audited(folder, tmp_path)
    labels = tmp_path / "labels.jsonl"
    values = [
        label_of(f"{BASE_URL}page{i + 5}.html", f"{BASE_URL}much{i}.html", judgement)
        for i, judgement in enumerate([Judgement.CORRECT, Judgement.INCORRECT, Judgement.INCORRECT])
    ]
    labels.write_bytes(b"".join(label.to_json() for label in values))
    made = evaluate_command(
        state=tmp_path / "state", audits=[file], labels=[labels], out=tmp_path / "evaluation", differences_max=10
    )
    section = next(section for section in made.sections if section.key == "audit")
    tables = {table.name: table for table in section.tables}
    counted = {row[0]: row[1] for row in tables["audit-counts"].rows}
    assert counted["the shadow rule merges, the live one does not"] == 5
    row = next(row for row in tables["audit-samples"].rows if str(row[0]).startswith("the shadow rule"))
    assert row[1:] == [5, 1, 2, pytest.approx(2 / 3), pytest.approx(1 / 3)]
    shown = tables["audit-pairs"].rows
    assert [row[0] for row in shown[:5]] == ["shadow_merges"] * 5
    assert "Live accuracy" in (tmp_path / "evaluation" / "evaluation.html").read_text()


def test_pairs_of_an_audit_can_be_labelled(folder: Path, tmp_path: Path) -> None:
    audit = read_audits([audited(folder, tmp_path)])
    with open_crawl(state=tmp_path / "state") as crawl:
        pairs = drawn_of(audit, crawl.corpus)
        assert len(pairs) == len(audit.pairs)
        for drawn, pair in zip(pairs, audit.pairs, strict=True):
            assert drawn.a < drawn.b
            assert {crawl.corpus.urls[drawn.a], crawl.corpus.urls[drawn.b]} == {pair.a, pair.b}
            assert drawn.sample == f"audit: {pair.sample}"
        stranger = AuditPair("http://x.example/", "http://y.example/", "rejected", ("", "tape"), None, (0, 0, 0.7))
        audit.pairs = [stranger]
        with pytest.raises(BadInput, match="audit pairs with both pages in this crawl: none of 1"):
            drawn_of(audit, crawl.corpus)


def test_an_audit_that_cannot_be_read_is_one_clear_line(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "audit"
    for content, message in [
        (b"", "has no audit records"),
        (b"<html>\n{}\n", "has no audit records"),
        (b'{"version": 2, "audit": "pair"}\n', r"audit:1: version 2; this program reads version 1"),
    ]:
        path.write_bytes(content)
        with pytest.raises(BadInput, match=message):
            read_audits([path])
    with pytest.raises(BadInput, match="cannot read the audit"):
        read_audits([tmp_path / "none"])
    whole = audited(folder, tmp_path).read_bytes()
    path.write_bytes(whole + whole[:50] + b"\n" + whole)
    found = read_audits([path])
    assert found.unreadable == 1
    assert len(found.pairs) == whole.count(b"\n") - 1, "a pair that comes twice counts once"
    assert "Skipped lines that are no audit records: 1" in audit_section(found, []).missing
    assert audit_section(read_audits([path]), []).tables[1].rows[0][4:] == [None, None]


@pytest.mark.slow
def test_the_commands_take_audits_without_any_label(shell: Shell) -> None:
    site(shell.folder / "site")
    assert shell("scan", "site", "--base-url", BASE_URL, "-q", "--audit", "audit", "--shadow", "tape").code == 0
    ended = shell("evaluate", "--state", "neardup-state", "--audit", "audit", "--out", "evaluation")
    assert (ended.code, ended.err) == (0, "")
    assert "Live accuracy" in (shell.folder / "evaluation" / "evaluation.html").read_text()
    ended = shell("label", "--state", "neardup-state", "--audit", "none", "--labels", "labels", "--port", "0")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "no such file or folder" in ended.err
