"""An audit topic: each line once whatever dies, the same lines as a fold of the log gives, and people can read them."""

import io
import json
from collections import Counter
from dataclasses import asdict
from typing import Any

import pytest
from line import Line, story
from rich.console import Console

from neardup.errors import BadInput
from neardup.evaluation.audits import read_audits
from neardup.index.memory import MemoryStore
from neardup.shadow import Counts
from streams.config.load import load
from streams.formats.message import encode_message
from streams.kafka import Admin, topics
from streams.pipeline.audit import open_audit
from streams.pipeline.matcher import Matcher
from streams.verdicts.print_verdicts import show

STRICT = {"tape_min": 0.999, "two_sites_tape_min": 0.999, "short_tape_min": 0.999}


def lines_of(audited: Line) -> list[dict[str, Any]]:
    out = io.BytesIO()
    show(audited.settings, Console(file=io.StringIO()), json_out=out, topic=audited.names.audit, follow=False)
    (audited.folder / "audit.jsonl").write_bytes(out.getvalue())
    return [json.loads(one) for one in out.getvalue().splitlines()]


def folded(audited: Line) -> tuple[list[dict[str, Any]], Counter[str]]:
    """What an audit of the log alone, message by message and in memory, draws and counts."""
    store, decider = MemoryStore(), audited.settings.decider(audited.settings.scheme())
    audit = open_audit(decider, topic="any", rate=1.0, numbers=STRICT, warn=pytest.fail)
    assert audit is not None
    matcher = Matcher(store, decider)
    matcher.keeps_compared = True
    lines = []
    for offset, message in audited.messages():
        prepared = matcher.prepare([(offset, encode_message(message))])
        lines += audit.draw(prepared.outcome.compared)
        matcher.apply(prepared)
    return [json.loads(one) for one in lines], Counter(asdict(audit.counts))


@pytest.mark.whole
def test_audit_lines_are_exactly_once_under_kills(audited: Line) -> None:
    audited.publish(story())
    audited.start("sketch")
    audited.settle(judged=False)
    for step in ("3 offsets sent", "3 committed"):
        audited.start("match", step=step).dead()
    audited.start("match")
    audited.check()
    has_each_line_once(audited)


def has_each_line_once(audited: Line) -> None:
    found = lines_of(audited)
    pairs = [one for one in found if one["audit"] == "pair"]
    wanted, counts = folded(audited)
    assert pairs == wanted
    assert len(pairs) > 3
    sums = Counter[str]()
    for one in found:
        if one["audit"] == "counts":
            sums.update({name: one[name] for name in asdict(Counts())})
    assert sums == counts
    assert sums["live_merges"] > 0
    read = read_audits([audited.folder / "audit.jsonl"])
    assert (read.unreadable, read.counts["live_merges"]) == (0, sums["live_merges"])
    assert {pair.sample for pair in read.pairs} >= {"live_merges"}


def test_a_matcher_wants_its_audit_topic_to_be_there(audited: Line, admin: Admin) -> None:
    assert topics.check(admin, audited.names) == []
    error = audited.start("match", settings={"audit_topic": f"{audited.names.audit}.other"}).refused()
    assert f"topic {audited.names.audit}.other: the topic is missing" in error
    audited.alter(audited.names.audit, "cleanup.policy", "compact")
    (problem,) = topics.check(admin, audited.names)
    assert (problem.topic, problem.setting) == (audited.names.audit, "cleanup.policy")
    with pytest.raises(BadInput, match="different names"):
        load({"NEARDUP_AUDIT_TOPIC": "verdicts"})
