"""How fast the network is, and how close that is to what the machine allows: `ptncn bench`."""

from ptncn.bench.page import make_page, write_page
from ptncn.bench.run import Plan, make_plan, run
from ptncn.bench.shapes import SHAPES, Shape
from ptncn.bench.textbook import Textbook

__all__ = ["SHAPES", "Plan", "Shape", "Textbook", "make_page", "make_plan", "run", "write_page"]
