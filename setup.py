"""The compiled kernel is optional: the package also installs and works without a C compiler."""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

KERNEL = "src/ptncn/kernels"
FORECASTER = [f"{name}.inc" for name in ("readout", "mixture", "nonlinear", "column", "seasons")]


class BuildKernel(build_ext):
    """Flags for this compiler, with OpenMP if it is supported."""

    def build_extension(self, ext: Extension) -> None:
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = ["/O2", "/std:c11", "/utf-8"]
            super().build_extension(ext)
            return
        plain = ["-O3", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math"]
        ext.extra_compile_args, ext.libraries = plain, ["m"]
        if ext.name != "ptncn.kernels._step":
            super().build_extension(ext)
            return
        try:  # PyTorch for Linux ships the OpenMP runtime that GCC uses, so both share one pool of threads
            ext.extra_compile_args, ext.extra_link_args = [*plain, "-fopenmp"], ["-fopenmp"]
            super().build_extension(ext)
        except (CompileError, LinkError):
            ext.extra_compile_args, ext.extra_link_args = plain, []
            super().build_extension(ext)

    def get_ext_filename(self, fullname: str) -> str:
        """A name that cannot be imported: ctypes loads the libraries, which are not Python modules."""
        return str(Path(*fullname.split("."))) + (".kernel.dll" if sys.platform == "win32" else ".kernel.so")

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return ext.export_symbols  # without the PyInit function of a module


setup(
    cmdclass={"build_ext": BuildKernel},
    ext_modules=[
        Extension(
            "ptncn.kernels._step",
            [f"{KERNEL}/step.c"],
            depends=[f"{KERNEL}/{name}" for name in ("export.h", "step.h", "check.h", "scalars.h")]
            + [f"{KERNEL}/{name}.inc" for name in ("products", "optimizers", "run", "memory", "step")],
            optional=True,
        ),
        *(
            Extension(
                f"ptncn.kernels._{name}",
                [f"{KERNEL}/{name}.c"],
                depends=[f"{KERNEL}/{own}" for own in ("export.h", *FORECASTER)],
                optional=True,
            )
            for name in ("forecast", "anomaly", "gauge", "format")
        ),
    ],
)
