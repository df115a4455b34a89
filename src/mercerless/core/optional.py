"""Import optional packages, and stand-ins for what older versions of scikit-learn lack."""

from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

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


class NoContext:
    """The context of a fit without callbacks."""

    def subcontext(self, **kwargs: Any) -> "NoContext":
        return self

    def call_on_fit_task_begin(self, **kwargs: Any) -> None:
        pass

    call_on_fit_task_end = call_on_fit_task_begin


class NoCallbacks:
    """Base of estimators before scikit-learn 1.9, which has no callbacks."""

    def _init_callback_context(self, **kwargs: Any) -> NoContext:
        return NoContext()


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ModuleNotFoundError:
    CallbackSupportMixin = NoCallbacks

    def with_callbacks(method: F) -> F:
        return method
