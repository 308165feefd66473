"""How kernels are compiled: once for all that call them, and for other processes."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from neardup.kernels import kernel, lean_kernel, prepare

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@lean_kernel
def _twice(x):  # type: ignore[no-untyped-def]
    return x + x


@lean_kernel
def fill(values, x):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        values[i] = _twice(x)
    return _twice(len(values))


@kernel
def total(values, x):  # type: ignore[no-untyped-def]
    return fill(values, x) + values.sum()


def test_what_a_kernel_calls_becomes_machine_code_with_it_alone() -> None:
    values = np.zeros(5, np.int64)
    assert total(values, 21) == 10 + 5 * 42
    assert len(total.signatures) == 1
    assert not fill.signatures, "only Python's calls need an entry of their own"
    assert len(fill.part().signatures) == 1
    assert fill(values[:2], 3) == 4, "there is one when Python asks"
    assert values.tolist() == [6, 6, 42, 42, 42]


def test_to_prepare_compiles_what_callers_take() -> None:
    @lean_kernel
    def apart(x):  # type: ignore[no-untyped-def]
        return x + 1

    @lean_kernel
    def caller(x):  # type: ignore[no-untyped-def]
        return apart(x)

    prepare(apart, np.uint64(1))
    assert [str(found[0]) for found in apart.part().signatures] == ["uint64"]
    assert not apart.signatures
    before = apart.part().overloads.copy()
    assert caller(np.uint64(41)) == 42
    assert apart.part().overloads == before


_MODULE = """
from neardup.kernels import lean_kernel, share

@lean_kernel
def _leaf(x):
    return 3 * x

@lean_kernel
def middle(x):
    return _leaf(x) + 1

@lean_kernel
def top(x):
    return middle(x) + _leaf(x)
"""


def test_a_shared_part_is_not_compiled_again(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(_MODULE)
    cache = tmp_path / "cache"

    def run(code: str) -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-c", f"import made\n{code}"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    hits = "print(sum(made.middle.part()._cache_hits.values()))"
    assert run(f"print(made.top(5), len(made._leaf.overloads)); {hits}") == "31 1\n0"
    for file in cache.rglob("made.top*"):
        file.unlink()
    assert not any(cache.rglob("part-*")), "kept without being asked"
    assert run("print(made.middle(5)); made.share(made.middle)") == "16"
    assert run(f"print(made.top(5)); {hits}") == "31\n1"
