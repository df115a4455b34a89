"""Sphinx configuration; ``make docs`` builds with warnings as errors."""

import logging
import re
import sys
import tomllib
from collections import defaultdict
from importlib.metadata import version as installed_version
from pathlib import Path

import matplotlib
from sphinx_gallery.sorting import ExplicitOrder

matplotlib.use("Agg")

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
project = "mercerless"
author = "The mercerless developers"
copyright = "2026, The mercerless developers"
release = version = installed_version("mercerless")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "examples"]
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
# reference pages link to the page of the user guide (an empty string if there is none) and to examples
links = tomllib.loads((Path(__file__).parent / "guides.toml").read_text(encoding="utf-8"))
guides = defaultdict(str)
for page, names in links["pages"].items():
    guides.update(dict.fromkeys(names, page))
autosummary_context = {"guides": guides, "siblings": links["examples"]}
autodoc_typehints = "none"
numpydoc_show_class_members = False

# make docs fills it
html_extra_path = [name for name in ["_extra"] if (Path(__file__).parent / name).exists()]
html_math_renderer = "mathml"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_title = "mercerless"
html_theme_options = {"source_directory": "docs/"}

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "subsection_order": [f"examples/{name}" for name in ("data", "trust", "spectrum", "papers")],
    "within_subsection_order": ExplicitOrder(
        [
            "plot_hits_search.py",
            "plot_items_molecules.py",
            "plot_krein_dtw.py",
            "plot_directed_citations.py",
            "plot_table_words.py",
            "plot_similarity_strings.py",
            "plot_compare_learners.py",
            "plot_few_landmarks.py",
            "plot_see_label_errors.py",
            "plot_see_reasons.py",
            "plot_similarity_verdict.py",
            "plot_krein_figure.py",
            "*",
        ]
    ),
    "filename_pattern": r"plot_",
    "backreferences_dir": "generated/backreferences",
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


def keep_initials(app, what, name, obj, options, lines):
    """Escape the first initial of a reference such as "D. Oglic", which reStructuredText takes for a list item."""
    for number, line in enumerate(lines):
        lines[number] = re.sub(
            r"^(\s*(?:\.\. \[\S+\] )?)(?=[A-Z]\. (?:[A-Z]\. |[a-z]+ )*[A-Z])", r"\1\\", line
        )


def setup(app):
    app.connect("autodoc-skip-member", skip_metadata_requests)
    app.connect("autodoc-process-docstring", keep_initials)
