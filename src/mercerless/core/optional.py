"""Import optional packages, and stand-ins for what older versions of scikit-learn lack."""

from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

import sklearn

F = TypeVar("F")

__all__ = ["CallbackSupportMixin", "import_optional", "with_callbacks"]


def import_optional(name: str, extra: str, what: str) -> ModuleType:
    """The module `name`, or an ImportError that names what needs it and the extra that installs it.

    `what` begins the sentence and is singular: ``import_optional("skops.io", extra="skops", what="Saving models")``.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError:
        package = name.partition(".")[0]
        raise ImportError(
            f"{what} needs {package}; install it with: pip install {package}, or in the folder of "
            f"mercerless with: pip install '.[{extra}]'."
        ) from None


class _NoContext:
    """A callback context without listeners: it never stops a fit."""

    def subcontext(self, *args: Any, **kwargs: Any) -> "_NoContext":
        return self

    def call_on_fit_task_begin(self, **kwargs: Any) -> "_NoContext":
        return self

    def call_on_fit_task_end(self, **kwargs: Any) -> bool:
        return False


class NoCallbacks:
    """Base of estimators if scikit-learn has no callbacks: they fit the same, and raise if given callbacks."""

    def set_callbacks(self, *callbacks: Any) -> "NoCallbacks":
        """Raise if there are any callbacks, which scikit-learn has from 1.9 on.

        Parameters
        ----------
        *callbacks : object
            Callbacks.

        Returns
        -------
        self : object
            The estimator.
        """
        if callbacks:
            raise NotImplementedError(
                f"Callbacks need scikit-learn 1.9 or newer, and {sklearn.__version__} is installed."
            )
        return self

    def _init_callback_context(self, **kwargs: Any) -> _NoContext:
        return _NoContext()


try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ModuleNotFoundError:  # before scikit-learn 1.9
    CallbackSupportMixin = NoCallbacks

    def _with_callbacks(method: F) -> F:
        """Leave the method as it is."""
        return method


def with_callbacks(method: F) -> F:
    """scikit-learn's decorator of `fit`, for callbacks, which keeps the type of the method."""
    return _with_callbacks(method)
