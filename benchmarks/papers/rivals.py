"""Rivals of LAB's Tables 1 and 2: ridge regression with two kernels, Falkon's and EigenPro's solvers, two networks.

    MERCERLESS_DATA=... python benchmarks/papers/rivals.py [--sets yacht airfoil] [--splits 3] [--methods ResNet]

80 % of the rows to train, features standardized; widths and penalties are chosen on a fifth of at most 1500 training
rows from a small grid, since the paper does not say how it scales features or what its sigma divides. Numbers of
centers, widths of the networks, batches and learning rates are the paper's. Solvers that form the whole matrix get at
most 8000 rows, the one that decomposes it 3500. ResNet needs PyTorch (``pip install torch``), RFM also xrfm, and they
are left out without. Not here: support vector regression with EasyMKL's weights, which are defined for classes; the
paper does not say what it did for numbers.
Writes results/rivals.csv: training rows, mean R2 over the splits, its deviation, processor seconds, the paper's R2.
"""

import argparse
import copy
import csv
import importlib.util
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from paper_sets import load
from scipy.linalg import cholesky, eigh, solve, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from mercerless.kernels import TL1, Gaussian

RESULTS = Path(__file__).parent / "results" / "rivals.csv"
# numbers of centers, and widths of the networks, of the paper's Tables 3 and 4
CENTERS = {
    "tecator": 100, "yacht": 200, "airfoil": 900, "sml2010": 2000, "parkinsons": 4000, "comp_activ": 1500,
    "electrical": 3000, "kc_house": 5000, "toms_hardware": 3000,
}  # fmt: skip
HIDDEN = {
    "tecator": 800, "yacht": 500, "airfoil": 6000, "sml2010": 1500, "parkinsons": 3000, "comp_activ": 9000,
    "electrical": 3000, "kc_house": 5000, "toms_hardware": 3000,
}  # fmt: skip
RESIDUAL = {  # widths of the blocks, and rows of a batch
    "tecator": ((500, 50), 32),
    "yacht": ((500, 50), 32),
    "airfoil": ((1000, 100, 100, 100), 128),
    "sml2010": ((1000, 100, 100, 100), 128),
    "parkinsons": ((500, 100, 100, 100), 128),
    "comp_activ": ((2000, 100, 100, 100), 128),
    "electrical": ((2000, 100, 100, 100), 256),
    "kc_house": ((2000, 100, 100, 100), 256),
    "toms_hardware": ((3000, 100, 100, 100), 128),
}
PUBLISHED = {  # names of the rivals in lab_paper.csv
    "Gaussian ridge": "RBF KRR",
    "TL1 ridge": "TL1 KRR",
    "Falkon": "Falkon",
    "EigenPro": "EigenPro3.0",
    "wide network": "WNN",
    "ResNet": "ResNet",
    "RFM": "RFMs",
}
EXACT_LIMIT = 8000  # rows of solvers that form the whole matrix
FLIP_LIMIT = 3500  # rows of the one that needs its spectrum
CHOICE_LIMIT = 1500  # rows on which widths and penalties are compared
WIDTHS, PENALTIES = (0.25, 0.5, 1.0, 2.0), (1e-6, 1e-4, 1e-2)


def ridge(kernel, X, y, penalty):
    """(K + n penalty I) a = y, whatever the signs of the eigenvalues of K."""
    return X, solve(kernel(X) + len(X) * penalty * np.eye(len(X)), y, assume_a="sym")


def flipped(kernel, X, y, penalty):
    """The same with the absolute eigenvalues, the norm of both parts as penalty: no eigenvalue meets a pole."""
    values, vectors = eigh(kernel(X))
    return X, vectors @ (np.sign(values) * (vectors.T @ y) / (np.abs(values) + len(X) * penalty))


def falkon(kernel, X, y, penalty, centers, steps=30):
    """``min |K_nm a - y|^2 / n + penalty a' K_mm a`` by preconditioned conjugate gradients.

    The preconditioner is that of Rudi, Carratino and Rosasco (NIPS 2017):
    K_nm' K_nm is replaced by n / m K_mm^2, of which two Cholesky factors are known.
    """
    n, m = len(X), len(centers)
    K, M = kernel(X, centers), kernel(centers)
    outer = cholesky(M + 1e-10 * m * np.eye(m))
    inner = cholesky(outer @ outer.T / m + penalty * np.eye(m))

    def back(v):
        return solve_triangular(outer, solve_triangular(inner, v)) / np.sqrt(n)

    def forth(v):
        return solve_triangular(inner, solve_triangular(outer, v, trans=1), trans=1) / np.sqrt(n)

    def product_(v):
        u = back(v)
        return forth(K.T @ (K @ u) + n * penalty * (M @ u))

    system = LinearOperator((m, m), product_, dtype=float)
    return centers, back(cg(system, forth(K.T @ y), rtol=1e-8, maxiter=steps)[0])


def eigenpro(kernel, X, y, steps, directions=60):
    """Steps of gradient descent on ``|K a - y|^2`` in which the first eigenvalues are made equal to the next one.

    After Ma and Belkin (NIPS 2017), with all rows in every step and no
    penalty but the number of steps.
    """
    n = len(X)
    K = kernel(X)
    top = min(directions, n - 2)
    start = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(K, top + 1, which="LA", v0=start)
    by_size = np.argsort(values)
    values = values[by_size]
    vectors = vectors[:, by_size]
    damped = (1 - values[0] / values[1:]) * vectors[:, 1:]  # P = I - damped @ vectors'
    a = np.zeros(n)
    for _ in range(steps):
        gap = y - K @ a
        a += (gap - damped @ (vectors[:, 1:].T @ gap)) / values[0]
    return X, a


def residual_network(n_features, widths, normalized):
    """Blocks of Chen et al. (2020): ``relu(s(x) + c(relu(b(relu(a(x))))))`` with linear a, b, c, batches normalized.

    The shortcut s is linear where the width changes (a dense block) and else the identity. A linear layer ends it.
    The first weights are PyTorch's, drawn as He et al. (2015) have it.
    """
    from torch import nn

    def linear(before, width):
        return nn.Sequential(
            nn.Linear(before, width), nn.BatchNorm1d(width) if normalized else nn.Identity()
        )

    class Block(nn.Module):
        def __init__(self, before, width):
            super().__init__()
            self.path = nn.Sequential(
                linear(before, width),
                nn.ReLU(),
                linear(width, width),
                nn.ReLU(),
                linear(width, width),
            )
            self.shortcut = nn.Identity() if before == width else linear(before, width)

        def forward(self, x):
            return (self.path(x) + self.shortcut(x)).relu()

    blocks = [Block(before, width) for before, width in zip((n_features, *widths), widths)]
    return nn.Sequential(*blocks, nn.Linear(widths[-1], 1), nn.Flatten(0))


def trained(network, training, held_out, batch, patience=30):
    """The network after the epoch of least held-out loss, by Adam and then, from its best, by SGD; and that loss."""
    import torch

    loss, (A, a), (B, b) = torch.nn.functional.mse_loss, training, held_out
    state, lowest = copy.deepcopy(network.state_dict()), np.inf
    for optimizer in (torch.optim.Adam, torch.optim.SGD):
        network.load_state_dict(state)
        steps, waited = optimizer(network.parameters(), lr=1e-3), 0
        while waited < patience:
            for rows in torch.randperm(len(A)).split(batch)[: max(1, len(A) // batch)]:
                steps.zero_grad()
                loss(network.train()(A[rows]), a[rows]).backward()
                steps.step()
            with torch.no_grad():
                found = loss(network.eval()(B), b).item()
            waited = 0 if found < lowest else waited + 1
            if found < lowest:
                state, lowest = copy.deepcopy(network.state_dict()), found
    network.load_state_dict(state)
    return network.eval(), lowest


def resnet(X, y, widths, batch, seed):
    """A residual network that a tenth of the rows stopped.

    The text leaves open whether batches are normalized (both are tried, the tenth decides) and when an optimizer
    stops (here when it brought nothing for 30 epochs).
    """
    import torch

    A, B, a, b = (
        torch.tensor(part).float()
        for part in train_test_split(X, y, test_size=0.1, random_state=seed)
    )
    networks = []
    for normalized in (True, False):
        torch.manual_seed(seed)
        networks.append(
            trained(residual_network(X.shape[1], widths, normalized), (A, a), (B, b), batch)
        )
    best, _ = min(networks, key=lambda pair: pair[1])
    return lambda T: best(torch.tensor(T).float()).detach().numpy()


def feature_machine(X, y, seed):
    """RFMs, by their authors' package xrfm: a tenth of the rows chooses the iteration."""
    from xrfm import xRFM

    A, B, a, b = train_test_split(X, y, test_size=0.1, random_state=seed)
    model = xRFM(device="cpu", tuning_metric="mse")
    model.fit(A, a, B, b)
    return lambda T: np.asarray(model.predict(T)).ravel()


def machine(solver, kernel, *settings):
    """A function from training rows to a predictor: all rows are centers."""

    def fit(A, a):
        support, coefficients = solver(kernel, A, a, *settings)
        return lambda T: kernel(T, support) @ coefficients

    return fit


def machine_with_centers(kernel, penalty, n_centers, seed):
    """The same with random rows as centers, by `falkon`."""

    def fit(A, a):
        centers = A[np.random.RandomState(seed).permutation(len(A))[:n_centers]]
        support, coefficients = falkon(kernel, A, a, penalty, centers)
        return lambda T: kernel(T, support) @ coefficients

    return fit


def candidates(name, X, seed):
    """Every rival with functions from training rows to a predictor, and the most rows it gets."""
    spread = np.sqrt(X.shape[1])
    gaussians = [Gaussian(width * spread) for width in WIDTHS]
    truncated = [TL1(width * X.shape[1]) for width in (0.7, 1.5, 3.0)]
    ridges = product(gaussians, PENALTIES)
    yield "Gaussian ridge", [machine(ridge, k, p) for k, p in ridges], EXACT_LIMIT
    ridges = product(truncated, PENALTIES)
    yield "TL1 ridge", [machine(ridge, k, p) for k, p in ridges], EXACT_LIMIT
    ridges = product(truncated, (1e-5, 1e-4, 1e-3))
    yield "TL1 ridge, flipped", [machine(flipped, k, p) for k, p in ridges], FLIP_LIMIT
    settings = product(gaussians, PENALTIES)
    n_centers = CENTERS[name]
    with_centers = [machine_with_centers(k, p, n_centers, seed) for k, p in settings]
    yield "Falkon", with_centers, None
    steps = product(gaussians, (30, 300))
    yield "EigenPro", [machine(eigenpro, k, n_steps) for k, n_steps in steps], EXACT_LIMIT
    settings = {
        "early_stopping": True,
        "n_iter_no_change": 30,
        "max_iter": 400,
        "random_state": seed,
    }
    network = MLPRegressor(hidden_layer_sizes=(HIDDEN[name],), **settings)
    yield "wide network", [lambda A, a: network.fit(A, a).predict], None
    if importlib.util.find_spec("torch"):
        yield "ResNet", [lambda A, a: resnet(A, a, *RESIDUAL[name], seed)], None
    if importlib.util.find_spec("xrfm"):
        yield "RFM", [lambda A, a: feature_machine(A, a, seed)], None


def score(fits, train, test):
    """R2 on test rows of the candidate that is best on a fifth of the training rows, fitted on all of them."""
    X, y = train
    T, t = test
    if len(fits) > 1:
        few = slice(0, CHOICE_LIMIT)
        A, B, a, b = train_test_split(X[few], y[few], test_size=0.2, random_state=0)
        fits = [max(fits, key=lambda fit: r2_score(b, fit(A, a)(B)))]
    return r2_score(t, fits[0](X, y)(T))


def split(name, seed):
    data = load(name)
    X, y = np.asarray(data.data, dtype=float), np.asarray(data.target, dtype=float)
    X, T, y, t = train_test_split(X, y, test_size=0.2, random_state=seed)
    scaler = StandardScaler().fit(X)
    center, unit = y.mean(), y.std()
    return (scaler.transform(X), (y - center) / unit), (scaler.transform(T), (t - center) / unit)


def published(name, method):
    """The paper's R2, or nothing."""
    with open(Path(__file__).parent / "lab_paper.csv", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["set"] == name and row["method"] == PUBLISHED.get(method):
                return float(row["r2"])
    return ""


HEADER = ("set", "method", "splits", "rows", "r2", "deviation", "cpu_seconds", "paper")


def write(row):
    """Put a row in place of that of the same set and method."""
    RESULTS.parent.mkdir(exist_ok=True)
    rows = {}
    if RESULTS.exists():
        with open(RESULTS, newline="") as file:
            rows = {(old["set"], old["method"]): old for old in csv.DictReader(file)}
    rows[row["set"], row["method"]] = row
    with open(RESULTS, "w", newline="") as file:
        writer = csv.DictWriter(file, HEADER, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows.values())


def run(name, chosen, n_splits):
    """One method after the other on all splits; a finished method is written."""
    first = split(name, 0)[0][0]
    for position, (method, _, limit) in enumerate(candidates(name, first, 0)):
        if chosen and method not in chosen:
            continue
        values = []
        for seed in range(n_splits):
            (X, y), test = split(name, seed)
            _, fits, _ = list(candidates(name, X, seed))[position]
            train = X[:limit], y[:limit]
            start = time.process_time()
            values.append((score(fits, train, test), time.process_time() - start))
        r2, seconds = np.transpose(values)
        row = {
            "set": name,
            "method": method,
            "splits": n_splits,
            "rows": len(train[0]),
            "r2": f"{r2.mean():.4f}",
            "deviation": f"{r2.std():.4f}",
            "cpu_seconds": f"{seconds.mean():.2f}",
            "paper": published(name, method),
        }
        print(*row.values(), flush=True)
        write(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=["yacht", "airfoil"], choices=sorted(CENTERS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--methods", nargs="*", help="only these")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if not importlib.util.find_spec("torch"):
        print("ResNet is left out: it needs PyTorch, pip install torch")
    for name in options.sets:
        run(name, options.methods, options.splits)


if __name__ == "__main__":
    main()
