"""The compiled kernel is optional: without a C compiler the package installs and works all the same."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "ptncn.kernels._step",
            ["src/ptncn/kernels/step.c"],
            depends=["src/ptncn/kernels/step.inc"],
            extra_compile_args=["-O3", "-std=c11", "-fno-math-errno", "-fno-trapping-math"],
            optional=True,
        )
    ]
)
