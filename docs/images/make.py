"""Draw the pictures that are kept in the repository; look at them before you commit them.

python docs/images/make.py recipes    # of the first page, from benchmarks/results/similarity_recipes.csv
python docs/images/make.py report     # the top of the sample report (make docs writes it), light and dark
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER.parents[1] / "benchmarks" / "results"
REPORT = FOLDER.parent / "_extra" / "sample-report.html"
GRAY, ORANGE = "#808890", "#e8803b"


def draw_recipes():
    """A line per set, a dot per recipe; gray text can be read on a light and on a dark page."""
    table = pd.read_csv(RESULTS / "similarity_recipes.csv").drop(columns="commit")
    table = table[table["set"] != "average"][::-1]
    default = table.pop("SimilarityClassifier")
    height = np.arange(len(table))
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "", "font.family": "sans-serif"})
    figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
    for name in table.columns[1:]:
        ax.scatter(table[name], height, color=GRAY, alpha=0.6, s=28, lw=0)
    ax.scatter(default, height, color=ORANGE, s=64, zorder=3)
    ax.hlines(height, 40, 100, color=GRAY, alpha=0.25, lw=1, zorder=0)
    ax.set_yticks(height, table["set"], color=GRAY)
    ax.set_xlabel("correct on new items, per cent", color=GRAY)
    ax.set_xlim(44, 101)
    ax.tick_params(colors=GRAY, left=False)
    ax.spines[:].set_visible(False)
    labels = ["seven recipes, tuned", "SimilarityClassifier, defaults"]
    dots = [
        ax.scatter([], [], color=color, s=size, alpha=alpha)
        for color, size, alpha in ((GRAY, 28, 0.6), (ORANGE, 64, 1))
    ]
    figure.legend(dots, labels, loc="outside upper right", ncols=2, frameon=False, labelcolor=GRAY)
    figure.savefig(FOLDER / "recipes.svg", transparent=True, metadata={"Date": None})


def draw_report(theme, width=1200, height=900):
    """One screenshot; Chromium calls the dark scheme 0 and the light one 1."""
    with tempfile.TemporaryDirectory() as profile:
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--blink-settings=preferredColorScheme={0 if theme == 'dark' else 1}",
            f"--window-size={width},{height}",
            f"--user-data-dir={profile}",
            f"--screenshot={FOLDER / f'report-{theme}.png'}",
        ]
        subprocess.run(["chromium", *options, REPORT.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    if "recipes" in sys.argv[1:]:
        draw_recipes()
    if "report" in sys.argv[1:]:
        draw_report("light")
        draw_report("dark")
