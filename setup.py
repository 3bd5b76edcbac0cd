"""The compiled kernel is optional: without a C compiler the package installs and works all the same."""

import sys

from setuptools import Extension, setup

# PyTorch for Linux brings the OpenMP runtime that GCC's code asks for: both then share one pool of threads.
threads = ["-fopenmp"] if sys.platform == "linux" else []

setup(
    ext_modules=[
        Extension(
            "ptncn.kernels._step",
            ["src/ptncn/kernels/step.c"],
            depends=["src/ptncn/kernels/step.inc"],
            extra_compile_args=["-O3", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", *threads],
            extra_link_args=threads,
            optional=True,
        ),
        Extension(
            "ptncn.kernels._forecast",
            ["src/ptncn/kernels/forecast.c"],
            extra_compile_args=["-O3", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math"],
            optional=True,
        ),
    ]
)
