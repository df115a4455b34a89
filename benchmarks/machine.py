"""What a number was measured with: versions, BLAS, processor, commit."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "mercerless", "numpy", "scipy", "scikit-learn", "threadpoolctl", "pandas", "dask", "lightgbm", "xgboost",
    "catboost", "xrfm", "aeon", "tslearn", "grakel", "himalaya", "MKLpy", "cvxopt", "mapie", "cleanlab", "torch",
)  # fmt: skip


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)


def commit():
    """The commit, with ``-changed`` if the library's source differs from it; ``unknown`` outside a repository."""
    try:
        head = git("rev-parse", "--short=9", "HEAD")
        changed = git("diff", "--quiet", "HEAD", "--", "src").returncode != 0
    except FileNotFoundError:
        return "unknown"
    if head.returncode != 0:
        return "unknown"
    return head.stdout.strip() + ("-changed" if changed else "")


def processor():
    """Name and number of cores; a history is of one processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def versions():
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def blas():
    import numpy.linalg  # noqa: F401  loads NumPy's BLAS
    import scipy.linalg  # noqa: F401  and SciPy's
    from threadpoolctl import threadpool_info

    kept = ("user_api", "internal_api", "version", "architecture", "num_threads")
    return [{key: info.get(key) for key in kept} for info in threadpool_info()]


def describe():
    """All of it, for a JSON file beside the rows."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions(),
        "blas": blas(),
    }
