"""What competes in the average of the table learner."""

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import NDArray


class Extra(NamedTuple):
    """What else competes: its out-of-fold predictions, and how it is fitted to all rows."""

    predictions: NDArray  # (n_validation, n_outputs)
    # of `total` as in `with_coefficients`; gives an expansion, or any form
    finish: Callable[..., Any]
