"""``mercerless inspect``: describe a matrix or a saved model, suggest an estimator, and draw the matrix."""

import argparse
from typing import TYPE_CHECKING

from mercerless.commands import shared
from mercerless.comparison.read.files import check_file
from mercerless.comparison.read.options import MATRICES

if TYPE_CHECKING:
    from mercerless.commands.matrices import NamedMatrix


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description, examples and arguments."""
    parser.usage = "mercerless inspect DATA [options]"
    parser.description = """\
Describe a similarity or distance matrix (symmetric? indefinite? of what rank?), name the estimator
to try next, and draw its spectrum and its entries into one picture; or describe a saved model."""
    parser.epilog = """\
examples:
  mercerless inspect                        the built-in digit shapes
  mercerless inspect scores.csv             a square matrix of similarities
  mercerless inspect data.npz --array K     one of several arrays
  mercerless inspect model.skops            what a saved model is and expects"""
    parser.add_argument("file", nargs="?", help="a matrix, pairs, strings, or a saved model")
    parser.add_argument("--kind", choices=MATRICES, help="what the entries are")
    shared.add_file_arguments(parser)
    parser.add_argument(
        "-o", "--output", metavar="PNG", default="mercerless-inspect.png", help="(%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Read, describe, draw."""
    if args.file is not None and args.file.lower().endswith(".skops"):
        check_file(args.file)
        print("\n".join(describe_model(args.file)))
        return 0
    options = shared.read_options(args)
    if args.file is not None:
        check_file(args.file)
    output = shared.check_output(args.output, ".png", args.file)
    from mercerless.commands.matrices import NamedMatrix, read_matrix
    from mercerless.core.optional import import_optional
    from mercerless.inspection import KernelMatrixDisplay, SpectrumDisplay

    if args.file is None:
        from mercerless.datasets import load_digit_shapes

        matrix = NamedMatrix("digit shapes", load_digit_shapes().D, "distance")
    else:
        matrix = read_matrix(args.file, options)
    print("\n".join(describe(matrix)))
    try:
        figures = import_optional("matplotlib.figure", extra="plot", what="Drawing")
    except ImportError as error:
        print(f"picture          none: {error}")
        return 0
    figure = figures.Figure(figsize=(12.5, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    SpectrumDisplay.from_matrix(matrix.similarities, name=matrix.name, ax=left)
    KernelMatrixDisplay.from_matrix(matrix.values, None, name=f"The {matrix.kind} matrix", ax=right)
    figure.savefig(output, dpi=150)
    print(f"picture          {output}")
    return 0


def describe_model(path: str) -> list[str]:
    """Describe a saved model and its input, line by line, without loading it."""
    from mercerless import persistence

    about = persistence.describe(path)
    lines = [f"model            {about['model']}", f"saved            {about['saved']}"]
    lines += [f"{name:<16} {version}" for name, version in about["versions"].items()]
    for name in ("columns", "names", "classes"):
        value = about["input"].get(name)
        if isinstance(value, list):
            more = f", ... ({len(value)} in all)" if len(value) > 20 else ""
            value = ", ".join(map(str, value[:20])) + more
        if value is not None:
            lines.append(f"{name:<16} {value}")
    return lines


def describe(matrix: "NamedMatrix") -> list[str]:
    """Describe a matrix, line by line."""
    from mercerless.spectra import asymmetry, indefiniteness

    directions = asymmetry(matrix.values)
    report = indefiniteness(matrix.similarities)
    n = len(matrix.values)
    signs = f"{report.n_positive} positive, {report.n_negative} negative, {report.n_zero} zero"
    is_symmetric = directions.largest < 1e-9
    symmetric = (
        "yes" if is_symmetric else f"no, up to {directions.largest:.2g} of the largest entry"
    )
    suggestion, reason = advise(matrix.kind, directions.norm, report.is_psd)
    return [
        f"{matrix.name}: {n} x {n} {matrix.kind} matrix",
        f"symmetric        {symmetric}",
        f"rank             {report.n_positive + report.n_negative} of {n}",
        f"eigenvalues      {signs}; from {report.smallest:.4g} to {report.largest:.4g}",
        f"negative mass    {100 * report.negative_mass:.1f} % of the sum of absolute eigenvalues",
        f"definite         {'yes' if report.is_psd else 'no, indefinite'}",
        f"use next         {suggestion}",
        f"because          {reason}",
    ]


def advise(kind: str, asymmetry: float, is_psd: bool) -> tuple[str, str]:
    """One concrete suggestion and its reason."""
    arguments = f'kernel="precomputed", kind="{kind}"'
    if asymmetry > 0.1:
        directed = f'mercerless.SimilarityClassifier({arguments}, direction="both")'
        return directed, "it learns from both directions"
    if is_psd and kind == "similarity":
        return 'sklearn.svm.SVC(kernel="precomputed")', "any kernel machine is sound on this matrix"
    return (
        f"mercerless.SimilarityClassifier({arguments})",
        "it measures whether the negative part helps",
    )
