"""Near-duplicates among the rows of a data frame: `dedupe` adds columns to it.

>>> import pandas
>>> from neardup import dedupe
>>> text = " ".join(f"word{number}" for number in range(100))
>>> texts = pandas.DataFrame({"text": [text, f"{text} 9:41", "another text"]})
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from neardup.errors import BadInput
from neardup.page import Page
from neardup.scheme import FIXED_SEED, Scheme
from neardup.standing import DUPLICATES
from neardup.urls import url_of_id
from neardup.verdict import Kind
from streams.library.deduplicator import open_index

Table = TypeVar("Table")
_PLAIN = "text/plain; charset=utf-8"


def dedupe(
    table: Table,
    text: str = "text",
    *,
    id: str | None = None,
    rule: str = "tape",
    content_type: str = _PLAIN,
    scheme: Scheme | None = None,
    prefix: str = "",
    threads: int = 1,
) -> Table:
    """Judge each row's text against the rows before it, and return the table with columns for the verdicts.

    Rows stay as they are, in their order. The new columns are:

    * `shown`: True if no earlier row has this text. `table[table.shown]` (pandas) and `table.filter("shown")` (Polars)
      are the table without its duplicates.
    * `verdict`: `unique`, `exact_duplicate`, `near_duplicate`, or `same_content`: the main content of an earlier row
      with other text around it, which is shown. A row without text has no verdict, and is shown.
    * `cluster`: number of the row, from 0, that founded the cluster.
    * `representative`: number of the row that stands for this one, or its value in the column `id`. Of a shown row, its
      own.
    * `score`: of a duplicate, the number that the rule compared. 1 means equal.

    The index is in memory, some 4 kB a row. For a table that does not fit, write it to Parquet, and use `neardup scan`.

    Args:
        table: a pandas or Polars data frame, an Arrow table, a `datasets.Dataset`, or any other object with the Arrow
            PyCapsule interface (`__arrow_c_stream__`), of which an Arrow table with the columns is returned.
        text: name of the column with the texts: strings, or bytes in UTF-8.
        id: name of the column whose values the column `representative` has.
        rule: name of the rule. `tape` compares texts alone.
        content_type: `text/html` if the texts are HTML.
        scheme: parameters of the sketches. By default the seed is fixed, so the same table has the same verdicts; texts
            of strangers who know the seed could be made to look like duplicates: `Scheme.new()` draws a seed.
        prefix: put before the names of the new columns.
        threads: number of threads that sketch the texts.

    Returns:
        A table of the given type.

    Raises:
        BadInput: if the table lacks a named column or already has one of the new columns, or if no rule has the name.
        TypeError: if `table` is no table, or a text is neither a string nor bytes.
        ModuleNotFoundError: if `pyarrow` is needed and not installed.

    Example:
        >>> print(dedupe(texts).drop(columns="text"))
           shown         verdict  cluster  representative   score
        0   True          unique        0               0     NaN
        1  False  near_duplicate        0               0  0.9804
        2   True          unique        2               2     NaN
    """
    known, table = _library_of(table)
    names = known.names(table)
    for name in (text, *([id] if id is not None else [])):
        if name not in names:
            raise BadInput(f"the table has no column {name!r}; it has {', '.join(map(repr, names))}")
    if taken := [name for name in _COLUMNS if prefix + name in names]:
        raise BadInput(f"the table has a column {prefix + taken[0]!r} already; choose another prefix")
    found = _judge(known.values(table, text), rule, content_type, scheme or Scheme(seed=FIXED_SEED), threads)
    if id is not None:
        ids = list(known.values(table, id))
        found["representative"] = [ids[row] for row in found["representative"]]
    added: Table = known.add(table, {prefix + name: values for name, values in found.items()}, id)
    return added


_COLUMNS = ("shown", "verdict", "cluster", "representative", "score")


def _judge(texts: Iterable[Any], rule: str, content_type: str, scheme: Scheme, threads: int) -> dict[str, list[Any]]:
    """Return the new columns by their names."""
    rows: list[int] = []  # of the pages, in their order
    shown: list[bool] = []

    def pages() -> Iterator[Page]:
        for row, value in enumerate(texts):
            shown.append(True)
            if (body := _body(value, row)) is not None:
                rows.append(row)
                yield Page(url_of_id(str(row)), body, content_type)

    judged: dict[int, tuple[str, int, int, float | None]] = {}
    founders: dict[int, int] = {}
    with open_index(scheme=scheme, rule=rule) as index:
        for number, verdict in enumerate(one for one in index.stream(pages(), threads=threads) if not one.n):
            row, kind = rows[number], verdict.verdict.value
            founders.setdefault(verdict.page_id, row)
            other = row
            if kind in DUPLICATES:
                assert verdict.representative is not None, "a duplicate names its representative"
                other = founders[verdict.representative.page_id]
            shown[row] = other == row
            score = 1.0 if kind == Kind.EXACT_DUPLICATE else verdict.evidence.get("score")
            judged[row] = kind, other, other, score if other != row else None
    every = [judged.get(row, (None, row, row, None)) for row in range(len(shown))]
    columns = map(list, zip(*every, strict=True)) if every else ([], [], [], [])
    return dict(zip(_COLUMNS, (shown, *columns), strict=True))


def _body(value: Any, row: int) -> bytes | None:
    """The bytes of a text; None for a missing value: None, NaN, or what pandas has for it."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value):
        return None
    raise TypeError(f"row {row}: a text must be a str or bytes, not {value!r:.60} of type {type(value).__name__}")


class _Library(NamedTuple):
    """What is done with tables of one library.

    names: names of the columns. values: values of a column, as Python objects. add: the table with further columns; the
    third argument is the name of the column whose values `representative` has.
    """

    names: Callable[[Any], Sequence[Any]]
    values: Callable[[Any, str], Iterable[Any]]
    add: Callable[[Any, Mapping[str, list[Any]], str | None], Any]


def _library_of(table: Any) -> tuple[_Library, Any]:
    """Return how to read a table, and the table, as an Arrow table if no other way is known."""
    roots = {kind.__module__.partition(".")[0] for kind in type(table).__mro__}
    if hasattr(table, "collect") and "polars" in roots:
        raise TypeError("a LazyFrame has no rows yet: dedupe(frame.collect())")
    if (name := next((one for one in _LIBRARIES if one in roots), None)) and hasattr(table, _MARKS[name]):
        return _LIBRARIES[name], table
    if name in ("pandas", "polars") or not hasattr(table, "__arrow_c_stream__"):
        raise TypeError(
            "dedupe takes a pandas or Polars data frame, an Arrow table, a datasets.Dataset, or an object with the "
            f"Arrow PyCapsule interface, not {type(table).__name__}"
        )
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"pyarrow reads {type(table).__name__}: pip install pyarrow") from error
    return _LIBRARIES["pyarrow"], pyarrow.table(table)


def _add_to_pandas(table: Any, columns: Mapping[str, list[Any]], id: str | None) -> Any:
    import numpy as np

    kinds = (bool, None, np.int64, np.int64 if id is None else None, float)
    made = zip(columns.items(), kinds, strict=True)
    return table.assign(
        **{
            name: values if kind is None and values else np.array(values, kind or object)
            for (name, values), kind in made
        }
    )


def _add_to_polars(table: Any, columns: Mapping[str, list[Any]], id: str | None) -> Any:
    import polars

    kinds = (
        polars.Boolean,
        polars.String,
        polars.Int64,
        polars.Int64 if id is None else table[id].dtype,
        polars.Float64,
    )
    made = zip(columns.items(), kinds, strict=True)
    return table.with_columns(*(polars.Series(name, values, dtype=kind) for (name, values), kind in made))


def _add_to_arrow(table: Any, columns: Mapping[str, list[Any]], id: str | None) -> Any:
    import pyarrow

    of_id = pyarrow.int64() if id is None else table.schema.field(id).type
    kinds = (pyarrow.bool_(), pyarrow.string(), pyarrow.int64(), of_id, pyarrow.float64())
    for (name, values), kind in zip(columns.items(), kinds, strict=True):
        table = table.append_column(name, pyarrow.array(values, type=kind))
    return table


def _add_to_dataset(table: Any, columns: Mapping[str, list[Any]], id: str | None) -> Any:
    for name, values in columns.items():
        table = table.add_column(name, values)
    return table


_LIBRARIES: Mapping[str, _Library] = {
    "pandas": _Library(lambda table: list(table.columns), lambda table, name: table[name], _add_to_pandas),
    "polars": _Library(lambda table: table.columns, lambda table, name: table[name], _add_to_polars),
    "pyarrow": _Library(
        lambda table: table.column_names,
        lambda table, name: chain.from_iterable(chunk.to_pylist() for chunk in table[name].chunks),
        _add_to_arrow,
    ),
    "datasets": _Library(lambda table: table.column_names, lambda table, name: table[name], _add_to_dataset),
}
#: A method that tables of a library have, and its other types have not.
_MARKS = {"pandas": "assign", "polars": "with_columns", "pyarrow": "from_batches", "datasets": "add_column"}
