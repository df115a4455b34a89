"""``mercerless inspect``: describe a matrix, suggest an estimator, and draw it."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless import persistence
from mercerless.commands import _common
from mercerless.commands._arguments import add_file_arguments
from mercerless.comparison import arrays, files, formats, matrices
from mercerless.comparison.labels import is_missing, parse_labels, read_labels
from mercerless.comparison.limits import NAMES
from mercerless.comparison.problem import conversion, item_similarities
from mercerless.comparison.report import render_matrix
from mercerless.comparison.tables import CellTable, Items, Pairs
from mercerless.core.files import replacing, write_text
from mercerless.core.gaps import fill_gaps
from mercerless.core.memory import check_memory
from mercerless.core.optional import import_optional
from mercerless.core.validation import check_square, guess_task, is_rounding
from mercerless.datasets import load_digit_shapes
from mercerless.inspection import KernelMatrixDisplay, SpectrumDisplay
from mercerless.spectra import (
    KINDS,
    Asymmetry,
    Indefiniteness,
    asymmetry,
    check_kind,
    indefiniteness,
    symmetrize,
)


class InspectedMatrix(NamedTuple):
    """A square matrix, its name, its labels (or None) and its kind."""

    values: NDArray
    name: str
    labels: NDArray | None
    kind: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description, examples and arguments."""
    parser.description = """\
Describe a similarity or distance matrix (symmetric? indefinite? of what rank?), name the estimator
to try next, and draw its spectrum and its entries into one picture."""
    parser.epilog = """\
examples:
  mercerless inspect                             the built-in digit shapes
  mercerless inspect scores.csv                  a square matrix of similarities
  mercerless inspect D.npy --labels classes.txt  distances, drawn class by class
  mercerless inspect data.npz --array K_train    one of several arrays
  mercerless inspect D.npy --output page.html    a page with a map of the items
  mercerless inspect model.skops                 what a saved model is and expects"""
    parser.add_argument(
        "file",
        nargs="?",
        help="a square matrix or a triangle, in any format, or a saved model; - is standard input",
    )
    parser.add_argument("--array", metavar="NAME", help="the array of an .npz file to look at")
    parser.add_argument(
        "--labels", metavar="FILE", help="one label per row; an .npz file's own y is used"
    )
    parser.add_argument("--kind", choices=KINDS, help="what the entries are (guessed)")
    add_file_arguments(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        default="mercerless-inspect.png",
        help="the picture, or a page with a map of the items if it ends in .html (%(default)s)",
    )


def run(args: argparse.Namespace) -> None:
    """Read, describe, draw."""
    if args.file is not None and Path(args.file).suffix.lower() == ".skops":
        print("\n".join(describe_model(args.file)))
        return
    as_page = Path(args.output).suffix.lower() == ".html"
    output = _common.check_output(args.output, ".html" if as_page else ".png")
    matrix = read(args)
    n = len(matrix.values)
    # the matrix, its symmetric part, the kernel, and LAPACK's copy for the eigenvalues
    check_memory(
        4 * matrix.values.nbytes,
        f"Inspecting a {n} x {n} matrix",
        remedy="inspect a part of its rows",
    )
    if as_page:
        write_page(matrix, output)
        return
    try:
        report = draw(matrix, output)
        picture = str(output)
    except ImportError as error:
        report = indefiniteness(similarities(matrix))
        picture = f"none: {error}"
    print("\n".join(describe(matrix, report)))
    print(f"picture          {picture}")


def describe_model(path: str) -> list[str]:
    """Describe a saved model and its input, line by line, without loading it."""
    about = persistence.describe(path)
    expected = about["input"]
    lines = [f"model            {about['model']}", f"saved            {about['saved']}"]
    lines += [f"{name:<16} {version}" for name, version in about["versions"].items()]
    for name in ("columns", "names", "classes"):
        value = expected.get(name)
        if isinstance(value, list):
            shown = ", ".join(map(str, value[:20]))
            more = f", ... ({len(value)} in all)" if len(value) > 20 else ""
            lines.append(f"{name:<16} {shown}{more}")
        elif value is not None:
            lines.append(f"{name:<16} {value}")
    return lines


def write_page(matrix: InspectedMatrix, output: Path) -> None:
    """Write one page: facts about the matrix, a map of its items, odd items and the eigenvalues."""
    K = similarities(matrix)
    facts = describe(matrix, indefiniteness(K))
    classify = matrix.labels is not None and is_classes(matrix.labels)
    values = np.linalg.eigvalsh(K)[::-1]
    write_text(
        output,
        render_matrix(
            matrix.values, matrix.kind, matrix.name, matrix.labels, classify, facts, values
        ),
    )
    print("\n".join(facts))
    print(f"page             {output}")


def read(args: argparse.Namespace) -> InspectedMatrix:
    """Return the checked matrix to inspect, with its name, labels and kind."""
    if args.file is None:
        shapes = load_digit_shapes()
        values = shapes.D
        name = "digit shapes"
        labels = shapes.target
        ids = None
    else:
        values, name, labels, ids = read_matrix(
            args.file, args.array, args.format, args.sheet, args.kind
        )
    values = check_square(values, "The matrix", allow_nan=True)
    if len(values) < 2:
        raise ValueError("The matrix has one row; there must be at least two items to compare.")
    if np.isnan(values).any():
        done = fill_gaps(values)
        values = done.X
        print(f"missing entries: {done.n_filled} of {values.size} completed ({done.how})")
    if args.labels is not None:
        labels = read_labels(args.labels, len(values), ids)
        if len(labels) != len(values):
            raise ValueError(
                f"{args.labels!r} has {len(labels)} labels for a matrix of {len(values)} rows."
            )
    if labels is not None:
        values, labels = labeled_items(values, labels)
    kind = check_kind(values, args.kind or "auto", "The matrix", "--kind")
    return InspectedMatrix(values, name, labels, kind)


def check_matrix(table: CellTable) -> None:
    """Raise if a table has neither the shape of a matrix nor that of its triangle or of all pairs in one line."""
    n_rows, n_columns = table.frame.shape
    if 1 in (n_rows, n_columns) or n_columns in (n_rows, n_rows - 1) or table.ragged:
        return
    raise ValueError(
        f"{table.what} is a table of {n_rows} rows and {n_columns} columns, not a square matrix; "
        "'mercerless compare' takes tables and lists of pairs."
    )


def labeled_items(values: NDArray, labels: NDArray) -> tuple[NDArray, NDArray]:
    """Return the matrix and the labels of the items that have one, and print how many have none."""
    labeled = np.flatnonzero([not is_missing(label) for label in labels])
    if len(labeled) == len(labels):
        return values, labels
    print(f"left out: {len(labels) - len(labeled)} of {len(labels)} items (they have no label)")
    labels = labels[labeled]
    if labels.dtype == object:
        labels = labels.astype(str)
    return values[np.ix_(labeled, labeled)], labels


def read_matrix(
    file: str,
    array: str | None = None,
    form: str | None = None,
    sheet: str | None = None,
    kind: str | None = None,
) -> tuple[NDArray, str, NDArray | None, Sequence[str] | None]:
    """Return the matrix in a file, its name, and its labels and the names of its items, if any."""
    path = files.existing_file(file)
    name = "standard input" if file == "-" else path.name
    content = formats.read(path, form, sheet)
    if isinstance(content, Items):
        values = item_similarities(content.items, content.items)
        return values, f"edit similarities of {name}", None, content.ids
    if isinstance(content, Pairs):
        pairs = matrices.pair_matrix(content, kind or content.kind or "similarity")
        return pairs.X, name, None, pairs.ids
    if isinstance(content, CellTable):
        columns = list(map(str, content.frame.columns))
        label = next((one for one in columns if one.lower() in NAMES.labels), None)
        if content.frame.shape[0] == content.frame.shape[1]:
            label = None  # an item, such as the amino acid Y
        labels = None
        if label is not None:
            labels = parse_labels(content.text(label), files.name_of(path), content.none_is_missing)
        check_matrix(content.without([label]))
        values, ids = matrices.as_matrix(content.without([label]), gaps=True, kind=kind)
        return values, name, labels, ids
    key = arrays.find_matrix(content, path, array)
    what = files.name_of(path) if len(content) == 1 else f"{key} in {files.name_of(path)}"
    values = content[key]
    if values.ndim == 1 and values.dtype.kind in "biuf":
        values = matrices.from_condensed(values, what)
    values = arrays.as_real(values, what)
    target = arrays.find_labels(content)
    labels = None
    if target is not None and content[target].size == len(values):
        labels = content[target].ravel()
    return values, name if len(content) == 1 else f"{key} of {name}", labels, None


def similarities(matrix: InspectedMatrix) -> NDArray:
    """Return the symmetric similarity matrix whose spectrum is analyzed."""
    symmetric = symmetrize(matrix.values)
    return (
        symmetric
        if matrix.kind == "similarity"
        else conversion(matrix.kind).fit_transform(symmetric)
    )


def describe(matrix: InspectedMatrix, report: Indefiniteness) -> list[str]:
    """Describe the matrix, line by line."""
    n = len(matrix.values)
    directions = asymmetry(matrix.values)
    inertia = (
        f"{report.n_positive} positive, {report.n_negative} negative, "
        f"{report.n_zero} zero eigenvalues"
    )
    lines = [
        f"{matrix.name}: {n} x {n} {matrix.kind} matrix" + label_summary(matrix.labels),
        "symmetric        " + symmetry(directions.largest, matrix.values.dtype),
        f"rank             {report.n_positive + report.n_negative} of {n}",
        f"inertia          {inertia}",
        f"eigenvalues      from {report.smallest:.4g} to {report.largest:.4g}",
        f"negative mass    {100 * report.negative_mass:.1f} % of the sum of absolute eigenvalues",
        "definite         "
        + ("yes, positive semi-definite up to rounding" if report.is_psd else "no, indefinite"),
    ]
    suggestion, reason = advice(matrix, directions, report.is_psd)
    lines += [f"use next         {suggestion}", f"because          {reason}"]
    if matrix.kind != "similarity":
        power = "-D**2/2" if matrix.kind == "distance" else "-D/2"
        lines.insert(
            2,
            f"analyzed as      similarities {power}, centered "
            "(mercerless.spectra.DissimilarityKernel)",
        )
    return lines


def symmetry(amount: float, dtype: np.dtype) -> str:
    """Describe the symmetry of a matrix of this relative asymmetry."""
    if amount == 0.0:
        return "yes, exactly"
    if is_rounding(amount, dtype):
        return f"yes, up to rounding (max|K - K.T| is {amount:.1e} of max|K|)"
    return f"no, max|K - K.T| is {amount:.2g} of max|K|; its symmetric part is analyzed"


def label_summary(labels: NDArray | None) -> str:
    """Describe the labels."""
    if labels is None:
        return ""
    return f", {len(np.unique(labels))} classes" if is_classes(labels) else ", numeric target"


def is_classes(labels: NDArray) -> bool:
    """Whether labels are classes, by the rule of compare."""
    return guess_task(labels)[0] == "classification"


def advice(matrix: InspectedMatrix, directions: Asymmetry, is_psd: bool) -> tuple[str, str]:
    """Return one concrete suggestion and its reason."""
    classify = matrix.labels is None or is_classes(matrix.labels)
    name = "SimilarityClassifier" if classify else "SimilarityRegressor"
    arguments = f'kernel="precomputed", kind="{matrix.kind}"'
    if directions.norm > 0.1:
        return (
            f'mercerless.{name}({arguments}, direction="both")',
            "it learns from both directions",
        )
    if is_psd:
        model = f'{"SVC" if classify else "SVR"}(kernel="precomputed")'
        if matrix.kind != "similarity":
            model = f"make_pipeline(mercerless.spectra.{conversion(matrix.kind)}, {model})"
        suggestion = f"scikit-learn's {model}"
        reason = "any kernel machine is sound on this matrix"
    else:
        suggestion = f"mercerless.{name}({arguments})"
        reason = "it measures whether the negative part helps"
    if not is_rounding(directions.largest, matrix.values.dtype):
        suggestion += " on mercerless.spectra.symmetrize(matrix)"
    return suggestion, reason


def draw(matrix: InspectedMatrix, output: Path) -> Indefiniteness:
    """Write the spectrum and the ordered matrix side by side, complete or not at all; return the measures."""
    figure = import_optional("matplotlib.figure", extra="plot", what="Drawing").Figure(
        figsize=(12.5, 5.2), layout="constrained"
    )
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    spectrum = SpectrumDisplay.from_matrix(similarities(matrix), name=matrix.name, ax=left)
    title = f"The {matrix.kind} matrix"
    KernelMatrixDisplay.from_matrix(matrix.values, matrix.labels, name=title, ax=right)
    with replacing(output) as partial:
        figure.savefig(partial, dpi=150, format="png")
    return spectrum.report
