"""The Python sessions in the pages on the foundation give what they say, and so does the command's report."""

import doctest
import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import mercerless
from mercerless.cli import main

DOCS = Path(__file__).resolve().parents[1] / "docs"


QUICK = ("one-idea", "kernels", "spectra", "datasets", "saving", "tools")
PAGES = sorted(
    path.relative_to(DOCS).with_suffix("").as_posix()
    for folder in (DOCS, DOCS / "papers")
    for path in folder.glob("*.md")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[] if page in QUICK else [pytest.mark.slow]) for page in PAGES],
)
def test_sessions_in_the_documentation(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8").replace("```", "\n")
    session = doctest.DocTestParser().get_doctest(text, {}, page, f"{page}.md", 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(session).failed == 0


# What the blocks of code of a page take for granted: the reader's own data.
VECTORS = """
import numpy as np
rng = np.random.default_rng(0)
X, X_new, new = rng.uniform(size=(3, 120, 4))
y = (X[:, 0] > X[:, 1]).astype(int)
"""
MATRIX = """
from mercerless.datasets import load_digit_shapes
shapes = load_digit_shapes(150)
K, K_new, y = shapes.K[:100, :100], shapes.K[100:, :100], shapes.target[:100]
"""
HITS = f"""
import doctest
from pathlib import Path
page = Path({str(DOCS)!r}, "hits.md").read_text(encoding="utf-8").replace("```", "")
for example in doctest.DocTestParser().get_examples(page):
    exec(example.source)
    if "hit_matrix" in globals():
        break
names = ["seq%d" % i for i in range(40)]
def hit(query, subject):
    return "\\t".join([query, subject, *["1"] * 9, "100.0"]) + "\\n"
family_of = dict(zip(names, "ab" * 20))
related = [hit(q, s) for q in names for s in names if family_of[q] == family_of[s]]
Path("hits.tsv").write_text("".join(related))
Path("new-hits.tsv").write_text("".join(hit("new", s) for s in names[::2]))
rows = ["%s,%s\\n" % pair for pair in family_of.items()]
Path("families.csv").write_text("name,family\\n" + "".join(rows))
"""
READERS_DATA = {
    "../README": """
import pandas as pd
words = ["anna", "anne", "hanna", "johanna", "bob", "rob", "bobby", "robby", "hans", "hanne"] * 40
new_words = ["hannah", "bobo"]
frame = pd.DataFrame({"city": ["Rome", "Oslo"] * 200, "size": range(400)})
new_frame = frame[:5]
""",
    "compare": MATRIX,
    "dank": VECTORS + "rows = [0, 1]",
    "directed": "import numpy as np\n" + MATRIX + "K_back = K_new + 0.01",
    "hits": HITS,
    "hyper": "from sklearn.svm import SVC\n" + VECTORS + "S = X @ X.T",
    "krein": MATRIX + "words, languages, X = ['one', 'two', 'uno', 'due'] * 5, [0, 0, 1, 1] * 5, K",
    "lab": "from mercerless.kernels import LocalGaussian\n" + VECTORS + "y = X[:, 0]",
    "table": """
import pandas as pd
frame = pd.DataFrame({"city": ["Rome", "Oslo"] * 60, "size": range(120)})
labels, numbers, new, X = frame["size"] % 3 > 0, frame["size"] ** 0.5, frame[:5], frame
""",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", READERS_DATA)
def test_code_of_the_pages_runs(page, tmp_path, monkeypatch):
    """Blocks without a prompt, one after another, on data as the page describes them."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.S
    )
    assert blocks, "the page has no code left to run"
    names = {}
    exec(READERS_DATA[page], names)
    for block in blocks:
        exec(block.replace("compare(K, y)", "compare(K, y, budget='10s')"), names)


ROOT = DOCS.parent
MADE = ("gallery", "generated", "_build", "_extra")  # pages that make docs writes
WRITTEN = [
    *ROOT.glob("*.md"),
    *(p for p in DOCS.rglob("*.md") if p.relative_to(DOCS).parts[0] not in MADE),
]
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:href|src)=\"([^\"]+)\"")


def without_code(path):
    return re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(path):
    """What a link into a page may end in: its headings as GitHub writes them, and labels."""
    text = without_code(path)
    headings = [
        re.sub(r"[^\w\s-]", "", h).strip().lower()
        for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    ]
    return {re.sub(r"\s", "-", h) for h in headings} | set(
        re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)
    )


def broken(path, labels):
    """The links of a page that lead nowhere; external ones must only be well-formed, there is no network here."""
    found = []
    for link in (a or b for a, b in LINK.findall(without_code(path))):
        parts = urlsplit(link)
        target = path.parent / parts.path if parts.path else path
        if parts.scheme:
            good = parts.scheme in ("https", "mailto") and (
                "." in parts.netloc or parts.scheme == "mailto"
            )
        elif (
            parts.path in labels
            or parts.path == "sample-report.html"
            or parts.path.startswith(MADE)
        ):
            good = True
        else:
            good = target.exists() and (not parts.fragment or parts.fragment in anchors(target))
        found += [] if good else [link]
    return found


def test_links_lead_somewhere():
    labels = set().union(*(anchors(path) for path in WRITTEN))
    assert {path.name: links for path in WRITTEN if (links := broken(path, labels))} == {}


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading\n[a](page.md#a-heading) [b](none.md) [c](page.md#none) [d](http://x) `[e](f)` [g](https://h.org/i)\n"
    )
    assert broken(page, set()) == ["none.md", "page.md#none", "http://x"]


def test_attributes_on_the_pages_of_the_papers_exist():
    source = "".join(
        path.read_text(encoding="utf-8") for path in Path(mercerless.__file__).parent.rglob("*.py")
    )
    pages = [path.read_text(encoding="utf-8") for path in (DOCS / "papers").glob("*.md")]
    attributes = {name for page in pages for name in re.findall(r"`(\w+_)(?:\[\w+\])?`", page)}
    assert len(attributes) > 10
    assert {name for name in attributes if not re.search(rf"\b{name}\b", source)} == set()


def test_the_report_of_inspect_is_the_one_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["inspect"])
    assert capsys.readouterr().out in (DOCS / "spectra.md").read_text(encoding="utf-8")


def test_every_figure_of_the_gallery_has_a_title():
    """Its title is its alternative text; without one it is called by the name of the file."""
    for path in (DOCS / "examples").rglob("plot_*.py"):
        for part in path.read_text(encoding="utf-8").split("# %%"):
            for figure in part.split("plt.subplots(")[1:]:
                assert "title" in figure or "Display.from" in figure, f"{path.name}: {figure[:60]}"


LINKS = tomllib.loads((DOCS / "guides.toml").read_text(encoding="utf-8"))


def test_every_public_name_has_a_page_of_the_user_guide():
    pages = LINKS["pages"]
    assert {page for page in pages if not (DOCS / f"{page}.md").exists()} == set()
    names = [name for listed in pages.values() for name in listed]
    assert len(names) == len(set(names)), "a name has one page"
    assert set(mercerless.__all__) - set(names) == set()


def test_every_public_class_has_an_example():
    code = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "examples").rglob("*.py"))
    shown = [LINKS["examples"].get(name, name) for name in mercerless.__all__ if name[0].isupper()]
    assert {name for name in shown if not re.search(rf"\b{name}\(", code)} == set()
    unneeded = [name for name in LINKS["examples"] if re.search(rf"\b{name}\(", code)]
    assert unneeded == [], "they have examples of their own"


def test_every_page_is_in_the_table_of_contents():
    contents = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^(?:.*<)?([\w/-]+)>?$", contents, re.MULTILINE))
    assert {path.stem for path in DOCS.glob("*.md")} - listed == {"index"}


@pytest.mark.parametrize(
    "page",
    [ROOT / "CONTRIBUTING.md", DOCS / "how-a-fit-works.md"],
    ids=["CONTRIBUTING", "how-a-fit-works"],
)
def test_files_named_for_contributors_exist(page):
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/.-]+\.(?:py|toml|csv|md|txt))`", text))
    assert len(named) > 10
    folders = [Path(mercerless.__file__).parent, ROOT / "tests", ROOT / "benchmarks", DOCS]
    files = "\n".join(f"/{p.as_posix()}" for folder in folders for p in folder.rglob("*.*"))
    files += "".join(f"\n/{p.name}" for p in ROOT.glob("*.*"))
    assert {name for name in named if not re.search(rf"/{re.escape(name)}$", files, re.M)} == set()
