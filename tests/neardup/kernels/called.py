"""Operations of kernels as functions that Python calls. Kernels alone can call the operations themselves."""

from types import ModuleType, SimpleNamespace
from typing import Any

import numba
from numba.core.extending import _Intrinsic


def called(module: ModuleType) -> SimpleNamespace:
    """The names of a module, each operation as a function."""
    return SimpleNamespace(**{name: _function(each) for name, each in vars(module).items()})


def _function(each: Any) -> Any:
    if not isinstance(each, _Intrinsic):
        return each

    @numba.njit
    def call(*args):  # type: ignore[no-untyped-def]
        return each(*args)

    return call
