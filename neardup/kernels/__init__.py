"""The hot path: numba functions on arrays and scalars, one file per stage.

Compiled code is cached for the next process (see `neardup.kernels.kernel_cache`). If the cache cannot be written, each
process compiles the kernels that the cache lacks.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba import types

from neardup.kernels.kernel_cache import KEPT, PLAIN

if not PLAIN:
    from numba.core.dispatcher import Dispatcher

    from neardup.kernels.compiling import Kept, PartCompiler, WholeCompiler

__all__ = ["KEPT", "PLAIN", "inlined_kernel", "kernel", "lean_kernel"]


def _decorator(**options: Any) -> Any:
    """Return a decorator that compiles a function once, whatever constants it is called with.

    Numba would compile `find(buf, at, end, 60)` once for each last argument. LLVM inserts constants anyway where it
    inlines. A function whose name begins with an underscore is called by kernels only, so it gets no Python wrapper.
    """
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

    def decorate(function: Callable[..., Any]) -> Any:
        if numba.config.DISABLE_JIT:
            return function
        if PLAIN:
            return numba.njit(nogil=True, error_model="numpy", cache=KEPT)(function)

        @cache
        def part() -> Any:
            return numba.njit(pipeline_class=PartCompiler, no_cpython_wrapper=True, **options)(function)

        def template(args: Any, kws: Any) -> Any:
            args = tuple(types.unliteral(arg) for arg in args)
            return Dispatcher.get_call_template(part(), args, {n: types.unliteral(arg) for n, arg in kws.items()})

        if function.__name__.startswith("_"):
            whole = part()
        else:
            whole = numba.njit(pipeline_class=WholeCompiler, **options)(function)
            whole._cache = Kept(function)
            whole.get_overload = lambda signature: part().get_overload(signature)
        whole.get_call_template = template
        whole.part = part
        return whole

    return decorate


#: The decorator of this package: no GIL, no Python objects, cached, IEEE division.
kernel = _decorator()

#: The same for kernels that allocate no array: without reference counts on arrays, which cost an atomic operation
#: each time an array is passed or unpacked from a tuple.
lean_kernel = _decorator(_nrt=False)

#: The same for a kernel of one caller that must share its registers.
inlined_kernel = _decorator(_nrt=False, forceinline=True)
