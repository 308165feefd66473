"""Makes a wheel with compiled kernels, if `python -m neardup.warm levels` has compiled them into the package.

Such a wheel fits one version of Python and one architecture. The kernels in it are those of one version of numba: with
another one, and on a processor without one of the levels, the installed package compiles its own, as from a wheel
without compiled kernels (`neardup.kernels.kernel_cache`).
"""

import platform
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Compiled kernels call no function of the C library by themselves, so any that numba runs on will do.
_PLATFORM = "manylinux_2_17"


class CompiledWheel(BuildHookInterface[Any]):
    """Adds the folder `neardup/compiled`, which git ignores, and names the wheel for what it fits."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        compiled = Path(self.root) / "neardup" / "compiled"
        if not any(compiled.glob("*/*/*")):
            return
        build_data["pure_python"] = False
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["tag"] = f"{python}-none-{_PLATFORM}_{platform.machine()}"
        build_data["force_include"][str(compiled)] = "neardup/compiled"
