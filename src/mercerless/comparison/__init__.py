"""Comparing learners on one data set: from files and arrays to a verdict and a page."""

from mercerless.comparison.reading import read_problem
from mercerless.comparison.result import Comparison, compare

__all__ = ["Comparison", "compare", "read_problem"]
