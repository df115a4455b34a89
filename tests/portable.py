"""Run the numerical tests under several BLAS kernels, NumPy code paths and numbers of threads of one machine.

``python tests/portable.py`` runs all that this processor can, ``python tests/portable.py Haswell Nehalem`` these two.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent
FILES = """kernels lab_kernels spectra lowrank krein dank_solver dank_tuning hyper lab_solver
    similarity_solvers asymmetric theory""".split()
BLAS_KERNELS = ["Haswell", "SkylakeX", "Zen", "Nehalem", "Sandybridge", "Prescott"]
FEATURES = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
WIDE = [name for name in FEATURES if name.startswith(("AVX512", "X86_V4"))]
ONE = {"OMP_NUM_THREADS": "1"}
RUNS: dict[str, dict[str, str]] = {
    **{name: {**ONE, "OPENBLAS_CORETYPE": name} for name in BLAS_KERNELS},
    "numpy-without-avx512": {**ONE, "NPY_DISABLE_CPU_FEATURES": " ".join(WIDE)},
    "numpy-baseline": {**ONE, "NPY_DISABLE_CPU_FEATURES": " ".join(FEATURES)},
    "two-threads": {"OMP_NUM_THREADS": "2"},
    "threads-unset": {},
}
# What BLAS says it uses, after work that ends the process where the processor lacks the instructions.
PROBE = """
import json, numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
A = np.random.default_rng(0).normal(size=(200, 200))
scipy.linalg.eigh(A @ A.T)
print(json.dumps(sorted({i["architecture"] for i in threadpool_info() if i["internal_api"] == "openblas"})))
"""


def environment(settings: dict[str, str]) -> dict[str, str]:
    """This process's environment with these settings, and no others of their kind."""
    ours = {
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "OPENBLAS_CORETYPE",
        "NPY_DISABLE_CPU_FEATURES",
    }
    return {key: value for key, value in os.environ.items() if key not in ours} | settings


def main(names: list[str]) -> int:
    """Run the named settings; the exit code is the number of those that failed."""
    if unknown := set(names) - set(RUNS):
        sys.exit(f"{', '.join(sorted(unknown))} is not known; choose from {', '.join(RUNS)}.")
    report: dict[str, str] = {}
    seen: dict[str, str] = {}
    for name in names or RUNS:
        settings = RUNS[name]
        if settings.get("NPY_DISABLE_CPU_FEATURES") == "":
            report[name] = "skipped: NumPy has no such code paths here"
            continue
        probe = subprocess.run(
            [sys.executable, "-c", PROBE], env=environment(settings), capture_output=True, text=True
        )
        if probe.returncode:
            report[name] = f"skipped: this processor cannot run it (exit code {probe.returncode})"
            continue
        used = ", ".join(json.loads(probe.stdout)) or "no OpenBLAS"
        if name in BLAS_KERNELS:
            if used in seen:
                report[name] = f"skipped: OpenBLAS takes {used} for it, which {seen[used]} has run"
                continue
            seen[used] = name
        workers = "2" if settings.get("OMP_NUM_THREADS") == "1" else "0"
        files = [str(TESTS / f"test_{file}.py") for file in FILES]
        print(f"\n== {name} ({used})", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", workers, "-p", "no:cacheprovider", *files],
            env=environment(settings),
            cwd=TESTS.parent,
        )
        report[name] = f"{'FAILED' if done.returncode else 'passed'} ({used})"
    print("\n".join(f"{name:22} {text}" for name, text in report.items()))
    return sum(text.startswith("FAILED") for text in report.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
