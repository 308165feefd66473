"""Compiles kernels: each kernel that Python calls becomes machine code once, together with the functions it calls.

Numba alone would optimise a function and make machine code of it once for each of its callers. Deep calls repeat that
work many times. Here the functions that a kernel calls stay in LLVM's intermediate form. Only the kernel that Python
calls is optimised, together with everything below it.

This module uses private parts of numba, and may break with any version of it:

* `numba.core.compiler`: `CompilerBase` with the order of its arguments, `Flags` with `_values`; passes of
  `numba.core.typed_passes` and `untyped_passes`;
* `numba.core.codegen`: `JITCodeLibrary` with `_linking_libraries`, `_finalized`,
  `_raise_if_finalized`, `_ensure_finalized`;
* `numba.core.caching`: `FunctionCache`, `NullCache`, `UserProvidedCacheLocator` and their hooks; the order of what
  `CompileResultCacheImpl` stores;
* `numba.core.typing.Context` with `resolve_function_type`, its arguments and its attributes;
* `numba.core.runtime.rtsys.initialize`;
* `numba.core.registry.cpu_target`, `Dispatcher.get_call_template`, `Dispatcher._cache`, the options `_nrt`,
  `no_cpython_wrapper`, `no_cfunc_wrapper` of `njit` (in `neardup.kernels`).

With NEARDUP_PLAIN_KERNELS=1 this module is not imported, and `njit` alone compiles the same bits: the first start takes
longer. In both modes `neardup.kernels.operations` builds LLVM code with llvmlite and `numba.extending`.
"""

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from types import BuiltinFunctionType
from typing import Any

import numba
from llvmlite.binding import parse_assembly
from numba.core import typed_passes, types, untyped_passes
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache, UserProvidedCacheLocator
from numba.core.codegen import CodeLibrary, JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from neardup.kernels.kernel_cache import KEPT, folder, room_of


def _closed(libraries: Iterable[CodeLibrary]) -> list[CodeLibrary]:
    """The libraries and those that they call, each once."""
    found = dict.fromkeys(libraries)
    left = list(found)
    while left:
        new = [library for library in left.pop()._linking_libraries if library not in found]
        found.update(dict.fromkeys(new))
        left += new
    return list(found)


class _NoEngine:
    """A stand-in for the engine that runs machine code: a `_Part` has none."""

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _Part(JITCodeLibrary):
    """A function that kernels call. It has no machine code of its own: the calling kernel includes it."""

    @property
    def codegen(self) -> _NoEngine:
        return _NoEngine()

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class _Whole(JITCodeLibrary):
    """A function that Python calls, with all its parts."""

    def finalize(self) -> None:
        self._linking_libraries = _closed(self._linking_libraries)
        super().finalize()


class _Flags(Flags):
    """Numba's flags with a faster comparison: numba looks up implementations by flags several times per operation."""

    __slots__ = ()

    def __hash__(self) -> int:
        return _FLAGS_HASH

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Flags):
            return NotImplemented
        ours, theirs = self._values, other._values
        return ours == theirs or all(getattr(self, name) == getattr(other, name) for name in {*ours, *theirs})


_FLAGS_HASH = hash(Flags())


@register_pass(mutates_CFG=False, analysis_only=True)
class _Legalization(typed_passes.IRLegalization):
    """Numba's last pass before LLVM code: marks where variables end, for reference counts. Lean kernels have none."""

    _name = "kernel_legalization"

    def run_pass(self, state: Any) -> bool:
        return bool(state.flags.nrt and super().run_pass(state))


class _Typing(type(cpu_target.typing_context)):
    """Numba's typing context, which tries an operator's implementations for the same types once, not at each use."""

    def __init__(self) -> None:
        self.__dict__ = cpu_target.typing_context.__dict__

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        if kws or not isinstance(func, (BuiltinFunctionType, types.Function)):
            return super().resolve_function_type(func, args, kws)
        found = _RESOLVED.get((func, args))
        if found is None:
            found = super().resolve_function_type(func, args, kws)
            if found is not None:
                _RESOLVED[func, args] = found
        return found


#: Signatures by function and types of arguments.
_RESOLVED: dict[tuple[Any, Any], Any] = {}
_TYPING = _Typing()


#: The passes of numba that kernels need. Left out are those for closures, `with`, parallel loops and array expressions.
_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    _Legalization,
    typed_passes.AnnotateTypes,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)


def _compiler(kind: type[JITCodeLibrary]) -> type[CompilerBase]:
    class Made(CompilerBase):
        def __init__(self, typing, target, library, args, return_type, flags, locals_):  # numba's own order
            if library is None:
                library = kind(target.codegen(), "kernel")
                library.enable_object_caching()
            super().__init__(_TYPING, target, library, args, return_type, _Flags(flags), locals_)

        def define_pipelines(self) -> list[PassManager]:
            manager = PassManager("kernel")
            for each in _PASSES:
                manager.add_pass(each, each.__name__)
            manager.finalize()
            return [manager]

    return Made


PartCompiler, WholeCompiler = _compiler(_Part), _compiler(_Whole)


class _Locator(UserProvidedCacheLocator):
    """The cache directory of kernels. It does not depend on where the package is installed, and may be read-only."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        super().__init__(py_func, py_file)
        self._cache_path = str(folder(numba.config.CACHE_DIR, room_of(py_file)))

    def ensure_cache_path(self) -> None:
        if KEPT:
            os.makedirs(self._cache_path, exist_ok=True)


class KeptFiles(CompileResultCacheImpl):
    _locator_classes = (_Locator,)

    def reduce(self, result: CompileResult) -> tuple[Any, ...]:
        """What is stored of a compiled kernel: its machine code, and the name by which Python calls it.

        Numba also stores the kernel's bitcode, into which it can compile other functions, and the environments of all
        functions in it, which code that handles Python objects reads. Kernels need neither, and loading them would take
        most of the time. So a module stands for the bitcode that has the name alone.
        """
        (name, kind, (code, _)), *others, _ = super().reduce(result)
        entry = f'define void @"{result.fndesc.llvm_cpython_wrapper_name}"() {{ ret void }}'
        return (name, kind, (code, parse_assembly(entry).as_bitcode())), *others, ()


class _Files(FunctionCache):
    """The files of one kernel in the cache."""

    _impl_class = KeptFiles

    def load(self, sig: Any, target_context: Any) -> Any:
        # Numba's own method refreshes the target context first: it imports all that a compilation can need, which takes
        # longer than all else that loads a kernel. Machine code needs the symbols of the runtime alone.
        rtsys.initialize(target_context)
        return self._load_overload(sig, target_context)

    def holds(self) -> bool:
        here = cpu_target.target_context.codegen().magic_tuple()
        return any(processor == here for _, processor, _ in self._cache_file._load_index())


class Kept(NullCache):
    """The cache of one kernel. A directory that cannot be read counts as empty.

    Its files are looked for when the kernel is called: a process calls few of the kernels that it imports.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def files(self) -> _Files:
        return _Files(self._function)

    @property
    def cache_path(self) -> str:
        return str(self.files.cache_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return self.files.load(sig, target_context)
        except OSError:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if KEPT:
            self.files.save_overload(sig, data)

    def holds(self) -> bool:
        """Whether the cache has this kernel for this processor, for any argument types."""
        try:
            return self.files.holds()
        except OSError:
            return False
