"""Every claim: the script and the words that measure it, and the rows that it writes; claims.csv lists them."""

import csv
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


def read_claims():
    with open(HERE / "claims.csv", newline="", encoding="utf-8") as file:
        return tuple(Claim(**row) for row in csv.DictReader(file))


CLAIMS = read_claims()


def chosen(words):
    """The claims that ``papers krein --table 3 --full`` asks for, and the options left for their scripts."""
    group, *rest = words
    claims = [claim for claim in CLAIMS if claim.group == group]
    if not rest or rest[0].startswith("-"):
        return claims, rest
    script, *rest = rest
    known = dict.fromkeys(claim.script for claim in claims)
    if script not in known:
        raise ValueError(f"{group} has no {script!r}; it has {', '.join(known)}")
    claims = [claim for claim in claims if claim.script == script]
    rest = parts_as_words(rest)
    if not rest or rest[0].startswith("-"):
        return claims, rest
    part, *rest = rest
    known = [claim.part for claim in claims if claim.part]
    if part.startswith("figure") and part not in known and "figures" in known:
        part = "figures"  # drawn together
    claims = [claim for claim in claims if claim.part == part]
    if not claims:
        parts = ", ".join(known) or "one part only"
        raise ValueError(f"{group} {script} has no part {part!r}; it has {parts}")
    return claims, rest


def parts_as_words(words):
    """``--table 3`` is the word ``table3``, ``--figure 2`` is ``figure2``."""
    out = list(words)
    for option in ("table", "figure"):
        if f"--{option}" in out[:-1]:
            at = out.index(f"--{option}")
            out[at : at + 2] = [f"{option}{out[at + 1]}"]
    return out
