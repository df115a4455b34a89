"""Draw the pictures of the pages: python docs/images/make.py.

``digit-shapes.png`` is for the page Start. ``pipeline.svg`` is set into "The one idea"; its text and lines have the
color of the page around it, so that it can be read in the light and in the dark theme.

    python docs/images/make.py report      # after make docs, or as make picture

draws ``report.png`` of README and the first page: verdict, map and differences of the sample report, by Chromium.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from mercerless import KreinRidge
from mercerless.datasets import load_digit_shapes
from mercerless.inspection import KernelMatrixDisplay, SpectrumDisplay

FOLDER = Path(__file__).parent
BLUE = "#4C8DD6"
ORANGE = "#E07B39"
ICON = 72  # side of a small picture


def draw_digit_shapes(shapes):
    """Spectrum and matrix of the built-in data, side by side."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=[1.15, 1]
    )
    SpectrumDisplay.from_matrix(shapes.K, name="Digit shapes", ax=left)
    KernelMatrixDisplay.from_matrix(
        shapes.D, shapes.target, name="Distances between 400 handwritten digits", ax=right
    )
    figure.savefig(FOLDER / "digit-shapes.png", dpi=110)


def rectangle(x, y, width, height, color, opacity=1.0):
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} fill="{color}" fill-opacity="{opacity:.2f}"/>'


def matrix_icon(D):
    """A small matrix: the darker, the closer."""
    cell = ICON / len(D)
    likeness = 1 - D / D.max()
    parts = []
    for i, j in np.ndindex(*D.shape):
        parts.append(rectangle(j * cell, i * cell, cell, cell, BLUE, 0.1 + 0.9 * likeness[i, j]))
    return parts


def spectrum_icon(K):
    """Eigenvalues of both signs, as bars."""
    values = np.sort(np.linalg.eigvalsh(K))[::-1]
    heights = np.sign(values) * np.sqrt(np.abs(values) / np.abs(values).max())
    width = ICON / len(values)
    zero = ICON * heights.max() / (heights.max() - heights.min())
    scale = ICON / (heights.max() - heights.min())
    parts = []
    for k, height in enumerate(heights * scale):
        color = BLUE if height > 0 else ORANGE
        top = zero - max(height, 0.0)
        parts.append(rectangle(k * width, top, 0.8 * width, abs(height), color))
    return parts


def solver_icon(coefficients):
    """The coefficients of a fit, as stems around zero."""
    heights = 0.46 * ICON * coefficients / np.abs(coefficients).max()
    step = ICON / len(heights)
    parts = [f'<path d="M0 {ICON / 2} H{ICON}" stroke="currentColor" stroke-opacity="0.5"/>']
    for k, height in enumerate(heights):
        x = (k + 0.5) * step
        color = BLUE if height > 0 else ORANGE
        parts.append(
            f'<path d="M{x:.1f} {ICON / 2} V{ICON / 2 - height:.1f}" stroke="{color}" stroke-width="3"/>'
        )
    return parts


def selection_icon(n_folds=5):
    """Folds: in every row another part is held out."""
    cell = ICON / n_folds
    parts = []
    for i, j in np.ndindex(n_folds, n_folds):
        color = ORANGE if i == j else BLUE
        opacity = 1.0 if i == j else 0.3
        size = 0.82 * cell
        parts.append(rectangle(j * cell, i * cell, size, size, color, opacity))
    return parts


def estimator_icon():
    """The methods of scikit-learn's interface."""
    lines = ["fit", "predict", "score"]
    style = 'font-family="monospace" font-size="12.5" fill="currentColor"'
    return [
        f'<text x="-2" y="{18 + 24 * k}" {style}>.{line}()</text>' for k, line in enumerate(lines)
    ]


def box(top, icon, title, lines):
    """One step: a frame, a small picture, a name and what it does."""
    parts = [
        f'<g transform="translate(1 {top})">',
        '<rect width="438" height="96" rx="8" fill="currentColor" fill-opacity="0.05" stroke="currentColor"'
        ' stroke-opacity="0.35"/>',
        '<g transform="translate(14 12)">',
        *icon,
        "</g>",
        f'<text x="106" y="32" font-size="18" font-weight="600" fill="currentColor">{title}</text>',
    ]
    for k, line in enumerate(lines):
        parts.append(
            f'<text x="106" y="{56 + 20 * k}" font-size="14" fill="currentColor">{line}</text>'
        )
    return [*parts, "</g>"]


def arrow(top, label):
    """From one step to the next, with what is handed over."""
    line = f'<path d="M220 {top} v24 m-5 -7 l5 7 l5 -7" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    text = f'<text x="234" y="{top + 17}" font-size="13" font-style="italic" fill="currentColor">{label}</text>'
    return [line, text]


def draw_pipeline(shapes):
    """The five things that a fit goes through, each with a small picture made from real digits."""
    order = np.argsort(shapes.target[:60], kind="stable")[::4]
    D = shapes.D[np.ix_(order, order)]
    K = shapes.K[np.ix_(order, order)]
    is_even = shapes.target[order] % 2 == 0
    machine = KreinRidge("precomputed", alpha_positive=0.1, alpha_negative=0.1).fit(K, is_even)
    steps = [
        (
            matrix_icon(D),
            "Kernel",
            ["compares items: your function, a named", "similarity, or a matrix"],
        ),
        (
            spectrum_icon(K),
            "Spectra",
            ["describe the matrix: symmetric?", "negative eigenvalues? how many?"],
        ),
        (
            solver_icon(np.ravel(machine.dual_coef_)),
            "Solver",
            ["turns matrices into coefficients, and", "certifies how exact they are"],
        ),
        (
            selection_icon(),
            "Selection",
            ["chooses among solutions by their errors", "on items they have not seen"],
        ),
        (
            estimator_icon(),
            "Estimator",
            ["combines one of each, with", "the interface of scikit-learn"],
        ),
    ]
    labels = ["a matrix", "what the matrix is", "many solutions", "the best ones, weighted"]
    parts = []
    for k, (icon, title, lines) in enumerate(steps):
        top = 1 + 126 * k
        parts += box(top, icon, title, lines)
        if k < len(labels):
            parts += arrow(top + 98, labels[k])
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 440 604" role="img" font-family="sans-serif"'
        ' style="display: block; width: 100%; max-width: 440px; margin: 1rem auto">'
    )
    title = "<title>From a kernel to an estimator: kernel, spectra, solver, selection, estimator</title>"
    text = "\n".join([head, title, *parts, "</svg>"]) + "\n"
    (FOLDER / "pipeline.svg").write_text(text, encoding="utf-8")


# In the picture the map and the differences are beside each other, and nothing else of the report is shown.
SHOWN = ("The items", "Accuracy, and the difference from the recommended")
PICTURE_STYLE = """<style>
body { max-width: none; padding: 1rem; }
main { max-width: none; display: grid; grid-template-columns: 4fr 7fr; gap: 1rem 2.5rem; padding: 1rem 2rem; }
main > * { margin: 0; padding-bottom: 0; }
header, section.verdict { grid-column: 1 / -1; }
header p { max-width: none; }
section.verdict p:first-of-type { font-size: 1.05rem; }
section { display: none; }
section.verdict, section.shown { display: block; }
section.shown h2 { margin-top: 0; font-size: 1.1rem; }
section.shown > p, section.shown figcaption, section.verdict p:nth-of-type(n + 3) { display: none; }
</style>"""


def draw_report(width=1200, height=767):
    """Screenshot of parts of the sample report."""
    page = (FOLDER.parent / "_extra" / "sample-report.html").read_text(encoding="utf-8")
    for title in SHOWN:
        page, found = re.subn(
            rf"<section>(\s*<h2>{re.escape(title)})", r"<section class=shown>\1", page
        )
        if found != 1:
            raise ValueError(f"the report has no section {title!r}")
    page = page.replace("</head>", PICTURE_STYLE + "</head>")
    with tempfile.TemporaryDirectory() as folder:
        excerpt = Path(folder) / "excerpt.html"
        excerpt.write_text(page, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += [f"--window-size={width},{height}", f"--user-data-dir={folder}/profile"]
        options += [f"--screenshot={FOLDER / 'report.png'}", excerpt.as_uri()]
        subprocess.run(["chromium", *options], check=True, capture_output=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["report"]:
        draw_report()
    else:
        shapes = load_digit_shapes()
        draw_digit_shapes(shapes)
        draw_pipeline(shapes)
