"""How kernels become machine code: what Python calls is compiled as a whole, what kernels call is a part of it.

Numba optimises each function together with all that it calls, makes machine code of that, and does both again for each
caller: the deeper the calls, the more often. Here a function that a kernel calls stays as it was translated until the
kernel at the top, the one that Python calls, is optimised with everything below it, once. Parts are kept in memory;
`share` puts one into the cache, closed under what it calls, for a process that compiles a caller of it.

This builds on parts of numba that are no public interface, and may break with any version of it:

* `numba.core.compiler`: `Compiler` with the order of its arguments, `Flags` with `_values`, `CompileResult`;
* `numba.core.codegen`: `JITCodeLibrary` with `_linking_libraries`, `_final_module`, `_finalized`,
  `_get_module_for_linking`, `_raise_if_finalized`, `_ensure_finalized`;
* `numba.core.caching`: `FunctionCache`, `CompileResultCacheImpl`, `UserProvidedCacheLocator` and their hooks;
* `numba.core.registry.cpu_target`, `Dispatcher.get_call_template`, `Dispatcher._cache`, the options `_nrt`,
  `no_cpython_wrapper`, `no_cfunc_wrapper` of `njit` (in `neardup.kernels`).

With NEARDUP_PLAIN_KERNELS=1 this module is not imported, and `njit` alone compiles the same bits: the first start takes
longer. Intrinsics (`neardup.kernels.bits`, `windows`, `spans`, `lanes`) build LLVM code with llvmlite and
`numba.extending` in both modes.
"""

import os
from collections.abc import Iterable
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.codegen import CodeLibrary, JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags
from numba.core.registry import cpu_target

from neardup.kernels.keeping import KEPT, folder


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
    """Stands for what runs machine code, where there is none."""

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _Part(JITCodeLibrary):
    """A function for those that call it: neither optimised nor made machine code."""

    @property
    def codegen(self) -> _NoEngine:
        return _NoEngine()

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        self._ensure_finalized()
        module = self._final_module.clone()
        for library in _closed(self._linking_libraries):
            module.link_in(library._get_module_for_linking(), preserve=True)
        return self.name, module.as_bitcode()

    @classmethod
    def restored(cls, codegen: Any, name: str, bitcode: bytes) -> "_Part":
        """What `serialize_using_object_code` wrote."""
        part = cls(codegen, name)
        part._final_module = llvm.parse_bitcode(bitcode)
        part.finalize()
        return part


class _Whole(JITCodeLibrary):
    """A function that Python calls, with all its parts."""

    def finalize(self) -> None:
        self._linking_libraries = _closed(self._linking_libraries)
        super().finalize()


class _Flags(Flags):
    """Numba's, compared by what is set first: it looks implementations up by them, several for every operation."""

    __slots__ = ()

    def __hash__(self) -> int:
        return _FLAGS_HASH

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Flags) and self._values == other._values) or super().__eq__(other)


_FLAGS_HASH = hash(Flags())


def _compiler(kind: type[JITCodeLibrary]) -> type[Compiler]:
    class Made(Compiler):
        def __init__(self, typing, target, library, args, return_type, flags, locals_):  # numba's own order
            if library is None:
                library = kind(target.codegen(), "kernel")
                library.enable_object_caching()
            super().__init__(typing, target, library, args, return_type, _Flags(flags), locals_)

    return Made


PartCompiler, WholeCompiler = _compiler(_Part), _compiler(_Whole)


class _Locator(UserProvidedCacheLocator):
    """The same place wherever the package is installed; and a directory that cannot be written will do."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        super().__init__(py_func, py_file)
        self._cache_path = str(folder(numba.config.CACHE_DIR))

    def ensure_cache_path(self) -> None:
        if KEPT:
            os.makedirs(self._cache_path, exist_ok=True)


class KeptFiles(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class Kept(FunctionCache):
    """Of one kernel. A directory that cannot even be read holds nothing."""

    _impl_class = KeptFiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if KEPT:
            super().save_overload(sig, data)

    def holds(self) -> bool:
        """Whether it is kept for this processor, for whatever arguments."""
        here = cpu_target.target_context.codegen().magic_tuple()
        try:
            return any(processor == here for _, processor, _ in self._cache_file._load_index())
        except OSError:
            return False


class _PartCacheFiles(KeptFiles):
    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return "part-" + super().get_filename_base(fullname, abiflags)

    def rebuild(self, target_context: Any, payload: Any) -> CompileResult:
        library, description, environment, signature, *_ = payload
        part = _Part.restored(target_context.codegen(), *library)
        nothing = dict.fromkeys(CompileResult._fields)
        given = {
            "typing_context": target_context.typing_context,
            "target_context": target_context,
            "entry_point": target_context.get_executable(part, description, environment),
            "signature": signature,
            "objectmode": False,
            "lifted": (),
            "fndesc": description,
            "library": part,
            "environment": environment,
            "reload_init": [],
            "referenced_envs": [],
        }
        return CompileResult(**(nothing | given))


class PartCache(Kept):
    """Of one part. What is not shared is not written: it would be compiled code of all that a part calls."""

    _impl_class = _PartCacheFiles

    def save_overload(self, sig: Any, data: Any) -> None:
        pass

    def share(self, sig: Any, data: Any) -> None:
        super().save_overload(sig, data)
