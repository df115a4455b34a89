"""Sphinx configuration; ``make docs`` builds with warnings as errors."""

import logging
import re
import sys
from pathlib import Path

import matplotlib
from cycler import cycler
from sphinx_gallery.sorting import ExplicitOrder

import mercerless

matplotlib.use("Agg")

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
project = "mercerless"
author = "The mercerless developers"
copyright = "2026, The mercerless developers"
release = version = mercerless.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "results",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "examples", "generated/backreferences"]
suppress_warnings = ["config.cache"]
# the table of contents takes every page that exists; Sphinx gives this warning no type by which to suppress it
logging.getLogger("sphinx.sphinx.directives.other").addFilter(
    lambda record: getattr(record, "subtype", None) != "empty_glob"
)

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

# make docs fills it
html_extra_path = [name for name in ["_extra"] if (Path(__file__).parent / name).exists()]
html_math_renderer = "mathml"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_title = "mercerless"
html_logo = "images/logo.svg"
html_favicon = "images/logo.svg"
html_theme_options = {"source_directory": "docs/", "sidebar_hide_name": False}

# every page that says how to do something, and every paper, shows the picture of one example
EXAMPLES = (
    "spectrum", "similarities", "strings", "landmarks", "table", "uncertainty", "large", "latency",
    "krein", "rates", "hyper", "dank", "lab",
)  # fmt: skip


def style_of_pictures(gallery_conf, name):
    """Transparent pictures with gray text, which can be read on a light and on a dark page."""
    gray = "#808890"
    colors = [
        "text.color",
        "axes.edgecolor",
        "axes.labelcolor",
        "axes.titlecolor",
        "xtick.color",
        "ytick.color",
    ]
    matplotlib.rcParams.update(
        dict.fromkeys(colors, gray)
        | {
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "legend.frameon": False,
            "legend.labelcolor": gray,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": cycler(color=["#3d8bd4", "#e8803b", "#2ca58d", "#9a6fb0"]),
            "figure.dpi": 110,
        }
    )


sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": ExplicitOrder([f"plot_{name}.py" for name in EXAMPLES]),
    "filename_pattern": r"plot_",
    "backreferences_dir": "generated/backreferences",
    "reset_modules": ("matplotlib", style_of_pictures),
    "doc_module": ("mercerless",),
    "download_all_examples": False,
    "min_reported_time": 5,
    "remove_config_comments": True,
    "capture_repr": (),
    "abort_on_example_error": True,
}


def skip_metadata_requests(app, what, name, obj, skip, options):
    """Leave out scikit-learn's generated set_fit_request and the like, whose links lead to its own guide."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def mend_docstring(app, what, name, obj, options, lines):
    """Escape the first initial of a reference such as "D. Oglic", which reStructuredText takes for a list item.

    References into scikit-learn's own guide, in docstrings that are inherited, become plain text.
    """
    for number, line in enumerate(lines):
        line = re.sub(r":ref:`([^`<]*?)\s*(?:<[^>]*>)?`", r"\1", line)
        lines[number] = re.sub(
            r"^(\s*(?:\.\. \[\S+\] )?)(?=[A-Z]\. (?:[A-Z]\. |[a-z]+ )*[A-Z])", r"\1\\", line
        )


def setup(app):
    app.connect("autodoc-skip-member", skip_metadata_requests)
    app.connect("autodoc-process-docstring", mend_docstring)
