"""Every claim: the script and the words that measure it, and the rows that it writes; claims.csv lists them."""

import csv
import os
import shlex
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Claim(NamedTuple):
    """One claim, measured by ``benchmarks/<group>/<script>.py <arguments>``."""

    group: str
    script: str
    part: str
    what: str
    results: str  # the name of the file of its rows
    arguments: str = ""
    full: str = ""  # further words for the paper's protocol
    reduced: str = ""  # further words that let the run of everything end within an hour
    needs_data: str = "yes"  # or no: whether it needs the data folder, $MERCERLESS_DATA

    @property
    def name(self):
        return " ".join(filter(None, (self.group, self.script, self.part)))

    @property
    def path(self):
        return HERE / self.group / f"{self.script}.py"

    @property
    def csv(self):
        return HERE / self.group / "results" / f"{self.results}.csv"

    def words(self, further=""):
        """The words after the name of the script."""
        return shlex.split(f"{self.arguments} {further}")

    def lacks_data(self):
        return self.needs_data == "yes" and not os.environ.get("MERCERLESS_DATA")


with open(HERE / "claims.csv", newline="", encoding="utf-8") as file:
    CLAIMS = tuple(Claim(**row) for row in csv.DictReader(file))


def chosen(words):
    """The claims that ``papers krein --table 3 --full`` names, and the options left for their scripts."""
    claims = CLAIMS
    words = parts_as_words(words)
    for field in Claim._fields[:3]:  # group, script and part
        if not words or words[0].startswith("-"):
            break
        word, *words = words
        known = list(dict.fromkeys(filter(None, (getattr(claim, field) for claim in claims))))
        if word.startswith("figure") and word not in known and "figures" in known:
            word = "figures"  # drawn together
        if word not in known:
            raise ValueError(f"no {field} is called {word!r}; there are {', '.join(known)}")
        claims = [claim for claim in claims if getattr(claim, field) == word]
    return claims, words


def parts_as_words(words):
    """``--table 3`` is the word ``table3``, ``--figure 2`` is ``figure2``."""
    out = list(words)
    for option in ("table", "figure"):
        if f"--{option}" in out[:-1]:
            at = out.index(f"--{option}")
            out[at : at + 2] = [f"{option}{out[at + 1]}"]
    return out
