"""How kernels are compiled: once for all that call them, and for other processes."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from neardup.kernels import lean_kernel, prepare

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def run(folder: Path, module: str, code: str) -> str:
    """What code prints in a process of its own, with the module as `made` and a cache that nothing else fills."""
    if not (folder / "made.py").exists():  # whose time is part of the cache's key
        (folder / "made.py").write_text(module)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", f"import made\n{code}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


_CALLS = """
from neardup.kernels import kernel, lean_kernel

@lean_kernel
def _twice(x):
    return x + x

@lean_kernel
def fill(values, x):
    for i in range(len(values)):
        values[i] = _twice(x)
    return _twice(len(values))

@kernel
def total(values, x):
    return fill(values, x) + values.sum()
"""

_COUNTED = """
import numpy as np
values = np.zeros(5, np.int64)
print(made.total(values, 21), len(made.total.signatures))
print(len(made.fill.signatures), len(made.fill.part().signatures))
print(made.fill(values[:2], 3), values.tolist())
"""


def test_what_a_kernel_calls_becomes_machine_code_with_it_alone(tmp_path: Path) -> None:
    first = run(tmp_path, _CALLS, _COUNTED).splitlines()
    assert first[0] == f"{10 + 5 * 42} 1"
    assert first[1] == "0 1", "only Python's calls need an entry of their own"
    assert first[2] == "4 [6, 6, 42, 42, 42]", "there is one when Python asks"
    again = run(tmp_path, _CALLS, _COUNTED).splitlines()
    assert again == [first[0], "0 0", first[2]], "what is kept is whole"


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
    cache = tmp_path / "cache"
    hits = "print(sum(made.middle.part()._cache_hits.values()))"
    assert run(tmp_path, _MODULE, f"print(made.top(5), len(made._leaf.overloads)); {hits}") == "31 1\n0"
    for file in cache.rglob("made.top*"):
        file.unlink()
    assert not any(cache.rglob("part-*")), "kept without being asked"
    assert run(tmp_path, _MODULE, "print(made.middle(5)); made.share(made.middle)") == "16"
    assert run(tmp_path, _MODULE, f"print(made.top(5)); {hits}") == "31\n1"
