"""Every claim: the script and the words that measure it, and the rows that it writes."""

import shlex
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
    full: tuple = ()
    data: bool = True  # whether it needs the data folder, $MERCERLESS_DATA

    @property
    def name(self):
        return " ".join(filter(None, (self.group, self.script, self.part)))

    @property
    def reduced(self):
        return tuple(shlex.split(REDUCED.get(self.name, "")))

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
    paper("hyper", "table2", "a kernel learned from labels", **FULL),
    paper("hyper", "table3", "kernels learned on large sets", **FULL),
    paper("hyper", "figure2", "error of low-rank hyper-kernels", **FULL),
    paper("hyper", "figure3", "DANK's matrix, extended to new digits", **FULL),
    paper("hyper", "extension", "similarities, extended to new items", **FULL),
    paper("hyper", "regression", "the regressor beside tuned Gaussian machines"),
    paper("dank", "table1", "accuracy of adapted matrices and rivals", **FULL),
    paper("dank", "table5", "the rank penalty", **FULL),
    paper("dank", "table6", "regression with adapted matrices", **FULL),
    paper("dank", "figures", "Figures 1, 4, 5 and 6", **FULL),
    paper("dank", "beyond", "DANK, searched by the validation gradient"),
    paper("lab", "compare", "local bandwidths against tuned peers", **FULL),
    paper("lab", "table1", "the paper's small sets", **FULL),
    paper("lab", "table2", "the paper's larger sets", **FULL),
    paper("lab", "table5", "first supports", **FULL),
    paper("lab", "table6", "first supports, with growth", **FULL),
    paper("lab", "noise", "functions under noise", data=False, **FULL),
    paper("lab", "support", "more support points", **FULL),
    paper("lab", "training", "more training rows", **FULL),
    paper("lab", "schedule", "the paper's Adam schedule", **FULL),
    paper("lab", "mnist", "60,000 digits", **FULL),
    paper("lab", "images", "images beside a support vector machine"),
    Claim("papers", "rivals", "", "rivals of the local bandwidths", "rivals"),
    Claim("papers", "lab_tables", "run", "tables of all sizes against tuned boosting", "lab_tables", ("run",)),
    Claim("papers", "lab_tables", "bands", "tables by their number of rows", "lab_bands", ("bands",)),
    Claim(
        "papers", "lab_tables", "variants", "repeated, shuffled, rescaled, spoiled tables", "lab_variants",
        ("variants",),
    ),
    *(
        Claim(
            "papers", "similarity", sets, f"the automatic choice against single recipes: {sets} sets",
            f"similarity_{sets}", ("--sets", sets), data=sets != "generated",
        )
        for sets in ("real", "generated", "regression")
    ),
    Claim("papers", "similarity_bank", "", "the automatic choice beside eleven tuned recipes", "similarity_bank"),
    Claim("papers", "similarity_few", "", "comparisons with landmarks only", "similarity_few"),
    Claim("papers", "similarity_several", "", "several similarities", "similarity_several"),
    Claim("papers", "directed", "", "both directions of a similarity", "directed", data=False),
    Claim("papers", "peers", "", "peers side by side, by need", "peers", data=False),
    Claim("papers", "compare", "", "is what compare recommends good on fresh items?", "compare_fresh"),
    paper("see", "coverage", "sets and intervals hold what they state"),
    paper("see", "width", "width of intervals beside others"),
    paper("see", "deviation", "standard deviations beside others"),
    paper("see", "suspects", "wrong labels found"),
    paper("see", "report", "wrong labels found by a comparison"),
    speed("start", "", "a newcomer: from installation to a report, from strings to predictions", "start", data=False),
    speed("kernels", "", "kernel matrices against scikit-learn and the limit", "kernels", data=False),
    speed("items", "", "calls of a function of two items", "items", data=False),
    Claim("speed", "items", "workers", "what workers bring for a function of two items", "items_workers", ("--time",),
          data=False),
    speed("krein", "", "choosing penalties against one eigendecomposition", "krein", data=False),
    speed("hyper", "", "learned kernels against the paper's formulas", "hyper", data=False, **FULL),
    speed("dank", "moons", "adapted against plain machines, small", "dank_moons", data=False),
    speed("dank", "ijcnn1", "adapted against plain machines, 49,990 rows", "dank_ijcnn1"),
    speed("lab", "", "local kernels and models against peers", "lab", data=False),
    speed("similarity", "", "the automatic choice against a Krein machine", "similarity"),
    Claim("speed", "similarity", "search", "the automatic choice against scikit-learn's search", "similarity_search",
          ("--search",), data=False),
    speed("similarity_few", "", "the automatic choice on many items", "similarity_few", data=False),
    speed("scale", "covtype", "464,810 rows within 4 GB", "scale_covtype"),
    speed("scale", "growth", "growth with the rows", "scale_growth", data=False),
    speed("scale", "dask", "two workers against one", "scale_dask", data=False),
    speed("scale", "memory", "memory stated and used", "scale_memory", data=False),
    speed("threads", "", "fits without a set number of threads against one thread", "threads", data=False),
    speed("budget", "", "budgets of compare are kept", "budget", data=False),
)  # fmt: skip

# what makes the run of everything end within an hour: few sets, splits and rows, the scripts' own words otherwise
REDUCED = {
    "papers krein table1": "--sizes 100 200 --draws 1",
    "papers krein table3": "--sets ionosphere yacht --rows 150 --folds 2",
    "papers hyper table1": "--sets fertility wine --splits 1",
    "papers hyper table2": "--sets fertility wine --splits 1",
    "papers hyper table3": "--sets ijcnn1 --rows 5000",
    "papers hyper figure3": "--splits 1",
    "papers hyper extension": "--splits 1",
    "papers hyper regression": "--sets yacht mpg --splits 1",
    "papers dank table1": "--sets heart monks1 wine --splits 1",
    "papers dank table5": "--sets heart monks1 sonar --splits 1",
    "papers dank table6": "--sets bodyfat pyrim mpg --splits 1",
    "papers dank figures": "--sets 1 4 6",
    "papers dank beyond": "--sets heart wine mpg --splits 1",
    "papers lab compare": "--sets yacht bodyfat --splits 1",
    "papers lab table1": "--sets yacht airfoil --splits 1 --most 1000",
    "papers lab table2": "--sets electrical --splits 1 --most 4000",
    "papers lab table5": "--sets yacht --splits 2",
    "papers lab table6": "--sets yacht --splits 2",
    "papers lab support": "--sets yacht --splits 1",
    "papers lab training": "--sets electrical --most 1000",
    "papers lab schedule": "--sets yacht",
    "papers lab images": "--most 1000",
    "papers lab mnist": "--most 1000 --iterations 20",
    "papers rivals": "--sets yacht",
    "papers lab_tables run": "--rows 300 --candidates 3 --sets yacht heart eucalyptus",
    "papers lab_tables bands": "--candidates 3 --sets yacht heart mg",
    "papers lab_tables variants": "--rows 200 --candidates 3 --sets mpg heart",
    "papers similarity real": "--splits 1 --most 100",
    "papers similarity generated": "--splits 1 --most 100",
    "papers similarity regression": "--splits 1 --most 100",
    "papers similarity_bank": "--splits 1 --most 100 --only protein dtw_ecg200 wine_tl1 words_edit_15 balls3d",
    "papers similarity_few": "--splits 1 --only 'digit shapes' pima retina",
    "papers similarity_several": "--splits 1 --first 2",
    "papers directed": "--splits 1",
    "papers compare": "--sets heart --repeats 1 --splits 1",
    "papers see coverage": "--sets heart mpg dtw_ecg200 --repeats 1",
    "papers see width": "--repeats 1",
    "papers see deviation": "--sets mpg yacht --repeats 1",
    "papers see suspects": "--repeats 1",
    "papers see report": "--sets heart wine --repeats 1",
    "speed kernels": "--n 4000",
    "speed krein": "--rows 500 --many 10000",
    "speed dank ijcnn1": "--rows 15000",
    "speed lab": "--n 2000",
    "speed similarity": "--generated 200",
    "speed similarity search": "500",
    "speed similarity_few": "--items 6250",
    "speed scale covtype": "--rows 20000",
    "speed scale growth": "--rows 5000 20000",
    "speed scale dask": "--only 'on a Dask array' --repeats 1",
    "speed threads": "--learners SimilarityClassifierCV KreinRidge",
    "speed budget": "--data 'table 500 x 50' 'matrix 400' --budgets 10 --load 0",
}


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
                raise ValueError(
                    f"{group} {script} has no part {part!r}; it has {', '.join(known) or 'one part only'}"
                )
    return claims, rest
