"""`neardup partition` over files: what it finds, what it leaves behind, and what it says where it cannot."""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from neardup.errors import BadInput, StateError
from neardup.partition import Parameters
from neardup.signals.model import Branch, Leaf, Model
from streams.files.sources import ReadOptions
from streams.partition import duck, reading
from streams.partition.partition_command import PartitionOptions, partition_command
from streams.partition.partition_results import Summary
from streams.partition.workers import WorkStopped
from tests.streams.archives import Sample, write_folder, write_warc
from tests.streams.partition.corpora import edited, entry, items, page, read, sentences, write
from tests.streams.shell import Shell


def partition(paths: list[Path], out: Path, parameters: Parameters | None = None, **more: Any) -> Summary:
    asked = {"workers": 1, "memory_mb": 700} | {name: more.pop(name) for name in list(more) if name != "progress"}
    return partition_command(paths, parameters or Parameters(), PartitionOptions(out=out, **asked), **more)


def rows(file: Path) -> list[tuple[Any, ...]]:
    return duckdb.sql(f"select * from '{file}'").fetchall()


@pytest.mark.parametrize("method", ["tlcs", "cosine"])
def test_editions_of_an_item_are_a_set(tmp_path: Path, method: Any) -> None:
    crawl = write(tmp_path / "crawl.jsonl", items())
    made = partition([crawl], tmp_path / "out", Parameters(method=method))
    wanted = [{f"https://s{e % 2}.example/{item}/{e}" for e in range(3)} for item in range(12)]
    assert sorted(map(sorted, read(tmp_path / "out" / "sets.jsonl"))) == sorted(map(sorted, wanted))
    assert (made.sets, made.in_sets, made.sizes) == (12, 36, {3: 12})
    # four copies, and an edition that differs only in its last block, which is no main content
    assert (made.counts.documents, made.counts.repeats, made.counts.alone) == (36, 5, 0)
    assert len(rows(tmp_path / "out" / "documents.parquet")) == 36
    pairs = rows(tmp_path / "out" / "pairs.parquet")
    assert len(pairs) == sum(compared for compared, _ in made.counts.rounds)
    assert not (tmp_path / "out" / "work").exists()


def test_name_of_a_file_that_is_not_utf_8_is_escaped(tmp_path: Path) -> None:
    crawl = write(tmp_path / os.fsdecode(b"caf\xe9.jsonl"), [{"text": " ".join(sentences(n))} for n in range(3)])
    made = partition([crawl], tmp_path / "out")
    assert made.counts.documents == 3
    summary = json.loads((tmp_path / "out" / "summary.json").read_bytes())
    assert "caf\\udce9.jsonl" in summary["fields_taken"][0]
    assert (tmp_path / "out" / "report.html").exists()


def test_sampled_pairs_stand_for_all_compared_pairs_of_their_stratum(tmp_path: Path) -> None:
    """Pages of one long menu are compared, though few of them are near-duplicates."""
    menu = sentences(500, 12)
    texts = [edited(sentences(number // 2), number) if number < 6 else sentences(number) for number in range(14)]
    pages = [entry(f"https://s.example/{number}", page([*menu, *text])) for number, text in enumerate(texts)]
    partition([write(tmp_path / "crawl.jsonl", pages)], tmp_path / "out", keep=True)
    strata = Counter(near for _, _, near, *_ in rows(tmp_path / "out" / "work" / "compared.parquet"))
    assert strata[0] > 10 > strata[1] > 1
    for most in (2, 10):
        sampled = duck.sampled_pairs(tmp_path / "out", most)
        for near, total in strata.items():
            weights = [pair.weight for pair in sampled if pair.near == near]
            assert len(weights) == min(most, total)
            assert sum(weights) == pytest.approx(total)


def test_editions_without_punctuation_are_the_same_sets(tmp_path: Path) -> None:
    crawl = items()
    for one in crawl:
        blocks = re.findall(r"<p>(.*?)</p>", one["body"])
        one["body"] = " ".join(" ".join(re.findall(r"\w+", block.lower())) for block in blocks)
    file = write(tmp_path / "crawl.jsonl", crawl)
    made = partition([file], tmp_path / "out")
    wanted = [{f"https://s{e % 2}.example/{item}/{e}" for e in range(3)} for item in range(12)]
    assert sorted(map(sorted, read(tmp_path / "out" / "sets.jsonl"))) == sorted(map(sorted, wanted))
    assert made.counts.alone == 0
    of_sentences = partition([file], tmp_path / "sentences", Parameters(passage_words=0))
    assert of_sentences.counts.alone == 36


def test_documents_without_a_signature_are_counted_for_people(shell: Shell) -> None:
    short = [entry(f"https://a.example/{n}", f"<p>one short line number {n}</p>".encode()) for n in range(9)]
    write(shell.folder / "crawl.jsonl", [*items(1), *short])
    ended = shell("partition", "crawl.jsonl", "--out", "out", "--method", "tlcs", "--workers", "1")
    advice = "9 of 12 documents have no signature, so only equal texts were found for them: neardup partition --method"
    assert advice in " ".join(ended.out.split())
    assert json.loads((shell.folder / "out" / "summary.json").read_bytes())["counts"]["alone"] == 9
    assert "9 of 12 documents have no signature" in (shell.folder / "out" / "report.html").read_text()


def test_the_page_of_the_highest_score_represents_its_set(tmp_path: Path) -> None:
    """A score comes before the number of signatures, and that before the place in the input."""
    lines = sentences(1)
    crawl = [entry(f"https://a.example/{n}", page(edited(lines, n))) for n in range(4)]
    for scores, chosen in (({}, None), ({0: 0.9, 1: 0.5}, 0), ({1: 0.5, 2: 1.0, 3: 0.0}, 2), ({3: 0.0}, 3)):
        scored = [one | ({"score": scores[n]} if n in scores else {}) for n, one in enumerate(crawl)]
        partition([write(tmp_path / "crawl.jsonl", scored)], tmp_path / "out", again=True)
        (line,) = (tmp_path / "out" / "sets.jsonl").read_text().splitlines()
        first = json.loads(line)["representative"]["url"]
        assert chosen is None or first == f"https://a.example/{chosen}", scores


def test_each_member_says_why_it_is_there(tmp_path: Path) -> None:
    lines = sentences(1)
    crawl = [
        entry("https://a.example/1", page(lines)),
        entry("https://a.example/2", page(lines)),
        entry("https://a.example/3", page(edited(lines, 5))),
        entry("https://a.example/4", page(sentences(2))),
    ]
    partition([write(tmp_path / "crawl.jsonl", crawl)], tmp_path / "out", kind="stars")
    (output,) = [json.loads(line) for line in (tmp_path / "out" / "sets.jsonl").read_text().splitlines()]
    by_url = {one["url"]: one for one in [output["representative"], *output["members"]]}
    assert by_url["https://a.example/2"]["same_text_as"] == "https://a.example/1"
    near = by_url["https://a.example/1"] if "near" in by_url["https://a.example/1"] else by_url["https://a.example/3"]
    assert near["near"] == output["representative"]["url"]
    assert 0.8 < near["score"] < 1
    assert 0.8 < near["containment"] < 1
    assert output["representative"]["offset"] in (0, 2)


@pytest.mark.slow
def test_warc_folder_and_json_lines_give_the_same_sets(tmp_path: Path) -> None:
    pages = [(one["url"].removeprefix("https://"), one["body"].encode()) for one in items(6)]
    samples = [Sample(path + ".html", body) for path, body in pages]
    found = []
    for name, source, base in (
        ("w", write_warc(tmp_path / "a.warc.gz", samples, base="https://"), None),
        ("f", write_folder(tmp_path / "folder", samples), "https://x.example/"),
        ("j", write(tmp_path / "a.jsonl", [entry("https://" + s.path, s.body) for s in samples]), None),
    ):
        partition([source], tmp_path / name, reading=ReadOptions(base))
        sets = read(tmp_path / name / "sets.jsonl")
        found.append(sorted(sorted(url.removeprefix("https://x.example/") for url in one) for one in sets))
    assert [[url.removeprefix("https://") for url in one] for one in found[0]] == found[1]
    assert found[0] == found[2]


def test_exit_codes_of_rejected_documents_are_those_of_a_scan(shell: Shell) -> None:
    """A document that is rejected is counted; a file that is damaged, or gives no document, ends with 3."""
    text = " ".join(f"word{n}" for n in range(40))
    good = "".join(json.dumps({"id": n, "text": f"{text} {n}"}) + "\n" for n in range(5))
    Path("some.jsonl").write_text(good + "{broken\n")
    Path("none.jsonl").write_text("{broken\n")
    for name, code in (("some", 0), ("none", 3)):
        for command in ("scan NAME.jsonl --memory", "partition NAME.jsonl --out NAME",
                        "partition NAME.jsonl --out NAME-tlcs --method tlcs"):  # fmt: skip
            ended = shell(*command.replace("NAME", name).split())
            assert ended.code == code, (command, ended.out, ended.err)
            assert "rejected: not JSON (1)" in ended.out
            assert ended.out.count("(no site)") == command.startswith("scan"), ended.out
            if code:
                assert "no page could be read: not JSON" in ended.err


@pytest.mark.slow
def test_the_sets_do_not_depend_on_processes_or_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = write(tmp_path / "crawl.jsonl", items(20))
    partition([crawl], tmp_path / "one")
    monkeypatch.setattr(reading, "CHUNK_PAGES", 7)
    monkeypatch.setattr(duck, "CHUNK_PAIRS", 5)
    partition([crawl], tmp_path / "two", workers=2, memory_mb=1200)
    for name in ("sets.jsonl", "documents.parquet", "pairs.parquet"):
        one, two = tmp_path / "one" / name, tmp_path / "two" / name
        assert one.read_bytes() == two.read_bytes() if name == "sets.jsonl" else rows(one) == rows(two)


def test_unreadable_sources_are_reported(tmp_path: Path) -> None:
    crawl = [
        *items(2),
        entry("https://a.example/gone", None),
        entry("https://a.example/error", page(sentences(1)), http_status=500),
        entry("no url", page(sentences(2))),
        entry("https://a.example/picture", b"GIF89a" * 10, content_type="image/gif") | {"content_type": "image/gif"},
        entry("https://a.example/empty", b""),
    ]
    file = write(tmp_path / "crawl.jsonl", crawl)
    file.write_text(file.read_text() + "{not json\n")
    made = partition([file], tmp_path / "out")
    assert made.rejected == 3
    assert any("500" in reason for reason in made.reasons)
    assert (made.counts.documents, made.counts.alone, made.sets) == (8, 2, 2)


def test_a_later_fetch_of_a_url_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    crawl = [
        entry("https://a.example/1", page(sentences(1))),
        entry("https://a.example/2", page(sentences(1))),
        entry("https://a.example/1", page(sentences(2))),
        entry("https://a.example/3", page(sentences(2))),
        entry("https://a.example/2", None, http_status=404),
    ]
    made = partition([write(tmp_path / "crawl.jsonl", crawl)], tmp_path / "out")
    assert read(tmp_path / "out" / "sets.jsonl") == [{"https://a.example/1", "https://a.example/3"}]
    assert made.counts.documents == 2


def test_a_template_of_a_site_does_not_bring_its_pages_together(tmp_path: Path) -> None:
    template = sentences(99, 40)
    pages = [page(template[:20] + sentences(i, 5) + template[20:]) for i in range(30)]
    crawl = [entry(f"https://a.example/{i}", body) for i, body in enumerate(pages)]
    file = write(tmp_path / "crawl.jsonl", crawl)
    free = partition([file], tmp_path / "free")
    guarded = partition([file], tmp_path / "guarded", Parameters(site_uses_max=2))
    assert free.counts.dropped_signatures == 0 < free.counts.rounds[0][0]
    assert guarded.counts.dropped_signatures > 0
    assert guarded.counts.rounds[0][0] < free.counts.rounds[0][0]


def test_a_folder_of_another_plan_is_refused_unless_asked(tmp_path: Path) -> None:
    crawl = write(tmp_path / "crawl.jsonl", items(3))
    partition([crawl], tmp_path / "out")
    with pytest.raises(StateError, match="other parameters"):
        partition([crawl], tmp_path / "out", Parameters(slope_max=0.2))
    with pytest.raises(StateError, match="other files"):
        partition([write(tmp_path / "more.jsonl", items(4))], tmp_path / "out")
    assert partition([crawl], tmp_path / "out", Parameters(slope_max=0.2), again=True).sets == 3
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(StateError, match=r"thesis\.txt"):
        partition([crawl], tmp_path / "mine")


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (["slope_max=2"], "slope_max is 2.0; the range is 0.0 to 1.0"),
        (["slop=2"], "no parameter slop; the parameters are "),
        (["rounds=many"], "rounds=many: expected a whole number"),
        (["main_content=perhaps"], "true or false"),
    ],
)
def test_numbers_that_are_none_are_reported(shell: Shell, numbers: list[str], message: str) -> None:
    write(shell.folder / "crawl.jsonl", items(1))
    ended = shell("partition", "crawl.jsonl", "--method", "tlcs", *(part for one in numbers for part in ("--set", one)))
    assert ended.code == 2
    assert message in ended.err
    assert not (shell.folder / "partition").exists()


def test_command_prints_its_counts(shell: Shell) -> None:
    write(shell.folder / "crawl.jsonl", items(4))
    ended = shell("partition", "crawl.jsonl", "--out", "sets", "--method", "tlcs", "--workers", "1")
    assert ended.code == 0
    assert "12 documents" in ended.out
    assert "4 sets of two or more with 12 documents" in ended.out
    again = shell("partition", "crawl.jsonl", "--out", "sets", "--method", "tlcs", "--workers", "1", "--json")
    output = json.loads(again.out)
    assert output["sets"] == 4
    assert output["plan"]["parameters"]["slope_max"] == 0.1
    assert shell("partition", "crawl.jsonl", "--method", "magic").code == 2
    assert shell("partition", "crawl.jsonl", "--sets", "heaps").code == 2
    assert shell("partition", "missing.jsonl").code == 2


def test_the_default_method_finds_near_duplicates_among_short_texts(shell: Shell) -> None:
    """Texts of 30 words without punctuation have no signature, and one word of each second one differs."""
    lines = [" ".join(sentences(n // 2, 5)).replace(".", "") for n in range(20)]
    rows = [{"id": str(n), "text": line.replace(" ", " edited ", n % 2)} for n, line in enumerate(lines)]
    write(shell.folder / "texts.jsonl", [*rows, {"id": "thin", "text": "three words only"}])
    for how, sets, missed in (
        ((), {10}, ["1 of 21 documents have fewer than 20 tokens", "share no key were not compared"]),
        (("--method", "tlcs"), {0, 1}, ["of 21 documents have no signature", "without a common signature"]),
    ):
        ended = shell("partition", "texts.jsonl", "--out", f"sets{len(how)}", "--workers", "1", *how)
        assert ended.code == 0, ended.err
        assert len(read(shell.folder / f"sets{len(how)}" / "sets.jsonl")) in sets
        assert ("signature" in ended.out) == bool(how)
        for output in (ended.out, (shell.folder / f"sets{len(how)}" / "report.html").read_text()):
            assert all(sentence in " ".join(output.split()) for sentence in missed)


@pytest.mark.parametrize("rule", ["verified", "simhash64"])
def test_an_online_rule_makes_stars(shell: Shell, rule: str) -> None:
    entries = items(6)
    write(shell.folder / "crawl.jsonl", entries)
    ended = shell("partition", "crawl.jsonl", "--out", "sets", "--method", rule, "--workers", "1")
    assert ended.code == 0, ended.err
    found = read(shell.folder / "sets" / "sets.jsonl")
    assert {len(one) for one in found} <= {2, 3}
    assert {frozenset(url.split("/")[3] for url in one) for one in found} <= {frozenset(str(i)) for i in range(6)}
    assert sum(map(len, found)) >= 10
    lines = [json.loads(line) for line in (shell.folder / "sets" / "sets.jsonl").read_text().splitlines()]
    names = {member["verdict"] for line in lines for member in line["members"]}
    assert names <= {"near_duplicate", "exact_duplicate", "same_content"}
    assert "exact_duplicate" in names
    near = [member for line in lines for member in line["members"] if member["verdict"] == "near_duplicate"]
    assert all(0.5 < member["score"] < 1 and member["near"] for member in near)
    assert json.loads((shell.folder / "sets" / "summary.json").read_text())["counts"]["documents"] == len(entries)
    assert shell("partition", "crawl.jsonl", "--method", rule, "--sets", "transitive").code == 2
    for options in (["--set", "rounds=2"], ["--sets", "transitive"], ["--engine", "spark"]):
        ended = shell("partition", "crawl.jsonl", "--method", rule, *options)
        assert (ended.code, "--method tlcs" in ended.err) == (2, True)


def test_a_learned_model_makes_stars(shell: Shell) -> None:
    """The model decides: one that never says duplicate leaves only what is equal."""
    write(shell.folder / "crawl.jsonl", items(6))
    for name, bound in (("near", 0.5), ("never", -1.0)):
        model = Model(("tape",), Branch("tape", bound, Leaf(True, 9, 9), Leaf(False, 9, 0)), ())
        (shell.folder / f"{name}.json").write_text(json.dumps(model.to_json()))
    command = ("partition", "crawl.jsonl", "--workers", "1", "--method")
    made = {}
    for name in ("near", "never"):
        ended = shell(*command, f"signals:{name}.json", "--out", name)
        assert ended.code == 0, ended.err
        made[name] = read(shell.folder / name / "sets.jsonl")
        assert "method signals" in re.sub("<[^>]+>", "", (shell.folder / name / "report.html").read_text())
    assert sorted(map(len, made["near"])) == [3] * 6
    assert sorted(map(len, made["never"])) == [2, 2]  # copies
    lines = [json.loads(line) for line in (shell.folder / "near" / "sets.jsonl").read_text().splitlines()]
    assert "signals" in {member["by"] for line in lines for member in line["members"]}
    assert "signals:FILE" in shell(*command, "signals").err
    assert "none.json: No such file" in shell(*command, "signals:none.json").err
    assert "must be one of tlcs, cosine, signals:MODEL, shingling" in shell(*command, "tlcs:near.json").err


def test_too_little_memory_is_reported_before_anything_is_done(tmp_path: Path) -> None:
    crawl = write(tmp_path / "crawl.jsonl", items(1))
    with pytest.raises(BadInput, match="4 processes need"):
        partition([crawl], tmp_path / "out", workers=4, memory_mb=500)
    assert not (tmp_path / "out").exists()


def test_a_signal_stops_a_partition_and_the_same_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK_PAGES", 5)
    crawl = write(tmp_path / "crawl.jsonl", items(8))
    seen: list[str] = []

    def interrupt(phase: str, done: int, total: int) -> None:
        seen.append(phase)
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(WorkStopped):
        partition([crawl], tmp_path / "out", progress=interrupt)
    assert seen == ["sign"] * 3
    seen.clear()
    partition([crawl], tmp_path / "out", progress=lambda phase, done, total: seen.append(phase))
    partition([crawl], tmp_path / "whole")
    assert (tmp_path / "out" / "sets.jsonl").read_bytes() == (tmp_path / "whole" / "sets.jsonl").read_bytes()
    assert seen.count("sign") == 2  # of 24 pages 15 were done


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_as_one_that_is_not(tmp_path: Path) -> None:
    driver = [sys.executable, "-m", "tests.crash.partition_driver", str(tmp_path / "crash")]
    ended = subprocess.run(driver, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (kills,) = re.findall(r"the same after (\d+) kills", ended.stdout)
    assert int(kills) >= 10, "it would have tested next to nothing"
