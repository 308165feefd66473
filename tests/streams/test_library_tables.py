"""`neardup.dedupe`: columns for the rows of data frames of each library, by the verdicts of an index."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from neardup import BadInput, Page, Scheme, dedupe, open_index
from neardup.scheme import FIXED_SEED
from neardup.urls import url_of_id

TEXT = " ".join(f"word{number}" for number in range(100))
TEXTS = [TEXT, "three words only", f"{TEXT} 9:41", None, TEXT, "three words only"]
JUDGED = {
    "shown": [True, True, False, True, False, False],
    "verdict": ["unique", "unique", "near_duplicate", None, "exact_duplicate", "exact_duplicate"],
    "cluster": [0, 1, 0, 3, 0, 1],
    "representative": [0, 1, 0, 3, 0, 1],
    "score": [None, None, 0.9804, None, 1.0, 1.0],
}


class Dataset:
    """A `datasets.Dataset`, as far as it is used."""

    __module__ = "datasets.arrow_dataset"

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns = columns

    @property
    def column_names(self) -> list[str]:
        return list(self.columns)

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]

    def add_column(self, name: str, column: list[Any]) -> "Dataset":
        return Dataset(self.columns | {name: column})


@pytest.fixture
def pandas() -> ModuleType:
    return pytest.importorskip("pandas")  # type: ignore[no-any-return]


def test_dedupe_of_pandas_keeps_index_and_columns(pandas: ModuleType) -> None:
    table = pandas.DataFrame({"text": TEXTS, "n": range(6)}, index=list("uvwxyz"))
    found = dedupe(table)
    assert list(found.index) == list("uvwxyz")
    assert list(found.columns) == ["text", "n", *JUDGED]
    assert list(table.columns) == ["text", "n"], "the given table does not change"
    assert found.shown.dtype == bool
    values = found[list(JUDGED)].astype(object).where(found[list(JUDGED)].notna(), None)
    assert values.to_dict("list") == JUDGED
    assert len(found[found.shown]) == 3


def test_dedupe_of_a_dataset_adds_columns() -> None:
    assert dedupe(Dataset({"text": TEXTS})).columns == {"text": TEXTS} | JUDGED


def test_dedupe_of_polars_keeps_types() -> None:
    polars = pytest.importorskip("polars")
    found = dedupe(polars.DataFrame({"text": TEXTS, "k": [f"doc {n}" for n in range(6)]}), id="k")
    assert found.select(list(JUDGED)).to_dict(as_series=False) == JUDGED | {
        "representative": [f"doc {n}" for n in JUDGED["representative"]]
    }
    with pytest.raises(TypeError, match=r"dedupe\(frame\.collect\(\)\)"):
        dedupe(found.lazy())


def test_dedupe_reads_whatever_has_the_arrow_interface() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"text": TEXTS, "k": pyarrow.array(range(6), pyarrow.int8())})

    class Stream:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return table.__arrow_c_stream__(requested_schema)

    for given in (table, Stream(), table.to_batches()[0]):
        found = dedupe(given, id="k")
        assert found.select(list(JUDGED)).to_pydict() == JUDGED
        assert found.schema.field("representative").type == pyarrow.int8()


def test_dedupe_gives_the_verdicts_of_an_index() -> None:
    rows = [f"{TEXT} {n % 7}" for n in range(2000)]
    found = dedupe(Dataset({"body": rows}), "body", threads=2).columns
    with open_index(scheme=Scheme(seed=FIXED_SEED), rule="tape") as index:
        verdicts = index.add(
            [Page(url_of_id(str(n)), row.encode(), "text/plain; charset=utf-8") for n, row in enumerate(rows)]
        )
    assert found["verdict"] == [verdict.verdict.value for verdict in verdicts]


def test_dedupe_takes_missing_texts_and_bytes(pandas: ModuleType) -> None:
    texts = [TEXT.encode(), bytearray(TEXT.encode()), np.str_(TEXT), float("nan"), pandas.NA, None, "\ud800"]
    found = dedupe(Dataset({"text": texts})).columns
    assert found["verdict"][:6] == ["unique", "exact_duplicate", "exact_duplicate", None, None, None]
    assert found["shown"][3:6] == [True, True, True]
    assert [len(column) for column in dedupe(Dataset({"text": []})).columns.values()] == [0] * 6
    assert dedupe(pandas.DataFrame({"text": []})).shown.dtype == bool


def test_dedupe_names_wrong_arguments(pandas: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pandas.DataFrame({"text": [TEXT], "score": [1.0]})
    with pytest.raises(BadInput, match="no column 'body'; it has 'text', 'score'"):
        dedupe(table, "body")
    with pytest.raises(BadInput, match="a column 'score' already; choose another prefix"):
        dedupe(table)
    assert list(dedupe(table, prefix="dup_").columns)[2] == "dup_shown"
    with pytest.raises(BadInput, match="rule"):
        dedupe(table, prefix="dup_", rule="tapes")
    with pytest.raises(TypeError, match="row 1: a text must be a str or bytes, not 5 of type int"):
        dedupe(Dataset({"text": ["a", 5]}))
    for wrong in ([TEXT], {"text": [TEXT]}, table.text):
        with pytest.raises(TypeError, match="takes a pandas or Polars data frame"):
            dedupe(wrong)

    class Arrow:
        def __arrow_c_stream__(self) -> Iterator[None]:
            raise NotImplementedError

    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match="pyarrow reads Arrow: pip install pyarrow"):
        dedupe(Arrow())
