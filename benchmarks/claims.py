"""Every claim: the script and the words that measure it, and the rows that it writes."""

from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Claim(NamedTuple):
    """One claim; `reduced` and `full` are what ``all`` adds to the words of the script."""

    group: str
    script: str
    part: str
    what: str
    results: str
    arguments: tuple = ()
    reduced: tuple = ()
    full: tuple = ()
    data: bool = True  # whether it needs the data folder, $MERCERLESS_DATA

    @property
    def name(self):
        return " ".join(filter(None, (self.group, self.script, self.part)))

    @property
    def path(self):
        return HERE / self.group / f"{self.script}.py"

    @property
    def csv(self):
        return HERE / self.group / "results" / f"{self.results}.csv"


def paper(script, part, what, **options):
    """A part of a script of the papers: its first word, and the end of the name of its rows."""
    return Claim("papers", script, part, what, f"{script}_{part}", (part,), **options)


def speed(script, part, what, results, **options):
    return Claim("speed", script, part, what, results, (part,) if part else (), **options)


FULL = {"full": ("--full",)}
CLAIMS = (
    paper("krein", "table1", "treatments of an indefinite matrix", data=False, **FULL),
    paper("krein", "table3", "kernels tuned by the validation gradient", **FULL),
    paper("krein", "figures", "eigenvalues and learning rates", **FULL),
    paper("krein", "rates", "what gives the paper's learning rates", **FULL),
    paper("hyper", "table1", "a known kernel, learned from its matrix", **FULL),
    paper("hyper", "table2", "a kernel learned from labels", reduced=("--splits", "1"), **FULL),
    paper("hyper", "table3", "kernels learned on large sets", reduced=("--sets", "ijcnn1"), **FULL),
    paper("hyper", "figure2", "error of low-rank hyper-kernels", **FULL),
    paper("hyper", "figure3", "DANK's matrix, extended to new digits", **FULL),
    paper("hyper", "extension", "similarities, extended to new items", **FULL),
    paper("hyper", "regression", "the regressor beside tuned Gaussian machines", reduced=("--sets", "yacht", "mpg")),
    paper("dank", "table1", "accuracy of adapted matrices and rivals", reduced=("--splits", "1"), **FULL),
    paper("dank", "table5", "the rank penalty", reduced=("--splits", "1"), **FULL),
    paper("dank", "table6", "regression with adapted matrices", reduced=("--splits", "1"), **FULL),
    paper("dank", "figures", "Figures 1, 4, 5 and 6", **FULL),
    paper("dank", "beyond", "DANK, searched by the validation gradient", reduced=("--splits", "1")),
    paper("lab", "compare", "local bandwidths against tuned peers", reduced=("--splits", "1"), **FULL),
    paper("lab", "table1", "the paper's small sets", **FULL),
    paper("lab", "table2", "the paper's larger sets", **FULL),
    paper("lab", "table5", "first supports", **FULL),
    paper("lab", "table6", "first supports, with growth", **FULL),
    paper("lab", "noise", "functions under noise", data=False, **FULL),
    paper("lab", "support", "more support points", **FULL),
    paper("lab", "training", "more training rows", **FULL),
    paper("lab", "schedule", "the paper's Adam schedule", **FULL),
    paper("lab", "mnist", "60,000 digits", **FULL),
    Claim("papers", "rivals", "", "rivals of the local bandwidths", "rivals", (), ("--sets", "yacht")),
    Claim(
        "papers", "lab_tables", "run", "tables of all sizes against tuned boosting", "lab_tables", ("run",),
        ("--rows", "500", "--candidates", "5"),
    ),
    Claim(
        "papers", "lab_tables", "variants", "repeated, shuffled, rescaled, spoiled tables", "lab_variants",
        ("variants",), ("--rows", "300", "--candidates", "5"),
    ),
    *(
        Claim(
            "papers", "similarity", sets, f"the automatic choice against single recipes: {sets} sets",
            f"similarity_{sets}", ("--sets", sets), ("--splits", "1"), data=sets != "generated",
        )
        for sets in ("real", "generated", "regression")
    ),
    Claim(
        "papers", "similarity_bank", "", "the automatic choice beside eleven tuned recipes", "similarity_bank", (),
        ("--splits", "1", "--most", "120"),
    ),
    Claim("papers", "similarity_few", "", "comparisons with landmarks only", "similarity_few", (), ("--splits", "1")),
    Claim("papers", "similarity_several", "", "several similarities", "similarity_several", (), ("--splits", "1")),
    Claim("papers", "directed", "", "both directions of a similarity", "directed", (), ("--splits", "1"), data=False),
    Claim("papers", "peers", "", "peers side by side, by need", "peers", data=False),
    Claim(
        "papers", "compare", "", "is what compare recommends good on fresh items?", "compare_fresh", (),
        ("--sets", "heart", "yacht", "--repeats", "1", "--splits", "2"),
    ),
    paper("see", "coverage", "sets and intervals hold what they state", reduced=("--repeats", "1")),
    paper("see", "width", "width of intervals beside others", reduced=("--repeats", "1")),
    paper("see", "deviation", "standard deviations beside others", reduced=("--repeats", "1")),
    paper("see", "suspects", "wrong labels found", reduced=("--repeats", "1")),
    paper("see", "report", "wrong labels found by a comparison", reduced=("--repeats", "1")),
    speed("kernels", "", "kernel matrices against scikit-learn and the limit", "kernels", reduced=("--n", "4000"),
          data=False),
    speed("items", "", "calls of a function of two items", "items", data=False),
    Claim("speed", "items", "workers", "what workers bring for a function of two items", "items_workers", ("--time",),
          data=False),
    speed("krein", "", "choosing penalties against one eigendecomposition", "krein", reduced=("--many", "10000"),
          data=False),
    speed("hyper", "", "learned kernels against the paper's formulas", "hyper", data=False, **FULL),
    speed("dank", "moons", "adapted against plain machines, small", "dank_moons", data=False),
    speed("dank", "ijcnn1", "adapted against plain machines, 49,990 rows", "dank_ijcnn1"),
    speed("lab", "", "local kernels and models against peers", "lab", reduced=("--n", "2000"), data=False),
    speed("similarity", "", "the automatic choice against a Krein machine", "similarity",
          reduced=("--generated", "300")),
    Claim("speed", "similarity", "search", "the automatic choice against scikit-learn's search", "similarity_search",
          ("--search",), ("500",), data=False),
    speed("similarity_few", "", "the automatic choice on many items", "similarity_few", reduced=("--items", "6250"),
          data=False),
    speed("scale", "covtype", "464,810 rows within 4 GB", "scale_covtype", reduced=("--rows", "20000")),
    speed("scale", "growth", "growth with the rows", "scale_growth", reduced=("--rows", "10000", "100000"), data=False),
    speed("scale", "dask", "two workers against one", "scale_dask", data=False),
    speed("scale", "memory", "memory stated and used", "scale_memory", data=False),
    speed("budget", "", "budgets of compare are kept", "budget", reduced=("--budgets", "10", "--load", "0"),
          data=False),
)  # fmt: skip


def parts_as_words(words):
    """``--table 3`` is the word ``table3``, ``--figure 2`` is ``figure2``."""
    out = list(words)
    for option in ("table", "figure"):
        if f"--{option}" in out[:-1]:
            at = out.index(f"--{option}")
            out[at : at + 2] = [f"{option}{out[at + 1]}"]
    return out


def chosen(words):
    """The claims that ``papers krein --table 3 --full`` asks for, and the options left for their scripts."""
    group, *rest = words
    claims = [claim for claim in CLAIMS if claim.group == group]
    if rest and not rest[0].startswith("-"):
        script, *rest = rest
        known = dict.fromkeys(claim.script for claim in claims)
        if script not in known:
            raise ValueError(f"{group} has no {script!r}; it has {', '.join(known)}")
        claims, rest = [claim for claim in claims if claim.script == script], parts_as_words(rest)
        if rest and not rest[0].startswith("-"):
            part, *rest = rest
            known = [claim.part for claim in claims if claim.part]
            if part.startswith("figure") and part not in known and "figures" in known:
                part = "figures"  # drawn together
            claims = [claim for claim in claims if claim.part == part]
            if not claims:
                raise ValueError(f"{group} {script} has no part {part!r}; it has {', '.join(known) or 'one part only'}")
    return claims, rest
