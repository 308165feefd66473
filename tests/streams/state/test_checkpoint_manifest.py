"""Manifests of checkpoints: what is written is read, and what is no manifest is named."""

import json

import pytest

from neardup.errors import CorruptRecord
from streams.state.checkpoint_manifest import Manifest, StoredFile

FILE = {"name": "index/a", "size": 3, "digest": "ab"}
GOOD = {
    "offset": 7,
    "log_time": 1,
    "scheme": "s",
    "decider": "d",
    "log": "l",
    "program": "0.1.0",
    "files": [FILE],
    "version": 1,
    "takedowns_to": 0,
    "generation": "",
}


def test_manifest_json_round_trip() -> None:
    manifest = Manifest(7, 1, "s", "d", "l", "0.1.0", (StoredFile("index/a", 3, "ab"),))
    assert manifest.to_json() == json.dumps(GOOD, sort_keys=True, separators=(",", ":")).encode()
    assert Manifest.from_json(manifest.to_json(), "here") == manifest


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"version": 2}, "has version 2; this program reads 1"),
        ({"version": None}, "is no manifest of a checkpoint: version is null, and an integer is required"),
        ({"offset": "7"}, "is no manifest of a checkpoint: offset is text, and an integer is required"),
        ({"files": {}}, "is no manifest of a checkpoint: files is an object, and an array is required"),
        ({"files": [{"name": "a", "size": 3}]}, "is no manifest of a checkpoint: files[0].digest is missing"),
        ({"files": [FILE, FILE | {"size": "3"}]}, "files[1].size is text, and an integer is required"),
        ({"color": "red"}, "is no manifest of a checkpoint: color is no known field"),
    ],
)
def test_manifest_from_json_names_the_wrong_field(changed: dict[str, object], problem: str) -> None:
    with pytest.raises(CorruptRecord) as caught:
        Manifest.from_json(json.dumps(GOOD | changed).encode(), "s3://store: checkpoint 7")
    assert str(caught.value).startswith("s3://store: checkpoint 7 ")
    assert str(caught.value).endswith(problem)


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"{}", b"{", b"\xff"])
def test_manifest_from_json_rejects_other_texts(text: bytes) -> None:
    with pytest.raises(CorruptRecord, match="here is no manifest of a checkpoint: "):
        Manifest.from_json(text, "here")
