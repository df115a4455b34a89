"""The tables and figures that pages show, each made from rows of ``benchmarks/**/results/*.csv`` by one small function.

The function `krein_table1` makes ``<!-- table: krein_table1 -->``; the numbers within sentences are the entries of
`figures`. ``python -m benchmarks pages`` writes both into the pages.
"""

import importlib.util
import json
import re
import sys
from decimal import ROUND_HALF_UP, Decimal
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata, wilcoxon
from scipy.stats import t as student

from benchmarks.claims import REDUCED

HERE = Path(__file__).parent


def results(name):
    """The rows of ``papers/krein_table1``, say."""
    group, file = name.split("/")
    path = HERE / group / "results" / f"{file}.csv"
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is not there: run what writes it, see python -m benchmarks list"
        )
    return pd.read_csv(path)


def paper(stem):
    return pd.read_csv(HERE / "papers" / f"{stem}_paper.csv", dtype={"table": str})


def cell(rows, column, **where):
    """The one value of a column in the row where the other columns have these values."""
    for key, value in where.items():
        rows = rows[rows[key] == value]
    if len(rows) != 1:
        raise LookupError(f"{len(rows)} rows have {where}, not one")
    return rows[column].iloc[0]


def markdown(header, rows):
    """A Markdown table; the cells are words already."""
    lines = [list(header), ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def number(value, digits):
    """Rounded as people do, 76.25 to 76.3; empty for a missing value."""
    if pd.isna(value):
        return ""
    return str(Decimal(str(value)).quantize(Decimal(10) ** -digits, rounding=ROUND_HALF_UP))


def short(value, digits):
    """``.9983`` for 0.9983."""
    return re.sub(r"^(-?)0\.", r"\1.", number(value, digits))


def beside(ours, theirs, digits=1):
    """``8.6 (9.0)``: ours, and the paper's in brackets where it has one."""
    return number(ours, digits) + (
        "" if pd.isna(ours) or pd.isna(theirs) else f" ({number(theirs, digits)})"
    )


def span(counts):
    """One number, or the least and the most."""
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def listed(words):
    """``a, b and c``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


# ---------------------------------------------------------------------------------------------------- krein
def krein_table1():
    rows = results("papers/krein_table1")
    methods = ["krein", "flip", "clip", "shift", "square", "omcs"]
    lines = []
    for kernel in ("gaussian", "sigmoid", "ard_sigmoid"):
        for n, group in rows[rows.kernel == kernel].groupby("n"):
            group = group.set_index("method").loc[methods]
            name = f"{kernel}, n = {n}" + (" (one draw)" if group.draws.iloc[0] == 1 else "")
            lines.append([name, *map(beside, group.rmse, group.paper)])
    return markdown(["matrix", *methods], lines)


def krein_table3():
    rows = results("papers/krein_table3")
    kernels = ["sigmoid", "rl-sigmoid", "delta-gauss", "epanechnikov", "gauss", "rl-gauss"]
    sets = [
        "ionosphere",
        "breastcancer",
        "australian",
        "pima",
        "yacht",
        "pm10",
        "cps_85_wages",
        "airfoil",
    ]
    lines = []
    for name in [*sets, *sorted(set(rows["set"]) - set(sets))]:
        group = rows[rows["set"] == name].set_index("kernel").loc[kernels]
        lines.append([f"{name} ({group.n.iloc[0]})", *map(beside, group.error, group.paper)])
    return markdown(["set (rows used)", *kernels], lines)


def krein_eigenvalues():
    rows = results("papers/krein_figures").query("part == 'figure 1'")
    header = ["kernel", "largest eigenvalue", "smallest", "positive", "negative", "eta1", "eta2"]
    formats = ["{}", "{:g}", "{:g}", "{:.0f}", "{:.0f}", "{:.2f}", "{:.2f}"]
    return markdown(
        header, [[f.format(v) for f, v in zip(formats, row[1:])] for row in rows.values.tolist()]
    )


def krein_rates():
    rows = results("papers/krein_figures").query("part == 'figure 2'")
    words = {"<f, f>": ", `<f, f>`", "||f||^2": ", nonnegative penalty"}
    lines = []
    for _, kernel, exponent, error, _, _, theirs, _ in rows.values.tolist():
        for old, new in words.items():
            kernel = kernel.replace(f" {old}", new)
        lines.append([kernel, f"{exponent:.3f} ± {error:.3f}", f"{theirs:.2f}"])
    return markdown(["kernel and penalty, alpha = 1/n", "observed exponent", "paper"], lines)


DRAWN, OTHERS = ("delta-gauss", "log"), "the same, others to test"


def krein_settings():
    rows = (
        results("papers/krein_rates")
        .set_index(["features", "sample", "penalty", "kernel"])
        .exponent
    )
    lines = []
    for sample in dict.fromkeys(rows.index.get_level_values(1)):
        for penalty in ("indefinite", "nonnegative"):
            pairs = []
            for features in ("unit", "raw", "standard", "onehot"):
                found = (rows[features, sample, penalty, kernel] for kernel in DRAWN)
                pairs.append(", ".join(f"{v:.2f}" for v in found))
            lines.append([sample, penalty, *pairs])
    encodings = ["scaled to [0, 1]", "raw", "standardized", "one-hot"]
    return markdown(
        ["training rows", "penalty", *(f"{name}: delta-gauss, log" for name in encodings)], lines
    )


def krein_landmarks():
    rows = results("speed/krein").set_index("measure").value
    many = sorted(
        {int(m[1]) for name in rows.index if (m := re.search(r", (\d+) landmarks", name))}
    )
    lines = []
    for m in many:
        seconds, memory, error = (
            rows[f"n = 50000, {m} landmarks: {what}"]
            for what in ("CPU seconds", "peak memory in GB", "test error")
        )
        lines.append([m, f"{seconds:.1f}", f"{memory:.2f}", f"{error:.3f}"])
    return markdown(
        ["landmarks", "CPU seconds", "peak memory in GB", "test error (noise 0.1)"], lines
    )


def krein_figures():
    speed = results("speed/krein").set_index("measure").value
    rows = results("papers/krein_table3")
    theirs = paper("krein").query("table == '3'").set_index(["row", "column"])
    deviation = np.array(
        [theirs.deviation.get(key, np.nan) for key in zip(rows["set"], rows.kernel)]
    )
    settings = (
        results("papers/krein_rates")
        .set_index(["features", "sample", "penalty", "kernel"])
        .exponent
    )
    noisy = settings.xs("122 rows with noise", level="sample")
    above = rows[rows.error > rows.paper + deviation]["set"].value_counts()
    return {
        "krein_cells_above": " and ".join(f"{name} ({count})" for name, count in above.items()),
        "krein_rate_noisy": f"{noisy[:, :, 'delta-gauss'].max():.2f}",
        "krein_rate_pair": ", ".join(
            f"{settings['unit', OTHERS, 'nonnegative', k]:.2f}" for k in DRAWN
        ),
        "krein_rate_standard": ", ".join(
            f"{settings['standard', OTHERS, 'indefinite', k]:.2f}" for k in DRAWN
        ),
        "krein_settings": f"{speed['510 settings / one eigh per fold']:.2f}",
        "krein_search": f"{speed['GridSearchCV(KernelRidge), 510 settings / one eigh per fold']:.0f}",
        "krein_gradient": f"{speed['gradient, no constraint / eigh']:.2f}",
        "krein_gradient_sphere": f"{speed['gradient, sphere / eigh']:.2f}",
        "krein_cells": f"{len(rows)}",
        "krein_cells_within": f"{np.sum(rows.error <= rows.paper + deviation)}",
        "krein_cells_below": f"{np.sum(rows.error <= rows.paper)}",
        "krein_eta": f"{cell(results('papers/krein_figures'), 'eta2', part='figure 1', kernel='delta-gauss'):.2f}",
    }


# ---------------------------------------------------------------------------------------------------- dank
@cache
def script(name):
    """papers/dank.py, say, which says what its sets are."""
    sys.path.insert(0, str(HERE / "papers"))
    try:
        spec = importlib.util.spec_from_file_location(
            f"papers_{name}", HERE / "papers" / f"{name}.py"
        )
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(HERE / "papers"))
    return module


BEYOND = ["plain", "adapted", "scaled plain", "hyper"]


def dank_ratios(column, against, names=None):
    """Logarithms of the ratios of two methods' mean errors over sets, errors below 0.001 taken as that."""
    means = (
        results("papers/dank_beyond")
        .groupby(["set", "method"])
        .error.mean()
        .unstack()
        .clip(lower=1e-3)
    )
    means = means if names is None else means.loc[[n for n in means.index if n in names]]
    return np.log(means[column] / means[against])


def dank_beyond():
    lines = []
    for name, group in results("papers/dank_beyond").groupby("set"):
        table = group.pivot(index="split", columns="method", values="error")[BEYOND]
        difference = (table.adapted - table.plain).to_numpy()
        wins = f"{np.sum(difference < 0)}-{np.sum(difference > 0)}"
        ratio = f"{np.exp(dank_ratios('adapted', 'plain')[name]):.2f}"
        means = [f"{value:.4f}" for value in table.mean()]
        lines.append([name, *means, ratio, wins, f"{script('dank').corrected_t(difference):.3f}"])
    names = ["plain, tuned", "DANK, searched", "scaled plain", "hyper"]
    return markdown(["set", *names, "ratio", "wins-losses", "p"], lines)


def dank_groups():
    """Names of the sets, by group of the summary."""
    dank, names = script("dank"), sorted(set(results("papers/dank_beyond")["set"]))
    return {
        "all": names,
        "classification": [n for n in names if n in dank.ALL_CLASSIFICATION],
        "regression": [n for n in names if n in dank.ALL_REGRESSION],
        "never tried": [n for n in names if n not in dank.SEEN + dank.TRIED],
    }


def dank_summary():
    groups = dank_groups()
    pairs = {
        "DANK against plain": ("adapted", "plain"),
        "hyper against plain": ("hyper", "plain"),
        "scaled plain against plain": ("scaled plain", "plain"),
        "DANK against scaled plain": ("adapted", "scaled plain"),
    }
    lines = []
    for words, pair in pairs.items():
        cells = []
        for names in groups.values():
            ratio = dank_ratios(*pair, names)
            p = wilcoxon(ratio).pvalue
            p = f"{p:.2f}" if p >= 0.01 else f"{p:.1g}"
            cells.append(
                f"{np.exp(ratio.mean()):.2f}, {np.sum(ratio < 0)}-{np.sum(ratio > 0)}, {p}"
            )
        lines.append([words, *cells])
    columns = [
        f"all {len(groups['all'])}",
        *(f"{len(v)} {k}" for k, v in groups.items() if k != "all"),
    ]
    return markdown(
        ["over sets: geometric mean ratio, better-worse, Wilcoxon's p", *columns], lines
    )


DANK_SETS = ["heart", "monks1", "monks2", "monks3", "sonar", "fertility", "wine"]


def dank_table1():
    means = results("papers/dank_table1").groupby(["set", "method"]).accuracy.mean()
    theirs = paper("dank").query("table in ('1', '2')").set_index(["row", "column"]).value
    ours = ["svm", "mkl", "LogDet", "BMKL", "RF", "rule", "f0"]
    papers = ["svm", "mkl", "LogDet", "BMKL", "RF", "KNPL", "dank"]
    header = "set,SVM,MKL,LogDet,BMKL,RF,DANK rule,DANK f0,paper: SVM,MKL,LogDet,BMKL,RF,KNPL,DANK".split(
        ","
    )
    lines = []
    for name in DANK_SETS:
        printed = [number(theirs.get((name, m), np.nan), 1) for m in papers]
        lines.append([name, *(number(means.get((name, m), np.nan), 1) for m in ours), *printed])
    return markdown(header, lines)


def dank_table5():
    rows = results("papers/dank_table5")
    means = rows.groupby(["set", "rank_penalty"]).mean(numeric_only=True)
    known = paper("dank")
    accuracy = known.query("table == '5'").set_index(["row", "column"]).value
    ranks = known.query("table == '5-rank'").set_index(["row", "column"]).value
    penalties, printed = sorted(set(rows.rank_penalty)), ["0", "0.01", "1"]
    lines = []
    for name in ("heart", "monks1", "monks3", "sonar", "wine", "fertility"):
        ours = [
            f"{means.accuracy_f0[name, p]:.1f} ({means['rank'][name, p]:.0f})" for p in penalties
        ]
        theirs = [f"{accuracy[name, p]:.1f} ({ranks[name, p]:.0f})" for p in printed]
        lines.append([name, *ours, *theirs])
    return markdown(
        ["set", *(f"{p:g}" for p in penalties), *(f"paper: {p}" for p in printed)], lines
    )


def dank_table6():
    means = results("papers/dank_table6").groupby(["set", "method"]).relative_mse.mean()
    theirs = paper("dank").query("table == '6'").set_index(["row", "column"]).value
    lines = []
    for name in ("bodyfat", "pyrim", "housing", "mpg", "mg", "cpusmall"):
        ours = [f"{means[name, m]:.3f}" for m in ("svr", "rule", "f0")]
        lines.append([name, *ours, *(f"{theirs[name, m]:.3f}" for m in ("svr", "dank"))])
    return markdown(["set", "SVR", "DANK, rule", "DANK, f0", "paper: SVR", "paper: DANK"], lines)


def dank_speed():
    moons, large = (
        results("speed/dank_moons").set_index("method"),
        results("speed/dank_ijcnn1").set_index("method"),
    )
    low, none, big = (
        moons.loc["rank_penalty=0.01"],
        moons.loc["rank_penalty=0"],
        large.loc["rank_penalty=0.01"],
    )
    first = f"{low.ratio:.1f} (`rank_penalty=0.01`), {none.ratio:.1f} (0)"
    return markdown(
        ["", "plain machine", "DANK", "outer steps", "paper"],
        [
            ["moons, 2000 rows", 1, first, f"{low.outer_steps:.0f}", ""],
            [
                "ijcnn1, 49,990 rows",
                1,
                f"{big.ratio:.2f}",
                f"{big.outer_steps:.0f}",
                "255 (exact), 5.1 (50 parts)",
            ],
        ],
    )


NESTEROV, PROJECTED = (
    f"{method}, paper's L: gradients" for method in ("nesterov", "projected gradient")
)
CLOWNS = ("tuned sigma", "four times the tuned sigma")


def dank_figures():
    ratio, fresh = (
        dank_ratios("adapted", "plain"),
        dank_ratios("adapted", "plain", dank_groups()["never tried"]),
    )
    large = results("speed/dank_ijcnn1").set_index("method")
    drawn = results("papers/dank_figures").set_index("quantity").value
    errors = results("papers/dank_beyond").set_index(["method", "set", "split"]).error
    gains = (errors["adapted"] - errors["plain"]).groupby("set")
    significant = [
        name for name, gain in gains if script("dank").corrected_t(gain.to_numpy()) < 0.05
    ]
    numbers = results("papers/dank_table6").groupby(["set", "method"]).relative_mse.mean().unstack()
    worse = numbers.index[numbers.f0 >= numbers.svr]
    clowns = {what: 100 * abs(drawn[f"{what}: svm"] - drawn[f"{what}: f0"]) for what in CLOWNS}
    screened = (
        drawn["ijcnn1: screened non-support vectors"]
        + drawn["covtype: screened non-support vectors"]
    )
    return {
        "dank_significant": " and ".join(significant),
        "dank_adaptation": f"{100 * (1 - np.exp(dank_ratios('adapted', 'scaled plain').mean())):.0f}",
        "dank_table6_sets": f"{len(numbers)}",
        "dank_table6_better": f"{len(numbers) - len(worse)}",
        "dank_table6_worse": " and ".join(worse),
        "dank_clowns": number(clowns[CLOWNS[0]], 2),
        "dank_clowns_wide": number(clowns[CLOWNS[1]], 2),
        "dank_projected": f"{drawn[PROJECTED]:.0f}",
        "dank_gap": f"{drawn['ours: final gap']:.0e}",
        "dank_screened": "none of the" if screened == 0 else f"{screened:.0f}",
        "dank_better": f"{np.sum(ratio < 0)}",
        "dank_sets": f"{len(ratio)}",
        "dank_ratio": f"{np.exp(ratio.mean()):.2f}",
        "dank_median": f"{np.exp(ratio.median()):.2f}",
        "dank_fresh_sets": f"{len(fresh)}",
        "dank_fresh_p": f"{wilcoxon(fresh).pvalue:.2f}",
        "dank_peak": f"{large.seconds['peak memory, GB']:.2f}",
        "dank_accuracy": f"{100 * large.accuracy['rank_penalty=0.01']:.2f}",
        "dank_plain_accuracy": f"{100 * large.accuracy['plain machine']:.2f}",
        "dank_nesterov": f"{drawn[NESTEROV]:.0f}",
        "dank_nesterov_tight": f"{drawn['nesterov, tight L: gradients']:.0f}",
        "dank_projected_tight": f"{drawn['projected gradient, tight L: gradients']:.0f}",
        "dank_products": f"{drawn['ours: products']:.0f}",
        "dank_step": f"{drawn['step: svr']:.4f} against {drawn['step: f0']:.4f}",
        "dank_surface": f"{drawn['surface: svr']:.4f} against {drawn['surface: f0']:.4f}",
    }


# ---------------------------------------------------------------------------------------------------- hyper
def hyper_table1():
    lines = []
    rows = results("papers/hyper_table1")
    most = rows.splits.max()
    for row in rows.itertuples():
        known, fewer = (
            row.method == "known",
            f" ({row.splits} split{'s' * (row.splits > 1)})" if row.splits < most else "",
        )
        errors = ["", ""] if known else [f"{row.root_error:.3f}", number(row.paper_rmse, 3)]
        lines.append(
            [
                row.kernel,
                row.data + fewer,
                row.method,
                *errors,
                f"{row.accuracy_test:.1f}",
                number(row.paper_accuracy, 1),
            ]
        )
    return markdown(["kernel", "data", "method", "error", "paper", "accuracy", "paper"], lines)


def hyper_table2():
    rows = results("papers/hyper_table2").set_index(["data", "method"])
    methods = [
        "SVM-CV",
        "alignment",
        "uniform",
        "MIKL",
        "ridge-gaussian",
        "svr-gaussian",
        "ridge-wishart",
        "svr-wishart",
    ]
    methods.append("ridge-gaussian-krein")
    first = ["fertility", "australian", "wine", "sonar", "heart"]
    lines = []
    for name in [*first, *sorted(set(rows.index.get_level_values(0)) - set(first))]:
        cells = [rows.loc[(name, m)] if (name, m) in rows.index else None for m in methods]
        once = " (one split)" if rows.loc[name].splits.max() == 1 else ""
        lines.append(
            [name + once, *("" if c is None else beside(c.accuracy, c.paper) for c in cells)]
        )
    return markdown(["data", *methods], lines)


def hyper_table3():
    lines = []
    for r in results("papers/hyper_table3").itertuples():
        theirs = (
            ""
            if pd.isna(r.paper_accuracy)
            else f"{r.paper_accuracy:.2f} in {r.paper_seconds:.0f} s"
        )
        lines.append(
            [
                r.data,
                r.rows,
                r.test_rows,
                r.method,
                f"{r.accuracy:.2f}",
                f"{r.cpu_seconds:.0f}",
                theirs,
            ]
        )
    return markdown(
        ["data", "training rows", "test rows", "method", "accuracy", "CPU seconds", "paper"], lines
    )


def hyper_regression():
    rows = results("papers/hyper_regression").set_index(["data", "method"])
    lines = []
    for name in dict.fromkeys(rows.index.get_level_values(0)):
        svr, ridge, ours = (
            rows.loc[(name, m)] for m in ("SVR, tuned", "kernel ridge, tuned", "HyperRegressor")
        )
        r2 = [f"{r.r2:.3f}" for r in (svr, ridge, ours)]
        chosen = f"{ours.learned_chosen:.0f} of {ours.splits:.0f}"
        lines.append(
            [
                name,
                int(ours.train_rows),
                *r2,
                chosen,
                f"{svr.cpu_seconds:.0f}",
                f"{ours.cpu_seconds:.0f}",
            ]
        )
    names = [
        "SVR, tuned",
        "kernel ridge, tuned",
        "HyperRegressor",
        "learned kernel chosen",
        "CPU s, SVR",
        "CPU s, Hyper",
    ]
    return markdown(["data", "rows", *names], lines)


def hyper_extension():
    rows = results("papers/hyper_extension")
    methods = [
        "tensor",
        "tensor, 50 % known",
        "bilinear ridge",
        "nearest neighbor",
        "gaussian hyper-ridge",
    ]
    rows = rows.set_index(["similarity", "method"])
    lines = []
    for name in dict.fromkeys(rows.index.get_level_values(0)):
        cells = (rows.loc[(name, m)] for m in methods)
        lines.append([name, *(f"{c.test_train:.3f} / {c.test_test:.3f}" for c in cells)])
    return markdown(["similarity", *methods], lines)


def hyper_speed():
    lines = []
    for row in results("speed/hyper").dropna(subset="target").itertuples():
        lines.append([row.what, row.other, f"{row.ratio:.0f}"])
    return markdown(["what", "against", "ratio"], lines)


def hyper_figures():
    rows = results("papers/hyper_figure2").query("v == 1").set_index(["pairs", "method"]).error
    digits = results("papers/hyper_figure3").groupby("method").accuracy.mean()
    tensor = results("speed/hyper").set_index("part").difference["low_rank"]
    numbers = {
        f"hyper_{m.split()[0]}_{n}": f"{rows[n, m]:.2g}"
        for n in (36, 78)
        for m in ("grid", "random pairs")
    }
    names = {
        "SVC": "svc",
        "DANK, reciprocal": "reciprocal",
        "DANK, inductive": "inductive",
        "DANK, hyper": "extended",
    }
    numbers |= {
        f"hyper_digits_{short_name}": f"{digits[name]:.1f}" for name, short_name in names.items()
    }
    log = results("papers/hyper_table1").query("kernel == 'log' and method != 'known'")
    paper_form, tensors = log[log.method != "tensor"], log[log.method == "tensor"]
    fertility = paper_form[paper_form.data == "fertility"]
    ten, three = (
        results("papers/hyper_table2").query(f"splits == {n}").deviation.max() for n in (10, 3)
    )
    fit = results("papers/hyper_regression").pivot(index="data", columns="method")
    r2, seconds = fit.r2, fit.cpu_seconds.HyperRegressor / fit.cpu_seconds["SVR, tuned"]
    return numbers | {
        "hyper_tensor_error": f"{100 * tensor:.1f}",
        "hyper_log_errors": f"{paper_form.root_error.min():.2f} to {paper_form.root_error.max():.2f}",
        "hyper_log_tensor": f"{tensors.root_error.max():.3f}",
        "hyper_log_relative": " and ".join(f"{v**2:.3f}" for v in fertility.relative_error),
        "hyper_log_paper": " and ".join(f"{v:.3f}" for v in fertility.paper_rmse),
        "hyper_deviation": f"{ten:.0f}",
        "hyper_deviation_three": f"{three:.0f}",
        "hyper_regression_sets": f"{len(r2)}",
        "hyper_regression_behind": f"{(r2.drop(columns='HyperRegressor').max(axis=1) - r2.HyperRegressor).max():.3f}",
        "hyper_regression_below": f"{np.sum(r2.HyperRegressor < r2['kernel ridge, tuned'])}",
        "hyper_regression_times": f"{seconds.min():.0f} to {seconds.max():.0f}",
    }


# ---------------------------------------------------------------------------------------------------- scale
def scale_covtype():
    code = {
        "DANK, 400 parts": "`DANKClassifier(Gaussian(1.0), C=10, n_parts=400)`",
        "LAB": "`LABClassifier()`",
        "Hyper, 500 parts": '`HyperClassifier(HyperRidge("gaussian", n_parts=500))`',
        "Krein-Nystroem, Gaussian, 1000 landmarks": "`KreinRidgeClassifier(Gaussian(2.0), n_landmarks=1000)`",
        "Krein-Nystroem, TL1, 1000 landmarks": "the same with `TL1(0.7 * 54)`",
    }
    rows = results("speed/scale_covtype").query("rows == 464810").set_index("learner")
    lines = []
    for name in [*code, *(name for name in rows.index if name not in code)]:
        r = rows.loc[name]
        if isinstance(r.failed, str):
            cells = ["", r.failed, "", ""]
        else:
            seconds = [f"{r['fit CPU seconds']:.0f} s", f"{r['predict CPU seconds']:.0f} s"]
            cells = [f"{100 * r.accuracy:.1f} %", *seconds, f"{r['peak GB']:.1f} GB"]
        lines.append([code.get(name, name), *cells])
    return markdown(["learner", "accuracy", "fit", "predict", "peak"], lines)


def scale_growth():
    rows = results("speed/scale_growth").set_index(["learner", "rows"])
    lines = []
    for name in dict.fromkeys(rows.index.get_level_values(0)):
        cells = [rows.loc[(name, n)] for n in (10**4, 10**5, 10**6)]
        seconds = [c["fit CPU seconds"] for c in cells]
        exponent = np.log10(seconds[2] / seconds[0]) / 2
        shown = [f"{c['fit CPU seconds']:.1f} s, {c['peak GB']:.2f} GB" for c in cells]
        lines.append([name, *shown, f"{exponent:.2f}"])
    return markdown(["learner", "10^4 rows", "10^5", "10^6", "exponent"], lines)


def scale_dask():
    rows = (
        results("speed/scale_dask")
        .query("keeps == 1")
        .set_index(["work", "workers"])["fit seconds"]
    )
    ratios = results("speed/scale_speedups").query("keeps == 1").set_index("work")
    lines = []
    for name in dict.fromkeys(rows.index.get_level_values(0)):
        two = [
            f"{ratios.loc[name, c]:.2f}"
            for c in ("one worker / no cluster", "two workers against one")
        ]
        lines.append([name, *(f"{rows[name, k]:.1f}" for k in (0, 1, 2)), *two])
    header = [
        "work",
        "no cluster",
        "one worker",
        "two workers",
        "one worker / no cluster",
        "two against one",
    ]
    return markdown(header, lines)


def threads():
    lines = [
        [f"`{learner}()`", n, f"{one:.2g} s", f"{own:.2g} s", f"{ratio:.2f}"]
        for learner, n, one, own, ratio in results("speed/threads").itertuples(index=False)
    ]
    return markdown(["fit", "rows", "one thread", "no number set", "ratio"], lines)


def scale_memory():
    lines = []
    for r in results("speed/scale_memory").itertuples(index=False):
        name, rows, _, peak, per_stated, per_peak, size, _ = r
        unit = "n" if size == rows else "m" if "Krein" in name else "P"
        lines.append(
            [name, rows, f"{per_stated:.0f} {unit}^2", f"{per_peak:.0f} {unit}^2", f"{peak:.1f} MB"]
        )
    return markdown(
        ["fit", "rows", "bytes that it checks before work", "measured peak", "of this run"], lines
    )


def scale_billion():
    """One more row's cost, measured, and a billion times that, calculated."""
    growth = results("speed/scale_growth").set_index(["learner", "rows"])["fit CPU seconds"]
    covtype = results("speed/scale_covtype").set_index("learner")["fit CPU seconds"]
    slope = {
        n: (growth[n, 10**6] - growth[n, 10**5]) / 0.9
        for n in dict.fromkeys(growth.index.get_level_values(0))
    }
    per_million = {
        "`KreinRidge`, 200 landmarks, d = 8": slope["KreinRidge, 200 landmarks"],
        "`KreinRidgeClassifier`, 1000 landmarks, d = 54": covtype[
            "Krein-Nystroem, Gaussian, 1000 landmarks"
        ]
        / 0.46481,
        "`HyperRidge`, parts of 500 rows, 200 landmarks, d = 8": slope[
            "HyperRidge, parts of 500 rows"
        ],
        "`LABRegressor`, 50 support points, d = 8": slope["LABRegressor, 50 support points"],
    }
    lines = []
    for name, seconds in per_million.items():
        hours = seconds * 1000 / 3600
        one = (
            f"{hours:.1f} h"
            if 1 <= hours < 10
            else f"{hours:.0f} h"
            if hours >= 10
            else f"{60 * hours:.0f} min"
        )
        minutes = 60 * hours / 100
        many = (
            f"{minutes:.{0 if minutes >= 10 else 1}f} min"
            if hours >= 1
            else f"{36 * hours:.0f} s for the pass alone"
        )
        lines.append([name, f"{seconds:.3g}" if seconds >= 1 else f"{seconds:.2g}", one, many])
    header = [
        "fit",
        "measured: CPU seconds per 10^6 rows",
        "calculated: 10^9 rows, one core",
        "calculated: 100 cores",
    ]
    return markdown(header, lines)


def scale_figures():
    covtype = results("speed/scale_covtype").query("rows == 464810").set_index("learner")
    times = covtype["fit CPU seconds"]
    exponents = results("speed/scale_exponents").set_index("learner")["exponent of the last decade"]
    seconds = results("speed/scale_dask").set_index(["work", "workers", "keeps"])["fit seconds"]
    names = {
        "krein": "KreinRidge on a Dask array, 400,000 rows",
        "dank": "DANKClassifier, 32 parts of 5000 rows",
    }
    names["folds"] = "KreinRidge, 6 kernels x 2 folds, 160,000 rows"
    trimmed = {
        f"scale_{k}_trim_{w}": f"{seconds[name, w, 0]:.1f}"
        for k, name in names.items()
        for w in (1, 2)
    }
    faster = results("speed/scale_speedups").query("keeps == 1")["two workers against one"]
    growth = results("speed/scale_growth").set_index(["rows", "learner"])["peak GB"]
    per_row = {
        n: 1e9 * (growth[10**6, n] - growth[10**5, n]) / 9e5
        for n in growth[10**6].index
        if "Class" not in n and "defaults" not in n
    }
    return trimmed | {
        "scale_row_bytes": ", ".join(
            f"{v:.0f} ({name.split(',')[0]})" for name, v in per_row.items()
        ),
        "scale_billion_GB": f"{min(per_row.values()) - 32:.0f} to {max(per_row.values()) - 32:.0f}",
        "scale_dank_share": f"{100 * times['DANK, 400 parts'] / times['gradient boosting, 1000 trees']:.0f}",
        "scale_speedup": f"{faster.min():.1f} to {faster.max():.1f}",
        "scale_lab": f"{100 * covtype.accuracy['LAB']:.1f}",
        "scale_dank": f"{100 * covtype.accuracy['DANK, 400 parts']:.1f}",
        "scale_dank_seconds": f"{covtype['fit CPU seconds']['DANK, 400 parts']:.0f}",
        "scale_boosting": f"{100 * covtype.accuracy['gradient boosting, 1000 trees']:.1f}",
        "scale_boosting_seconds": f"{covtype['fit CPU seconds']['gradient boosting, 1000 trees']:.0f}",
        "scale_krein_decade": f"{exponents['KreinRidge, 200 landmarks']:.2f}",
    }


def kernels_speed():
    rows = results("speed/kernels")
    columns = ["sklearn / ours", "numpy / ours", "ours / limit", "float64 / float32"]
    return markdown(
        ["what", *columns],
        [[r["what"], *(number(r[c], 2) for c in columns)] for _, r in rows.iterrows()],
    )


def items_speed():
    rows = results("speed/items").pivot(index="what", columns="setting", values="value")
    words = {
        "fit": "one fit",
        "5 folds": "5-fold cross-validation",
        "4 x 5 grid": "grid of 4 candidates, 5 folds, refit",
    }
    columns = ["cache=False", "cache=True"]
    lines = [
        [label, *(f"{v:.2f}" for v in rows.loc[name, columns])] for name, label in words.items()
    ]
    return markdown(["", "without", "with the store"], lines)


def lab_speed():
    return markdown(
        ["what", "ratio"], [[r.what, f"{r.ratio:.3g}"] for r in results("speed/lab").itertuples()]
    )


# ---------------------------------------------------------------------------------------------------- lab
LAB_PEERS = {
    "lab": "LAB",
    "ridge_laplace": "ridge, Laplace",
    "ridge_gaussian": "ridge, Gaussian",
    "lightgbm": "LightGBM",
    "xrfm": "xrfm",
    "hist_boosting": "HistGradientBoosting",
    "svr": "SVR",
}


def lab_means(column="r2"):
    """Mean per set and learner over the splits that all learners have; sets that all have."""
    rows = (
        results("papers/lab_compare")
        .pivot(index=["set", "split"], columns="learner", values=column)
        .dropna()
    )
    return rows.groupby("set").mean()


def lab_ranks():
    means = lab_means().round(4)
    ranks = pd.DataFrame(rankdata(-means.to_numpy(), axis=1), means.index, means.columns)
    large = results("papers/lab_compare").groupby("set").n_train.max().loc[ranks.index] > 1000
    return {"all": ranks, "above 1000 rows": ranks[large], "up to 1000 rows": ranks[~large]}


def lab_compare():
    lines = []
    for name, ranks in lab_ranks().items():
        cells = [f"{ranks[peer].mean():.2f}" for peer in LAB_PEERS]
        best = min(cells, key=float)
        lines.append([name, len(ranks), *(f"**{c}**" if c == best else c for c in cells)])
    return markdown([f"average rank of {len(LAB_PEERS)}", "sets", *LAB_PEERS.values()], lines)


def lab_paper():
    """Tables 1 and 2 of the paper."""
    rows = pd.concat([results("papers/lab_table1"), results("papers/lab_table2")]).set_index("set")
    order = [
        "yacht",
        "airfoil",
        "sml2010",
        "parkinsons",
        "comp_activ",
        "electrical",
        "toms_hardware",
    ]
    lines = []
    for name in order:
        r = rows.loc[name]
        seconds = f"{r.cpu_seconds:.1f}" if r.cpu_seconds < 10 else f"{r.cpu_seconds:.0f}"
        theirs = f"{short(r.paper, 4)} ({r.paper_support:.0f})"
        lines.append(
            [name, f"{r.n_support:.0f}", f"{short(r.r2, 4)} ({r.splits:.0f})", theirs, seconds]
        )
    return markdown(["set", "support", "R2 (splits)", "paper (support)", "CPU seconds"], lines)


def lab_images():
    lines = [
        [f"`{learner}`", f"{n:,}", f"{100 * accuracy:.2f}", f"{fit:.0f}", f"{predict:.0f}"]
        for learner, n, accuracy, fit, predict in results("papers/lab_images").itertuples(
            index=False
        )
    ]
    return markdown(
        ["learner", "images", "accuracy", "fit (CPU s)", "10,000 predictions (CPU s)"], lines
    )


def lab_schedule():
    lines = []
    for _, r in results("papers/lab_schedule").iterrows():
        cells = [
            f"{short(r[f'{k}_r2'], 4)}, {r[f'adam / {k}']:.1f}"
            for k in ("defaults", "gaussian", "short")
        ]
        name = f"{r['set']}, {r['n_support']}, {r['rows']}"
        lines.append([name, f"{short(r['adam_r2'], 4)}, {r['adam_cpu']:.1f}", *cells])
    header = ["set, support, rows", "Adam: R2, CPU s", "defaults: R2, times less CPU", "gaussian"]
    return markdown([*header, "gaussian, 40 iterations"], lines)


def lab_growth():
    """Tables 5 and 6: initial supports, without and with growth."""
    before, after = results("papers/lab_table5"), results("papers/lab_table6")
    words = {"y": "evenly spaced targets", "kmeans": "k-means", "extreme": "the largest targets"}
    lines = []
    for name in dict.fromkeys(before["set"]):
        for selection, label in words.items():
            cells = []
            for rows in (before, after):
                r = rows[(rows["set"] == name) & (rows.selection == selection)].iloc[0]
                cells += [short(r.interpolation, 3), short(r.evidence, 3), short(r.paper, 3)]
            lines.append([f"{name}, {label}", *cells])
    columns = ["the paper's objective", "ours", "in the paper"]
    return markdown(
        ["set, first support", *columns, *(f"with growth: {c}" for c in columns)], lines
    )


def lab_figures():
    means, seconds, ranks = lab_means(), lab_means("cpu_seconds").sum(), lab_ranks()["all"]
    tests = {}
    for peer in LAB_PEERS:
        if peer != "lab":
            d = ranks[peer] - ranks["lab"]
            tests[peer] = 2 * student.sf(abs(d.mean() / (d.std() / np.sqrt(len(d)))), len(d) - 1)
    adjusted, holm = 0.0, {}
    for i, (peer, p) in enumerate(sorted(tests.items(), key=lambda item: item[1])):
        holm[peer] = adjusted = max(adjusted, min(1.0, p * (len(tests) - i)))
    mnist = results("papers/lab_mnist").set_index("learning_rows")
    noise = results("papers/lab_noise").query("noise == 0.2 and n_support == 80")
    grouped = cell(results("papers/lab_table1"), "r2", set="parkinsons_grouped")
    numbers = {
        "lab_rank": f"{ranks['lab'].mean():.2f}",
        "lab_sets": f"{len(ranks)}",
        "lab_p_laplace": f"{holm['ridge_laplace']:.3f}",
        "lab_p_others": f"{max(p for peer, p in holm.items() if peer != 'ridge_laplace'):.1g}",
        "lab_seconds": f"{seconds['lab']:.0f}",
        "lab_lightgbm_seconds": f"{seconds['lightgbm']:.0f}",
        "lab_parkinsons": short(cell(results("papers/lab_table1"), "r2", set="parkinsons"), 4),
        "lab_grouped": f"{grouped:.1f}",
        "lab_noise": ", ".join(short(v, 3) for v in noise.test),
        "lab_noise_ridgeless": ", ".join(short(v, 3) for v in noise.ridgeless_rbf),
    }
    for name, rows in {"defaults": "default", "all": "60000", "block": "10000"}.items():
        r = mnist.loc[rows]
        what = f"{100 * r.accuracy:.2f} % in {r.cpu_seconds:.0f} CPU seconds and {r.peak_GB:.1f} GB"
        numbers[f"lab_mnist_{name}"] = what
    for name, peer in (
        ("airfoil", "ridge_laplace"),
        ("cps_85_wages", "ridge_laplace"),
        ("bodyfat", "svr"),
    ):
        numbers[f"lab_{name}"] = f"{short(means['lab'][name], 3)}, {short(means[peer][name], 3)}"
    numbers["lab_electrical"] = (
        f"{short(means['lab']['electrical'], 4)}, {short(means['xrfm']['electrical'], 4)}"
    )
    return numbers


def lab_rivals():
    rows = results("papers/rivals").set_index(["method", "set"])
    sets, lines = list(dict.fromkeys(rows.index.get_level_values("set"))), []
    for method in dict.fromkeys(rows.index.get_level_values("method")):
        cells = []
        for r in (
            rows.loc[(method, name)] if (method, name) in rows.index else None for name in sets
        ):
            theirs = "" if r is None or pd.isna(r.paper) else f" ({short(r.paper, 4)})"
            cells += ["", ""] if r is None else [short(r.r2, 4) + theirs, f"{r.cpu_seconds:.1f}"]
        lines.append([method, *cells])
    header = [words for name in sets for words in (name, f"{name}: CPU seconds")]
    return markdown(["rival: R2 (paper)", *header], lines)


BOOSTED = {"lab": "LAB", "lightgbm": "LightGBM", "catboost": "CatBoost"}
FURTHER = {
    "xgboost": "XGBoost",
    "extra_trees": "extremely random trees",
    "svm": "support vector machine",
    "mlp": "network",
    "laplace_ridge": "ridge, Laplace",
    "xrfm": "xrfm",
    "lab_local": "LAB, local forms alone",
}
MEASURES = {
    "regression, R2": ("regression", "score", 1),
    "classification, accuracy": ("classes", "score", 1),
    "classification, log-loss": ("classes", "log_loss", -1),
}


def table_splits(name, measure, learners):
    """What these learners reached by number of rows, set and split, where all have it; the largest is the best."""
    task, values, sign = MEASURES[measure]
    rows = results(f"papers/{name}").query("variant == 'clean'")
    wide = rows[rows.task == task].pivot_table(
        index=["rows", "set", "split"], columns="learner", values=values
    )
    return sign * wide.reindex(columns=list(learners)).dropna()


def table_scores(name, measure, learners=tuple(BOOSTED)):
    """The same, averaged over splits."""
    return table_splits(name, measure, learners).groupby(["rows", "set"]).mean().round(4)


def rank_line(label, table):
    """A line of a table of average ranks, the best in bold."""
    ranks = rankdata(-table.to_numpy(), axis=1).mean(axis=0)
    return [label, len(table), *(f"**{r:.2f}**" if r == ranks.min() else f"{r:.2f}" for r in ranks)]


def confirmed(table):
    """The part of a table on whose sets nothing was chosen."""
    return table[table.index.get_level_values("set").isin(script("lab_tables").CONFIRMATION)]


RANKS = [f"average rank of {len(BOOSTED)}", "sets", *BOOSTED.values()]


def lab_tables():
    lines = []
    for measure in MEASURES:
        table = table_scores("lab_tables", measure)
        lines += [
            rank_line(measure, table),
            rank_line(f"{measure}, the confirmation half", confirmed(table)),
        ]
    return markdown(RANKS, lines)


def lab_bands():
    parts = []
    for measure in MEASURES:
        scores = table_scores("lab_bands", measure)
        parts += [
            (f"{measure}, at most {band:,} rows", table) for band, table in scores.groupby("rows")
        ]
        parts += [(f"{measure}, all bands", scores)]
        parts += [(f"{measure}, all bands, the confirmation half", confirmed(scores))]
    return markdown(RANKS, [rank_line(label, table) for label, table in parts if len(table)])


def lab_readme():
    bands, lines = sorted(set(results("papers/lab_bands").rows)), []
    for measure in MEASURES:
        scores, cells = table_scores("lab_bands", measure), []
        for band in bands:
            table = scores[scores.index.get_level_values("rows") == band]
            _, sets, *ranks = rank_line("", table) if len(table) else ("", 0)
            cells.append(f"{', '.join(ranks)} ({sets} sets)" if sets else "")
        lines.append([measure, *cells])
    return markdown(
        [f"average rank of {', '.join(BOOSTED.values())}", *(f"at most {b:,} rows" for b in bands)],
        lines,
    )


def lab_pairs():
    """LAB beside every learner of the bands: a set counts once, by the mean difference over its bands."""
    measured, lines = set(results("papers/lab_bands").learner), []
    for measure in MEASURES:
        gains = {}
        for peer in (p for p in BOOSTED | FURTHER if p in measured - {"lab"}):
            scores = table_scores("lab_bands", measure, ("lab", peer))
            gains[peer] = (scores.lab - scores[peer]).groupby("set").mean().round(5)
        tests = {
            peer: wilcoxon(gain).pvalue if gain.any() else 1.0
            for peer, gain in gains.items()
            if len(gain)
        }
        for peer, p in script("lab_tables").holm(tests).items():
            gain = gains[peer]
            wins = f"{(gain > 0).sum()}, {(gain == 0).sum()}, {(gain < 0).sum()}"
            chance = f"{p:.1g}" if p >= 0.0001 else "below 0.0001"
            lines.append(
                [measure, (BOOSTED | FURTHER)[peer], len(gain), wins, f"{gain.mean():+.3f}", chance]
            )
    return markdown(
        ["measure", "peer", "sets", "better, level, worse", "mean difference", "p"], lines
    )


def band_seconds():
    """Processor seconds of fits and of predictions by band, summed over what all three have."""
    rows, columns = (
        results("papers/lab_bands").query("variant == 'clean'"),
        ["cpu_seconds", "predict_seconds"],
    )
    wide = rows.pivot_table(index=["rows", "set", "split"], columns="learner", values=columns)
    wide = wide.loc[:, [(column, learner) for column in columns for learner in BOOSTED]].dropna()
    return wide.groupby("rows").sum(), wide.groupby("rows").size()


def lab_bands_seconds():
    (spent, fits), lines = band_seconds(), []
    for band, row in spent.iterrows():
        seconds = ", ".join(f"{row['cpu_seconds', k]:.0f}" for k in BOOSTED)
        predicting = ", ".join(f"{row['predict_seconds', k]:.1f}" for k in BOOSTED)
        lines.append([f"at most {band:,} rows", fits[band], seconds, predicting])
    return markdown([", ".join(BOOSTED.values()), "splits of sets", "fits", "predictions"], lines)


def lab_bands_figures():
    spent, _ = band_seconds()
    ratios = (spent["cpu_seconds", "lab"] / spent["cpu_seconds", "lightgbm"]).items()
    times = [
        f"{ratio:.1f} times ({'at most ' * (not i)}{band:,} rows)"
        for i, (band, ratio) in enumerate(ratios)
    ]
    scores = {measure: table_scores("lab_bands", measure) for measure in MEASURES}
    ranks = [
        rank_line("", table)[2] for scored in scores.values() for _, table in scored.groupby("rows")
    ]
    splits = pd.concat([table_splits("lab_bands", m, BOOSTED) for m in MEASURES]).index.to_frame(
        index=False
    )
    counts = splits.groupby(["rows", "set"]).split.nunique().groupby("rows")
    least = scores["regression, R2"]
    behind = [
        f"{name} with {band:,} rows ({short(row.lab, 4)}, {BOOSTED[row.idxmax()]} {short(row.max(), 4)})"
        for (band, name), row in least[least.lab < least.max(axis=1)].iterrows()
    ]
    clean = results("papers/lab_bands").query("variant == 'clean'")
    predicting = clean.pivot_table(
        index=["rows", "set"], columns="learner", values="predict_seconds"
    )
    return {
        "lab_bands_predicting": f"{(predicting.lab / predicting.lightgbm).median():.1f}",
        "lab_bands_behind": ", ".join(behind) or "none",
        "lab_bands_best": f"{sum('**' in cell for cell in ranks)} of {len(ranks)}",
        "lab_bands_sets": f"{splits.set.nunique()}",
        "lab_bands_splits": ", ".join(f"{span(count)} ({band:,} rows)" for band, count in counts),
        "lab_bands_times": listed(times),
    }


VARIANTS = ("clean", "repeated", "shuffled", "rescaled", "outliers", "missing")


def lab_variants_scores():
    """LAB and LightGBM by set and variant, in the splits that both have; outliers are targets moved, so numbers."""
    rows = results("papers/lab_variants").query("variant != 'outliers' or task == 'regression'")
    wide = rows.pivot_table(
        index=["task", "set", "variant", "split"], columns="learner", values="score"
    )
    return wide[["lab", "lightgbm"]].dropna().groupby(["task", "set", "variant"])


def lab_variants():
    scores, lines = lab_variants_scores().mean().droplevel("task"), []
    for name, part in scores.groupby("set", sort=False):
        found = part.droplevel("set")
        cells = [
            ", ".join(short(v, 3) for v in found.loc[k]) if k in found.index else ""
            for k in VARIANTS
        ]
        lines.append([name, *cells])
    return markdown(["LAB, LightGBM", *VARIANTS], lines)


def lab_variants_figures():
    scores, rows = lab_variants_scores(), results("papers/lab_variants")
    gain = scores.mean().eval("lab - lightgbm").droplevel("task").unstack()
    level = gain[gain.clean >= -0.005].stack()
    lost = [
        f"{name}, {variant} ({value:.3f})"
        for (name, variant), value in level[level < -0.02].items()
    ]
    return {
        "lab_variants_lost": "; ".join(lost) or "nowhere",
        "lab_variants_sets": f"{len(gain)} of its {len(script('lab_tables').VARIED)}",
        "lab_variants_splits": span(scores.size()),
        "lab_variants_rows": f"{rows.rows.max()}",
    }


def lab_tables_figures():
    scores, behind = (
        {measure: table_scores("lab_tables", measure).droplevel("rows") for measure in MEASURES},
        [],
    )
    for table in (scores["regression, R2"], scores["classification, log-loss"]):
        for name, row in table[table.lab < table.max(axis=1)].abs().iterrows():
            best = table.loc[name].idxmax()
            behind.append(f"{name} ({short(row.lab, 3)}, {BOOSTED[best]} {short(row[best], 3)})")
    spent = results("papers/lab_tables").query("variant == 'clean'").groupby("learner")
    seconds, predicting = spent.cpu_seconds.sum(), spent.predict_seconds.sum()
    return {
        "lab_tables_sets": f"{sum(len(scores[m]) for m in ('regression, R2', 'classification, accuracy'))}",
        "lab_tables_behind": ", ".join(behind),
        "lab_tables_seconds": f"{seconds['lab']:.0f}",
        "lab_tables_predicting": f"{predicting['lab']:.1f} and {predicting['lightgbm']:.1f}",
        "lab_tables_lightgbm_seconds": f"{seconds['lightgbm']:.0f}",
        "lab_tables_catboost_seconds": f"{seconds['catboost']:.0f}",
    }


# ---------------------------------------------------------------------------------------------------- similarity
RECIPES = ["clip", "flip", "square", "shift", "raw", "features"]
REAL = {
    "amp_edit": "amp_edit (peptides, edit distance)",
    "coilyork_half": "coilyork_half (graph matching)",
    "protein": "protein (alignment)",
    "dtw_ecg200": "dtw_ecg200 (time warping)",
    "balls3d_regen": "balls3d_regen (surface distances)",
    "digit_shapes": "digit_shapes (Hausdorff)",
}


def similarity_sets(name):
    """A table of the recipes, by set, without the averages and the given test rows."""
    rows = results(f"papers/similarity_{name}").set_index("set")
    rows.columns = [column.replace("SVC ", "").replace("SVR ", "") for column in rows.columns]
    return rows[[i != "average" and "given" not in i for i in rows.index]].copy()


def similarity_lines(rows, names, columns, digits):
    """Lines of a table, the best of each in bold."""
    lines = []
    for name, label in names.items():
        values = [round(float(v), 4) for v in rows.loc[name, columns]]
        cells = [number(v, digits) for v in values]
        lines.append(
            [label, *(f"**{c}**" if v == max(values) else c for c, v in zip(cells, values))]
        )
    return lines


def similarity_real():
    rows = similarity_sets("real")
    rows.loc["average"] = rows.mean()
    names = REAL | {name: name for name in rows.index if name not in REAL}
    columns = [*RECIPES, "neighbors", "automatic"]
    return markdown(["set", *columns], similarity_lines(rows, names, columns, 2))


def similarity_regression():
    rows = similarity_sets("regression")
    columns, means = [*RECIPES, "neighbors", "automatic"], rows.mean()
    best = rows[columns[:-1]].max(axis=1).mean()
    cells = [f"{means[c]:.1f}" for c in columns]
    cells[-1] = (
        f"**{cells[-1]}**" if means["automatic"] >= max(*means[columns], best) else cells[-1]
    )
    header = [f"{len(rows)} sets", *columns, "best recipe of each set in hindsight"]
    return markdown(header, [["average R2", *cells, f"{best:.1f}"]])


def similarity_readme():
    words = {
        "amp_edit": "peptides, edit distance (amp_edit)",
        "coilyork_half": "shapes, graph matching (coilyork_half)",
        "protein": "proteins, alignment (protein)",
        "dtw_ecg200": "heartbeats, time warping (dtw_ecg200)",
        "balls3d_regen": "balls, surface distance (balls3d_regen)",
        "digit_shapes": "digits, Hausdorff distance (built in)",
    }
    columns = ["clip", "flip", "square", "raw", "features", "neighbors", "automatic"]
    header = [
        "data",
        "SVC on clipped",
        "flipped",
        "squared",
        "as it is",
        "similarities as features",
        "neighbors",
    ]
    return markdown(
        [*header, "**automatic**"], similarity_lines(similarity_sets("real"), words, columns, 1)
    )


def similarity_figures():
    numbers = {}
    for name in ("real", "generated", "regression"):
        rows = similarity_sets(name)
        singles = rows.drop(columns="automatic")
        margin = rows.automatic - singles.max(axis=1)
        numbers |= {
            f"similarity_{name}": f"{rows.automatic.mean():.2f}",
            f"similarity_{name}_hindsight": f"{singles.max(axis=1).mean():.2f}",
            f"similarity_{name}_margin": f"{margin.mean():.2f}",
            f"similarity_{name}_single": f"{singles.mean().max():.2f}",
            f"similarity_{name}_behind": f"{np.sum(margin < 0)}",
            f"similarity_{name}_best": f"{np.sum(margin >= 0)}",
            f"similarity_{name}_worst": f"{-margin.min():.1f}",
            f"similarity_{name}_sets": f"{len(rows)}",
        }
    given = results("papers/similarity_real").set_index("set").automatic
    speed = (
        results("speed/similarity")
        .set_index("learner")
        .loc["Krein machine, dense program, at its best"]
    )
    workers = results("speed/items_workers").query("unit == 'ratio'").set_index("what").value
    search = results("speed/similarity_search").set_index(["n", "search"]).ratio_of_automatic
    few = results("papers/similarity_few").set_index("set").loc["average"]
    several = results("papers/similarity_several").set_index("group").loc["average"]
    two = results("papers/directed").groupby("learner").accuracy.mean()
    return numbers | {
        "similarity_few_all": f"{few['all']:.2f}",
        "similarity_few_third": f"{few['third']:.2f}",
        "similarity_several": f"{several['several']:.2f}",
        "similarity_several_single": f"{several['best single']:.2f}",
        "directed_both": f"{two['directed']:.1f}",
        "directed_mean": f"{two['stack_on_mean']:.1f}",
        "similarity_amp_given": f"{given['amp_edit (given test rows)']:.2f}",
        "similarity_coil_given": f"{given['coilyork_half (given test rows)']:.2f}",
        "similarity_speed": f"{speed.ratio_to_automatic:.1f}",
        "items_workers_slow": f"{workers['2 ms, 200 words']:.2f}",
        "items_workers_fast": f"{workers['1 us, 600 words']:.2f}",
        "similarity_search_500": f"{search[500, 'spectra once per fold']:.2f}",
        "similarity_search_2000": f"{search[2000, 'spectra once per fold']:.2f}",
        "similarity_speed_accuracy": f"{speed.test_accuracy:.2f}",
    }


def bank_columns():
    """Accuracy and log-loss of the bank by set and learner, and the learners' ranks by accuracy."""
    rows = results("papers/similarity_bank")
    accuracy, loss = (
        rows.pivot(index="set", columns="learner", values=c) for c in ("accuracy", "log_loss")
    )
    return accuracy, loss, accuracy.rank(axis=1, ascending=False)


def similarity_bank():
    accuracy, loss, ranks = bank_columns()
    lines = []
    for name in accuracy.mean().sort_values(ascending=False).index:
        cells = [
            number(accuracy[name].mean(), 2),
            f"{ranks[name].mean():.2f}",
            f"{loss[name].mean():.3f}",
        ]
        lines.append([name, *cells, int((loss.idxmin(axis=1) == name).sum())])
    return markdown(
        ["learner", "accuracy", "average rank", "log-loss", "sets with the lowest log-loss"], lines
    )


def bank_figures():
    accuracy, loss, ranks = bank_columns()
    gap = accuracy.drop(columns="automatic").max(axis=1) - accuracy.automatic
    return {
        "bank_sets": f"{len(accuracy)}",
        "bank_gap": f"{abs(gap.mean()):.2f} points {'lower' if gap.mean() > 0 else 'higher'}",
        "bank_worst": f"{gap.max():.1f}",
        "bank_rank": f"{ranks.automatic.mean():.2f}",
        "bank_learners": f"{ranks.shape[1]}",
        "bank_lowest": f"{(loss.idxmin(axis=1) == 'automatic').sum()}",
    }


def similarity_few():
    rows = results("papers/similarity_few").set_index("set")
    columns = {"all": "all comparisons", "third": "a third as landmarks", "200": "200 landmarks"}
    columns["200 of 400"] = "the best 200 of 400"
    lines = [
        [name, *(number(row[column], 2) for column in columns)] for name, row in rows.iterrows()
    ]
    return markdown(["set", *columns.values()], lines)


def similarity_several():
    lines = []
    for _, row in results("papers/similarity_several").iterrows():
        values = [row[c] for c in ("best single", "sum", "easy", "several")]
        cells = [f"**{number(v, 2)}**" if v == max(values) else number(v, 2) for v in values]
        cells[0] += "" if pd.isna(row["which"]) else f" ({row['which']})"
        lines.append([row["group"], *cells])
    return markdown(["group", "best single", "sum", "EasyMKL", "several"], lines)


def similarity_many():
    lines = []
    for r in results("speed/similarity_few").values.tolist():
        items, landmarks, seconds, _, peak, accuracy, _ = r
        lines.append(
            [f"{items:.0f}", f"{landmarks:.0f}", f"{seconds:.0f}", f"{peak:.1f}", f"{accuracy:.1f}"]
        )
    return markdown(["items", "landmarks", "processor seconds", "peak in GB", "accuracy"], lines)


DIRECTED = {
    "asymmetric_ridge": "`AsymmetricRidgeClassifier`",
    "stack_on_mean": "`SimilarityClassifierCV(symmetrize=True)`",
    "directed": "`DirectedClassifierCV`",
    "stack_on_mean_rows_only": "rows only: stack on the mean",
    "directed_rows_only": "rows only: directed",
}


def directed():
    rows = results("papers/directed")
    accuracy = rows.pivot(index="set", columns="learner", values="accuracy")[list(DIRECTED)]
    losses = rows.pivot(index="set", columns="learner", values="log_loss")[list(DIRECTED)].mean()
    sizes = rows.groupby("set")[["n", "classes"]].first()
    lines = []
    for name in dict.fromkeys(rows["set"]):
        lines.append([name, *sizes.loc[name], *(number(v, 1) for v in accuracy.loc[name])])
    lines.append(["mean", "", "", *(number(v, 1) for v in accuracy.mean())])
    lines.append(["mean log-loss", "", "", *(number(v, 3) for v in losses)])
    return markdown(["set", "items", "classes", *DIRECTED.values()], lines)


# ---------------------------------------------------------------------------------------------------- see
SEE = {"krein": "Krein ridge", "similarity": "automatic stack", "asymmetric": "asymmetric ridge"}


def see_coverage():
    means = results("papers/see_coverage").groupby(["items", "model"]).covered.mean()
    sizes = sorted({n for n, _ in means.index})
    lines = [[n, *(f"{100 * means[n, model]:.1f} %" for model in SEE)] for n in sizes]
    return markdown(["training items", *SEE.values()], lines)


def see_coverage_sets():
    rows = results("papers/see_coverage")
    rows = rows[rows["items"] == 50].assign(new=lambda r: r.tested // r.repeats)
    models, lines = {**SEE, "lab": "LAB"}, []
    for name, part in rows.groupby("set"):
        part, cells = part.set_index("model"), []
        for model in models:
            row = part.loc[model] if model in part.index else None
            error = "" if row is None else f" ± {100 * row.standard_error:.1f}"
            cells.append("" if row is None else f"{100 * row.covered:.1f}{error} ({row.repeats})")
        new = int(part.new.iloc[0])
        lines.append([name, new, f"{100 * (0.09 / new) ** 0.5:.1f}", *cells])
    return markdown(["set", "new items", "binomial error", *models.values()], lines)


def see_suspects():
    rows = results("papers/see_suspects").set_index(["set", "method"])
    lines = []
    for name in dict.fromkeys(rows.index.get_level_values(0)):
        cells = []
        for column in ("recall", "precision", "false_alarms"):
            cells += [f"{100 * rows.loc[(name, m), column]:.0f}" for m in ("suspects_", "cleanlab")]
        lines.append([name, *cells])
    words = ("found", "of the found", "false alarms")
    return markdown(
        ["set", *(f"{w}: {m}" for w in words for m in ("`suspects_`", "cleanlab"))], lines
    )


def see_report():
    rows = results("papers/see_report").set_index("set")
    lines = [
        [
            name,
            row["items"],
            row.flipped,
            *(f"{100 * row[part]:.0f}" for part in ("recall", "precision", "false_alarms")),
        ]
        for name, row in rows.iterrows()
    ]
    return markdown(["set", "items", "flipped", "found", "of the found", "false alarms"], lines)


def see_width():
    rows = results("papers/see_width").set_index(["set", "method"])
    methods = list(dict.fromkeys(rows.index.get_level_values(1)))
    lines = []
    for name in dict.fromkeys(rows.index.get_level_values(0)):
        cells = (rows.loc[(name, m)] for m in methods)
        lines.append([name, *(f"{c.width:.2f} ({100 * c.covered:.0f} %)" for c in cells)])
    return markdown(["set", *methods], lines)


def see_deviation():
    rows = results("papers/see_deviation").set_index(["set", "method"])
    methods = [
        "LABRegressor",
        "LABRegressor, one deviation",
        "Gaussian process",
        "quantile boosting",
    ]
    lines = []
    for name in dict.fromkeys(rows.index.get_level_values(0)):
        cells = [rows.loc[(name, m)] for m in methods]
        lines.append(
            [
                name,
                int(cells[0].tested),
                *(f"{c.log_density:.2f} ({100 * c.covered:.0f} %)" for c in cells),
            ]
        )
    means = rows.groupby("method")[["log_density", "covered"]].mean().loc[methods]
    cells = [f"{c.log_density:.2f} ({100 * c.covered:.0f} %)" for _, c in means.iterrows()]
    return markdown(["set", "new items", *methods], [*lines, ["mean", "", *cells]])


def _deviation_figures():
    rows = results("papers/see_deviation")
    density, covered = (
        rows.pivot(index="set", columns="method", values=v) for v in ("log_density", "covered")
    )
    better = density["LABRegressor"] > density["Gaussian process"]
    one = density["LABRegressor"] - density["LABRegressor, one deviation"]
    return {
        "see_deviation_better": f"{better.sum()} of {len(better)}",
        "see_deviation_covered": f"{100 * covered['LABRegressor'].mean():.1f} %",
        "see_deviation_process": f"{100 * covered['Gaussian process'].mean():.1f} %",
        "see_deviation_gain": f"{one.mean():.2f}",
    }


def see_figures():
    rows, width = results("papers/see_coverage"), results("papers/see_width")
    table, lab = (
        rows[rows.model.isin(list(SEE))],
        rows[rows.model == "lab"].groupby("items").covered,
    )
    ends = {
        "lowest": table.loc[table.covered.idxmin()],
        "highest": table.loc[table.covered.idxmax()],
    }
    widths = width.pivot(index="set", columns="method", values="width")
    narrower = widths["LABRegressor.predict_interval"] < widths["Gaussian process"]
    quantile = 100 * width[width.method == "quantile boosting"].covered
    odd = results("papers/see_suspects").groupby("method")
    numbers = {
        f"see_{k}": f"{100 * r.covered:.1f} % (`{r['set']}`, {r['items']} items)"
        for k, r in ends.items()
    }
    for name, method in (("see_", "suspects_"), ("see_cleanlab_", "cleanlab")):
        numbers[f"{name}found"] = f"{100 * odd.recall.mean()[method]:.0f}"
        numbers[f"{name}precision"] = f"{100 * odd.precision.mean()[method]:.0f}"
        numbers[f"{name}alarms"] = f"{100 * odd.false_alarms.max()[method]:.1f}"
    many = rows[rows.repeats >= 40]
    for n in (20, 50):
        off = 100 * (many[many["items"] == n].groupby("set").covered.mean() - 0.9)
        numbers[f"see_within_{n}"] = f"{(off.abs() <= 2).sum()} of {len(off)}"
        numbers[f"see_off_{n}"] = f"{off.min():.1f} to {off.max():+.1f}".replace(
            "-", "\N{MINUS SIGN}"
        )
    means = 100 * table[table["items"] == 50].groupby("model").covered.mean()
    numbers["see_mean_50"] = f"{means.min():.1f} to {means.max():.1f} %"
    numbers |= {
        f"see_lab_{n}": f"{100 * lab.mean()[n]:.1f} % ({lab.size()[n]} sets)" for n in (50, 100)
    }
    return (
        numbers
        | _deviation_figures()
        | {
            "see_sets": f"{table['set'].nunique()}",
            "see_narrower": f"{narrower.sum()} of {len(narrower)}",
            "see_quantile": f"{quantile.min():.0f} to {quantile.max():.0f}",
        }
    )


# ---------------------------------------------------------------------------------------------------- peers
PEERS = {
    "mercerless": "**mercerless**",
    "krein svm": "Krein SVM (KreinAMP's method), `KreinSVC`",
    "svc clipped": "scikit-learn, SVC on the clipped spectrum",
    "ridge clipped": "scikit-learn, KernelRidge on the clipped matrix, a column per class",
    "process clipped": "scikit-learn, Gaussian process on coordinates of the clipped matrix",
    "neighbors": "scikit-learn, nearest neighbors",
    "tfidf": "scikit-learn, letter n-grams and a linear model",
    "aeon": "aeon, MiniRocket",
    "tslearn": "tslearn, nearest neighbor under time warping",
    "grakel": "grakel, Weisfeiler-Lehman kernel and SVC",
    "boosting": "scikit-learn, gradient boosting",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
    "xrfm": "xrfm",
    "himalaya": "himalaya, kernel ridge",
    "mklpy": "MKLpy, EasyMKL on five Gaussians",
    "rows as features": "scikit-learn, rows as features of a linear model",
}


def peers(need):
    """A need's peers as they stand in peers.csv."""
    rows = results("papers/peers").query("need == @need")
    lines = []
    for r in rows.itertuples():
        lines.append(
            [
                PEERS[r.peer],
                f"{r.accuracy:.1f}",
                number(r.log_loss, 3),
                f"{r.cpu_seconds:.1f}",
                r.lines,
            ]
        )
    return markdown(["peer", "accuracy", "log-loss", "processor seconds", "lines of code"], lines)


# ---------------------------------------------------------------------------------------------------- compare
LEARNERS = {
    "stack": "automatic stack",
    "svm-square": "SVM on the squared spectrum",
    "features": "linear model on similarities",
    "krein-svm": "Krein SVM",
    "krein-ridge": "Krein ridge",
    "svm-clip": "SVM on the clipped spectrum",
    "svm-flip": "SVM on the flipped spectrum",
    "svm-shift": "SVM on the shifted spectrum",
    "svm-raw": "SVM on the raw matrix",
    "neighbors": "nearest neighbors",
    "lab": "LAB",
    "vote": "vote of the three best",
}


def compare_amp():
    rows = results("papers/compare_fresh").query("set == 'amp_edit' and learner != 'dummy'")
    lines = []
    for r in rows.sort_values("fresh", ascending=False).itertuples():
        name = LEARNERS.get(r.learner, r.learner) + (
            " (recommended)" if str(r.recommended) == "True" else ""
        )
        lines.append([name, f"{100 * r.cross_validation:.1f}", f"{100 * r.fresh:.1f}"])
    return markdown(["learner", "cross-validation", "fresh"], lines)


def compare_fresh(name):
    """Fresh scores of the recommendation and of single learners, by split."""
    rows = results("papers/compare_fresh").query("set == @name")
    chosen = rows[rows.recommended.astype(str) == "True"].set_index("split")
    return chosen, rows[~rows.learner.isin(["vote", "dummy"])].pivot(
        index="split", columns="learner", values="fresh"
    )


def compare_tables():
    lines = []
    for name, scale in (("yacht", 1), ("heart", 100)):
        chosen, singles = compare_fresh(name)
        best = singles.mean().idxmax()
        ours, top = (
            short(v, 4) if scale == 1 else f"{100 * v:.2f}"
            for v in (chosen.fresh.mean(), singles[best].mean())
        )
        same = (
            LEARNERS.get(chosen.learner.iloc[0], chosen.learner.iloc[0])
            if chosen.learner.nunique() == 1
            else ""
        )
        words = f"{same}, {ours}" if same else ours
        lines.append([f"{name} ({len(chosen)})", words, f"{LEARNERS.get(best, best)}, {top}"])
    return markdown(
        ["set (splits)", "recommended", "best single learner of all, in hindsight"], lines
    )


def compare_budgets():
    lines = []
    for r in results("speed/budget").itertuples():
        sizes = [int(word.rpartition(":")[2]) for word in str(r.rows).split() if ":" in word]
        whole = f"{sizes.count(max(sizes))} on {max(sizes):,} rows" if sizes else "no report"
        learners = "none" if pd.isna(r.learners) else r.learners
        beside = "one core busy" if r.load else "nothing"
        lines.append([r.data, f"{r.budget:.0f}", beside, r[4], f"{r.seconds:.0f}", learners, whole])
    return markdown(
        [
            "data",
            "budget (s)",
            "beside it",
            "load before",
            "took (s)",
            "learners scored",
            "of these",
        ],
        lines,
    )


def compare_figures():
    chosen, singles = compare_fresh("heart")
    stack = cell(results("papers/compare_fresh"), "fresh", set="amp_edit", learner="stack")
    gap = 100 * (singles[singles.mean().idxmax()] - chosen.fresh)
    heart = results("papers/compare_fresh").query(
        "set == 'heart' and learner not in ('vote', 'dummy')"
    )
    first = heart.loc[heart.groupby("split").cross_validation.idxmax()]
    return {
        "compare_single": f"{100 * first.fresh.mean():.2f}",
        "compare_behind": f"{gap.mean():.2f}",
        "compare_behind_error": f"{gap.std() / np.sqrt(len(gap)):.2f}",
        "compare_amp_best": f"{100 * stack:.1f}",
    }


def trust_runs():
    whole = {name: "Int64" for name in ("failed", "skipped", "expected failures")}
    rows = results("suite/runs").astype(whole)
    lines = [[r.run, r.version, r.passed, r.failed, r.skipped, r[6]] for r in rows.itertuples()]
    return markdown(["run", "commit", "passed", "failed", "skipped", "expected failures"], lines)


# ---------------------------------------------------------------------------------------------------- how often
def protocol_figures():
    """How many splits and draws the rows have."""
    coverage, width = results("papers/see_coverage"), results("papers/see_width")
    others, fifty = coverage[coverage.model.isin(list(SEE))], coverage[coverage["items"] == 50]
    splits = {
        name: results(f"papers/dank_{name}").groupby("set").split.nunique()
        for name in ("beyond", "table1", "table5")
    }
    # these come with one split
    drawn = splits["table1"][[name for name in DANK_SETS if not name.startswith("monks")]]
    words = [
        f"{n} splits of {' and '.join(sorted(drawn.index[drawn == n]))}"
        for n in sorted(set(drawn), reverse=True)
    ]
    return {
        "dank_beyond_splits": span(splits["beyond"]),
        "dank_table1_splits": ", ".join(words),
        "dank_table5_splits": span(
            splits["table5"][~splits["table5"].index.str.startswith("monks")]
        ),
        "lab_growth_splits": span(results("papers/lab_table5").splits),
        "lab_rivals_splits": span(results("papers/rivals").splits),
        "hyper_table1_splits": f"{results('papers/hyper_table1').splits.max()}",
        "see_draws": span(others.repeats),
        "see_draws_50": span(fifty[fifty.model.isin(["krein", "asymmetric"])].repeats),
        "see_draws_lab": span(fifty[fifty.model == "lab"].repeats),
        "see_width_draws": f"{span(width.repeats)} draws of {span(width['items'])} items",
    }


# ---------------------------------------------------------------------------------------------------- the reduced run
def reduced_run():
    """Claims whose reduced run is on record."""
    rows = pd.read_csv(HERE / "reduced.csv", dtype={"commit": str})
    return markdown(
        ["claim", "words", "processor seconds", "commit"],
        [[r.claim, f"`{REDUCED[r.claim]}`" if r.claim in REDUCED else "", f"{r.cpu_seconds:.0f}", r.commit]
         for r in rows.itertuples()],
    )  # fmt: skip


def reduced_figures():
    rows = pd.read_csv(HERE / "reduced.csv", dtype={"commit": str})
    return {
        "reduced_done": f"{len(rows)}",
        "reduced_minutes": f"{rows.cpu_seconds.sum() / 60:.0f}",
        "reduced_clock": f"{rows.seconds.sum() / 60:.0f}",
        "reduced_machine": ", ".join(dict.fromkeys(rows.processor)),
    }


# ---------------------------------------------------------------------------------------------------- a newcomer
def start_figures():
    rows = results("speed/start")
    machine = json.loads(
        (HERE / "speed" / "results" / "machine" / "start.json").read_text(encoding="utf-8")
    )
    install = cell(rows, "seconds", step="environment") + cell(rows, "seconds", step="install")
    return {
        "start_install": f"{install:.0f}",
        "start_report": f"{cell(rows, 'seconds', step='report on a table'):.0f}",
        "start_lines": f"{cell(rows, 'lines', step='strings to predictions'):.0f}",
        "start_machine": machine["processor"],
    }


# ---------------------------------------------------------------------------------------------------- all
FIGURES = (
    krein_figures, dank_figures, hyper_figures, scale_figures, lab_figures, lab_tables_figures,
    lab_bands_figures, lab_variants_figures,
    similarity_figures,
    bank_figures, see_figures, compare_figures, protocol_figures, reduced_figures, start_figures,
)  # fmt: skip
TABLES = (
    krein_table1, krein_table3, krein_eigenvalues, krein_rates, krein_settings, krein_landmarks,
    dank_beyond, dank_summary, dank_table1, dank_table5, dank_table6, dank_speed,
    hyper_table1, hyper_table2, hyper_table3, hyper_regression, hyper_extension, hyper_speed,
    scale_covtype, scale_growth, scale_dask, scale_memory, scale_billion, kernels_speed, threads,
    items_speed, lab_speed,
    lab_variants, lab_compare, lab_paper, lab_schedule, lab_images, lab_growth, lab_rivals, lab_tables, lab_bands,
    lab_pairs, lab_bands_seconds, lab_readme,
    similarity_real, similarity_regression, similarity_readme, similarity_bank, similarity_few, similarity_several,
    similarity_many,
    directed,
    see_coverage, see_coverage_sets, see_deviation, see_report, see_suspects, see_width, compare_amp, compare_tables,
    compare_budgets, trust_runs,
    reduced_run,
)  # fmt: skip


def tables():
    """The makers of tables by name."""
    needs = ("matrix", "strings", "series", "graphs", "table", "directed")
    return {maker.__name__: maker for maker in TABLES} | {
        f"peers_{need}": partial(peers, need) for need in needs
    }


def figures():
    """All numbers within sentences, by name."""
    return {name: text for maker in FIGURES for name, text in maker().items()}
