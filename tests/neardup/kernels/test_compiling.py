"""Compilation of kernels: once for all callers, and for later processes."""

import ctypes
import os
import pickle
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numba
import pytest

from neardup.kernels import kernel_cache

_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE = 24, 1

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def run(folder: Path, module: str, code: str, *, readonly: bool = False, **processor: str) -> str:
    """What code prints in a process of its own, with the module as `made` and a cache that nothing else fills."""
    folder.mkdir(exist_ok=True)
    if not (folder / "made.py").exists():
        (folder / "made.py").write_text(module)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder), **processor}
    command = [sys.executable, "-c", f"import made\n{code}"]
    ended = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=heed_permissions if readonly else None,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def heed_permissions() -> None:
    """In a new process: files' permissions count for root, too."""
    ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0)


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

@kernel
def spare(values):
    return values.sum()
"""

_COUNTED = """
import numpy as np
values = np.zeros(5, np.int64)
print(made.total(values, 21), len(made.total.signatures))
print(len(made.fill.signatures), len(made.fill.part().signatures))
print(made.fill(values[:2], 3), values.tolist())
"""


_LOADS = (
    "import sys; import numpy as np; print(made.fill(np.zeros(5, np.int64), 21), "
    "{'numba.np.arraymath', 'scipy.linalg'} & sys.modules.keys() or 'without')"
)


@pytest.mark.whole
@pytest.mark.slow
def test_called_kernels_are_compiled_within_their_caller(tmp_path: Path) -> None:
    """What is kept is loaded without the compiler: numba imports what a compilation can need, scipy too, and that takes
    longer than the kernels of a scan.
    """
    first = run(tmp_path, _CALLS, f"{_COUNTED}\n{_LOADS}").splitlines()
    assert first[0] == f"{10 + 5 * 42} 1"
    assert first[1] == "0 1", "only Python's calls need an entry of their own"
    assert first[2] == "4 [6, 6, 42, 42, 42]", "there is one when Python asks"
    assert not first[3].endswith("without")
    again = run(tmp_path, _CALLS, _COUNTED).splitlines()
    assert again == [first[0], "0 0", first[2]], "what is kept is whole"
    lacks = f"{_LOADS}; print(made.spare(np.ones(5, np.int64)))"
    assert run(tmp_path, _CALLS, lacks).splitlines() == ["10 without", "5"]


_KEPT = _CALLS + "from neardup.kernels import kernel_cache\n"
_CACHED = "print(made.total.stats.cache_hits and 'kept' or 'compiled', made.kernel_cache.KEPT)"
_USED = f"import numpy as np; made.total(np.zeros(5, np.int64), 21); {_CACHED}"
_HOLDS = "print(made.total._cache.holds())"
_OTHER = {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": ""}


def files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[object]]:
    """A folder with a cache that this processor's kernel is kept in, and the types of the call."""
    folder = tmp_path_factory.mktemp("kept")
    result = run(folder, _KEPT, f"import pickle; {_USED}; print(pickle.dumps(made.total.signatures).hex())")
    used, signatures = result.splitlines()
    assert used == "compiled True"
    return folder, pickle.loads(bytes.fromhex(signatures))


@pytest.mark.slow
def test_kernel_cache_is_used_where_it_cannot_be_written(kept: tuple[Path, list[object]], tmp_path: Path) -> None:
    shutil.copytree(kept[0], tmp_path, dirs_exist_ok=True)
    for folder in (*(tmp_path / "cache").rglob("*"), tmp_path / "cache"):
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    try:
        other = "made.fill(np.zeros(5, np.int64), 21); print(len(made.fill.signatures))"
        found = run(tmp_path, _KEPT, f"{_USED}; {other}", readonly=True).splitlines()
        assert found == ["kept False", "1"], "what lacks is compiled"
    finally:
        (tmp_path / "cache").chmod(0o755)
    assert files(tmp_path / "cache") == files(kept[0] / "cache")


@pytest.mark.slow
def test_cached_kernel_loads_without_the_modules_that_compiled_it(kept: tuple[Path, list[object]]) -> None:
    """Its code calls a function of numba's, which the compiler took from a module that nothing needs any more."""
    loads = f"{_USED}; import sys; print('numba.np.arraymath' in sys.modules)"
    assert run(kept[0], _KEPT, loads).splitlines() == ["kept True", "False"]


# Each of these three compiles in two to four processes: `make test` has what is kept here, above.
@pytest.mark.slow
@pytest.mark.whole
def test_kernel_cache_of_another_processor_is_not_used(kept: tuple[Path, list[object]], tmp_path: Path) -> None:
    shutil.copytree(kept[0], tmp_path, dirs_exist_ok=True)
    there = run(tmp_path, _KEPT, f"{_HOLDS}; {_USED}; {_HOLDS}", **_OTHER)
    assert there.splitlines() == ["False", "compiled True", "True"]
    assert run(tmp_path, _KEPT, f"{_HOLDS}; {_USED}").splitlines() == ["True", "kept True"]


def test_only_kernels_that_python_calls_are_compiled_for_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is cached yet, as when an image is built, the functions within a kernel have signatures, too."""
    from neardup import warm
    from neardup.rules import learned

    monkeypatch.setitem(learned._signal.overloads, ("a signature",), None)  # type: ignore[attr-defined]
    for module, name in warm._calls():
        assert hasattr(import_module(module), name), f"{module}.{name}"


@pytest.mark.slow
@pytest.mark.whole
def test_kernels_are_compiled_for_processors_that_are_not_here(kept: tuple[Path, list[object]], tmp_path: Path) -> None:
    """As an image's are: by the types of the calls that this machine made, without a call there."""
    shutil.copytree(kept[0], tmp_path, dirs_exist_ok=True)
    (signature,) = kept[1]
    assert len(signature) == 2  # type: ignore[arg-type]
    calls = f"pickle.loads(bytes.fromhex({pickle.dumps(kept[1]).hex()!r}))"
    compile_only = f"import pickle; from neardup import warm; warm.compile_for({{('made', 'total'): {calls}}})"
    run(tmp_path, _KEPT, compile_only, **_OTHER)
    assert run(tmp_path, _KEPT, _USED, **_OTHER) == "kept True"


V3 = kernel_cache.LEVELS["x86-64-v3"].needs
V4 = kernel_cache.LEVELS["x86-64-v4"].needs


@pytest.mark.parametrize(
    ("machine", "features", "wanted"),
    [
        ("x86_64", V4 | {"amx-tile"}, "x86-64-v4"),
        ("x86_64", V4 - {"avx512vl"}, "x86-64-v3"),
        ("x86_64", V3, "x86-64-v3"),
        ("x86_64", V3 - {"fma"}, None),
        ("x86_64", set(), None),
        ("aarch64", {"neon"}, "arm64"),
        ("riscv64", set(), None),
    ],
)
def test_the_best_level_that_a_processor_has(machine: str, features: set[str], wanted: str | None) -> None:
    assert kernel_cache.suiting(kernel_cache.LEVELS, machine, features) == wanted


def test_shipped_kernels_are_used_if_their_sources_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "shipped", lambda level: tmp_path / level)
    monkeypatch.setattr(kernel_cache.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(kernel_cache, "_features", lambda: V3)
    for name in ("NUMBA_CACHE_DIR", "NUMBA_CPU_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    own = ("/elsewhere/neardup", None)
    assert kernel_cache.choose() == own
    for level in ("x86-64-v4", "x86-64-v3"):
        (tmp_path / level / "kernels-0123456789abcdef").mkdir(parents=True)
    assert kernel_cache.choose() == own, "of other sources"
    (tmp_path / "x86-64-v4" / f"kernels-{kernel_cache.digest()}").mkdir()
    assert kernel_cache.choose() == own, "this processor has no such instructions"
    (tmp_path / "x86-64-v3" / f"kernels-{kernel_cache.digest()}").mkdir()
    assert kernel_cache.choose() == (str(tmp_path / "x86-64-v3"), "x86-64-v3")
    monkeypatch.setenv("NUMBA_CPU_NAME", "haswell")
    assert kernel_cache.choose() == own
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/given")
    assert kernel_cache.choose() == ("/given", None)


def test_folders_of_kernels_have_caches_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed rule leaves the kernels for pages compiled; a change below a folder concerns it, too."""
    constants = [name for names in kernel_cache.CONSTANTS.values() for name in names]
    for name in [*(f"{room}/made.py" for room in kernel_cache.ROOMS), *constants]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr(kernel_cache, "PACKAGE", tmp_path)
    digest = kernel_cache.digest.__wrapped__
    kernels, rules = (digest(room) for room in ("kernels", "rules"))
    (tmp_path / "rules" / "made.py").write_text("1")
    assert digest("kernels") == kernels
    assert digest("rules") != rules
    rules = digest("rules")
    (tmp_path / "kernels" / "made.py").write_text("1")
    assert digest("kernels") != kernels
    assert digest("rules") != rules
    rules, walk = digest("rules"), digest(kernel_cache.ROOMS[-1])
    (tmp_path / constants[0]).write_text("1")
    assert digest("rules") == rules
    assert digest(kernel_cache.ROOMS[-1]) != walk
    folders = ("kernels", "rules", "matching/kernels", "elsewhere/rules")
    rooms = [kernel_cache.room_of(tmp_path / folder / "made.py") for folder in folders]
    assert rooms == [*kernel_cache.ROOMS, kernel_cache.ROOMS[-1]]


_DIGESTS = """
import sys
import numpy as np
from neardup.kernels.fingerprint import KEY_WORDS, fingerprint
from neardup.kernels.xxh64 import xxh64_twice
text = np.arange(256, dtype=np.uint8)
key = np.arange(1, KEY_WORDS + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
print([int(fingerprint(text, 3, 3 + n, key)) for n in (0, 5, 8, 15, 16, 200)])
print(*xxh64_twice(text.view(np.uint64), 20, np.uint64(1), np.uint64(2), np.zeros(256, np.uint64)))
"""


@pytest.mark.slow
@pytest.mark.whole
def test_plain_kernels_give_the_same_bits_without_private_parts_of_numba(tmp_path: Path) -> None:
    """On kernels of a few lines; `make njit` compares whole sketches."""
    plain = {"NEARDUP_PLAIN_KERNELS": "1"}
    own_cache = os.environ.get("NUMBA_CACHE_DIR", "")  # which holds these kernels
    usual = run(tmp_path / "usual", "", _DIGESTS, NUMBA_CACHE_DIR=own_cache)
    private = "assert 'neardup.kernels.compiling' not in sys.modules"
    assert run(tmp_path / "kernels", "", _DIGESTS + private, **plain) == usual
    total = (
        "import numpy as np; print(made.total(np.zeros(5, np.int64), 21), sum(made.total.stats.cache_hits.values()))"
    )
    assert run(tmp_path / "calls", _CALLS, total, **plain) == f"{10 + 5 * 42} 0"
    assert run(tmp_path / "calls", _CALLS, total, **plain) == f"{10 + 5 * 42} 1", "kept for the next process"
