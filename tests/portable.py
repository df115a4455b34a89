"""Run the numerical tests under several BLAS kernels, NumPy code paths and numbers of threads of one machine.

``python tests/portable.py`` runs all that this processor can, ``python tests/portable.py Haswell Nehalem`` these two.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent
NUMERICAL = "kernels lab spectra lowrank krein dank hyper similarity asymmetric theory solver units averaging".split()
FILES = [
    str(path)
    for path in sorted(TESTS.glob("test_*.py"))
    if any(name in path.stem for name in NUMERICAL)
]
BLAS_KERNELS = ["Haswell", "SkylakeX", "Zen", "Nehalem", "Sandybridge", "Prescott"]
FEATURES = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
WIDE = [name for name in FEATURES if name.startswith(("AVX512", "X86_V4"))]
ONE = {"OMP_NUM_THREADS": "1"}
RUNS = {
    **{name: {**ONE, "OPENBLAS_CORETYPE": name} for name in BLAS_KERNELS},
    "numpy-without-avx512": {**ONE, "NPY_DISABLE_CPU_FEATURES": " ".join(WIDE)},
    "numpy-baseline": {**ONE, "NPY_DISABLE_CPU_FEATURES": " ".join(FEATURES)},
    "two-threads": {"OMP_NUM_THREADS": "2"},
    "threads-unset": {},
}
# What BLAS uses, after work that ends the process if the processor lacks the instructions.
PROBE = """
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
A = np.random.default_rng(0).normal(size=(200, 200))
scipy.linalg.eigh(A @ A.T)
print(*sorted({i["architecture"] for i in threadpool_info() if i["internal_api"] == "openblas"}))
"""
OURS = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"}


def run(settings, *command, **options):
    """Run Python with these settings and no others of their kind."""
    environment = {key: value for key, value in os.environ.items() if key not in OURS} | settings
    return subprocess.run([sys.executable, *command], env=environment, cwd=TESTS.parent, **options)


def result(name, seen):
    """Run the tests with one of the settings; what came of it."""
    settings = RUNS[name]
    if settings.get("NPY_DISABLE_CPU_FEATURES") == "":
        return "skipped: NumPy has no such code paths here"
    probe = run(settings, "-c", PROBE, capture_output=True, text=True)
    if probe.returncode:
        return f"skipped: this processor cannot run it (exit code {probe.returncode})"
    used = probe.stdout.strip() or "no OpenBLAS"
    if name in BLAS_KERNELS and used in seen:
        return f"skipped: OpenBLAS takes {used} for it, which has run"
    seen.add(used)
    print(f"\n== {name} ({used})", flush=True)
    workers = "2" if settings.get("OMP_NUM_THREADS") == "1" else "0"
    options = ["-q", "-m", "not slow", "-n", workers, "-p", "no:cacheprovider"]
    done = run(settings, "-P", "-m", "pytest", *options, *FILES)
    return f"{'FAILED' if done.returncode else 'passed'} ({used})"


def main(names):
    """Run the named settings; the exit code is the number of those that failed."""
    if unknown := set(names) - set(RUNS):
        sys.exit(f"{', '.join(sorted(unknown))} is not known; choose from {', '.join(RUNS)}.")
    seen = set()
    report = {name: result(name, seen) for name in names or RUNS}
    print("\n".join(f"{name:22} {text}" for name, text in report.items()))
    return sum(text.startswith("FAILED") for text in report.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
