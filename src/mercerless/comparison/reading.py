"""Infer what a file holds and make it a learning problem; every guess is recorded and can be overridden."""

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercerless.comparison import arrays as arrays_module
from mercerless.comparison import files, formats, matrices
from mercerless.comparison.labels import (
    are_positions,
    label_names,
    label_values,
    parse_labels,
    read_labels,
)
from mercerless.comparison.limits import LIMITS, NAMES
from mercerless.comparison.problem import Guess, Problem, check_no_table, listed, make_problem
from mercerless.comparison.series import WARPING, warping_steps
from mercerless.comparison.tables import (
    MISSING,
    NONE,
    CellTable,
    Items,
    Pairs,
    counts_rows,
    is_number,
    is_plain_number,
    plain_numbers,
)
from mercerless.core.numerals import read_amounts
from mercerless.core.validation import guess_task
from mercerless.spectra import KINDS, matrix_kind

if TYPE_CHECKING:
    from pandas import Series


def read_problem(
    path: str | os.PathLike,
    *,
    labels: str | None = None,
    kind: str | None = None,
    task: str | None = None,
    groups: str | None = None,
    array: str | None = None,
    drop: Sequence[str] = (),
    use_split: bool = True,
    similarity: str | None = None,
    format: str | None = None,
    sheet: str | None = None,
    missing: Sequence[str] = (),
) -> Problem:
    """Read a matrix, a table, items or a graph with their labels.

    Rows without a label are left out, and their number is among the guesses of the problem.

    Parameters
    ----------
    path : path-like
        A file of arrays (.npy, .npz, .mat), a table (text of any kind, .parquet, .feather, .xlsx, .dta, .json, .arff,
        .libsvm),
        time series (.ts), sequences (.fasta), molecules (.smi), hits of a search (BLAST's outfmt 6) or a graph
        (.graphml, edge lists), compressed or not; "-" is the standard input. The content decides, not the ending.
    labels : str or None, default=None
        A file with one label per item, or with their names and labels, or the column (or array) that holds them.
    kind, task : str or None, default=None
        Kind of the data, and task; None infers them.
    groups : str or None, default=None
        The column (or array, or file) of groups; None looks for one named "group"; "none" uses none.
    array : str or None, default=None
        The array of a file of several; names with commas between them for several matrices of the same items.
    drop : sequence of str, default=()
        Columns to leave out.
    use_split : bool, default=True
        Whether a split into training and test rows in the file is kept.
    similarity : str or None, default=None
        How items are compared, by name or as "module:function".
    format : str or None, default=None
        The format of the file, such as "table", "fasta", "smi", "blast" or "lines"; None infers it.
    sheet : str or None, default=None
        The sheet of an Excel file, by name or number.
    missing : sequence of str, default=()
        Words or numbers that mean a missing value in this table, beside the usual ones, such as "unknown" or "-999".

    Returns
    -------
    Problem
        The checked problem.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mercerless.comparison import read_problem
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "plants.csv"
    ...     _ = path.write_text("height,leaf,label\\n" + 10 * "1.0,2.5,oak\\n3.0,0.5,ash\\n")
    ...     problem = read_problem(path)
    >>> problem.kind, problem.task, problem.X.shape
    ('table', 'classification', (20, 2))
    """
    options: dict[str, Any] = {
        "labels": labels,
        "kind": kind,
        "task": task,
        "groups": groups,
        "array": array,
        "drop": list(drop),
        "similarity": similarity,
        "use_split": use_split,
        "format": format,
        "sheet": sheet,
        "missing": list(missing),
    }
    source = _Source(files.existing_file(path), **options)
    problem = source.read()
    options["task"] = problem.task
    if problem.items is None:
        options["kind"] = problem.kind
    is_default = {name: value in (None, [], True) for name, value in options.items()}
    given = "".join(f", {name}={options[name]!r}" for name in options if not is_default[name])
    loading = f"problem = read_problem({os.fspath(path)!r}{given})\nX, y = problem.X, problem.y"
    return replace(
        problem,
        loading=loading,
        missing=tuple(missing),
        percents=source.percents,
        columns=source.columns,
    )


@dataclass
class _Source:
    """A file and the options that describe it; `read` infers the rest and records it in `guesses`."""

    path: Path
    labels: str | None
    kind: str | None
    task: str | None
    groups: str | None
    array: str | None
    drop: list[str]
    similarity: str | None
    use_split: bool
    format: str | None
    sheet: str | None
    missing: list[str]
    guesses: list[Guess] = field(default_factory=list)
    target: str | None = None  # the column of labels, once it is known
    percents: tuple[str, ...] = ()  # the columns with percent signs, once they are known
    columns: tuple[str, ...] = ()  # of a table without header, with the labels

    @property
    def what(self) -> str:
        return files.name_of(self.path)

    def guess(self, *guess: str) -> None:
        self.guesses.append(Guess(*guess))

    def make(self, X: Any, y: Any, groups: Any = None, **more: Any) -> Problem:
        name = "standard input" if str(self.path) == "-" else self.path.name
        more = {"kind": self.kind, "similarity": self.similarity, **more}
        return make_problem(
            X,
            y,
            task=self.task,
            groups=groups,
            name=name,
            target=self.target,
            guesses=self.guesses,
            **more,
        )

    def read(self) -> Problem:
        if self._are_lines():
            return self._from_items(files.read_lines(self.path), None)
        content = formats.read(self.path, self.format, self.sheet)
        if self.missing and not isinstance(content, CellTable):
            raise ValueError(f"--missing is for tables, and {self.what} is none; leave it out.")
        if isinstance(content, dict):
            return self._from_arrays(content)
        if isinstance(content, Items):
            self.guess("kind", "strings", "the file has sequences", "kind")
            return self._from_items(content.items, content.ids)
        if isinstance(content, Pairs):
            return self._from_pairs(content)
        return self._from_table(content)

    def label_file(self, name: str, known: Iterable[str]) -> str:
        if Path(name).exists():
            return name
        known = list(known)
        similar = get_close_matches(name.lower(), map(str.lower, known), n=1)
        remedy = f"which has {listed(known)}" if known else "so check the path"
        for candidate in known:
            if candidate.lower() in similar:
                remedy = f"which has {candidate!r}: say --labels {shlex.quote(candidate)}"
        raise ValueError(f"{name!r} is neither a file nor in {self.what}, {remedy}.")

    def no_labels(self, names: Iterable[str] = ()) -> ValueError:
        remedy = "give them with --labels FILE, one per item"
        names = list(names)
        if names:
            remedy += f", or name one of {listed(names)}"
        return ValueError(f"{self.what} has no labels; {remedy}.")

    # ------------------------------------------------------------------------------------------------- items

    def _are_lines(self) -> bool:
        """Whether every line is one text: by the format, or because there are no columns and mostly words."""
        if self.format == "lines":
            return True
        has_label_file = self.labels is not None and Path(self.labels).is_file()
        if self.format is not None or not has_label_file or not self.path.is_file():
            return False
        if self.kind not in (None, "strings"):
            return False
        file, form = files.open_file(self.path)
        file.close()
        if form != "table":
            return False
        lines = files.read_lines(self.path)
        if not lines:
            return False
        has_columns = any(mark in line for line in lines for mark in "\t;,|")
        is_plain = files.ending_of(self.path) in (".txt", "")
        if self.kind == "strings":
            return is_plain or not has_columns
        if not is_plain or has_columns or any(map(_mostly_numbers_in, lines)):
            return False
        if formats.looks_like_smiles("\n".join(lines)) or self._are_edges(lines):
            return False
        self.guess("kind", "strings", "every line has words in it", "kind")
        return True

    def _are_edges(self, lines: list[str]) -> bool:
        """Whether every line names two items of the file of labels."""
        pairs = [line.split()[:2] for line in lines if not line.startswith("#")]
        ends = [end for pair in pairs[1:] for end in pair]
        return all(len(pair) == 2 for pair in pairs) and self._are_labeled(ends)

    def _are_labeled(self, items: list[str]) -> bool:
        """Whether most of the items have a name in the file of labels."""
        if self.labels is None or not Path(self.labels).is_file():
            return False
        names = label_names(self.labels)
        n_named = sum(item in names for item in items)
        return n_named > LIMITS.named_ends * len(items)

    def _from_items(self, items: Sequence[str], ids: Sequence[str] | None) -> Problem:
        if self.labels is None:
            raise self.no_labels()
        y = self._file_labels(self.label_file(self.labels, ()), len(items), ids)
        groups = None
        if self.groups not in (None, "none"):
            groups = self._file_labels(self.groups or "", len(items), ids, "groups")
        if len(items) == len(y) + 1 and self.kind == "strings":
            items = items[1:]  # a header
        return self.make(list(items), y, groups, kind="strings", ids=ids)

    # ------------------------------------------------------------------------------------------------ arrays

    def _from_arrays(self, arrays: dict[str, NDArray]) -> Problem:
        names = [self.array]
        if self.array is not None and self.array not in arrays:
            names = [name.strip() for name in self.array.split(",")]
        name, *further = (arrays_module.find_matrix(arrays, self.path, one) for one in names)
        base, side = arrays_module.split_name(name)
        if len(arrays) > 1 and self.array is None:
            self.guess("matrix", name, "its name in the file", "array")
        X = arrays[name]
        label = self._label_array(arrays)
        if label is None:
            n_items = None if X.ndim == 1 else len(X)
            ids = None if n_items is None else arrays_module.find_names(arrays, n_items)
            y = self._file_labels(self.label_file(self.labels or "", arrays), n_items, ids)
        else:
            y = label_values(arrays[label], f"{label!r} in {self.what}")
        where = self.what if len(arrays) == 1 else f"{name!r} in {self.what}"
        if X.ndim == 1 and X.dtype.kind in "biuf":
            X = matrices.from_condensed(X, where, len(y))
            self.guess(
                "matrix", f"{len(X)} x {len(X)}", f"{name} has the distances of all pairs", "array"
            )
        X = arrays_module.as_real(X, where)
        if self.kind is None and base in NAMES.distances and X.shape[0] == X.shape[1]:
            self.kind = "dissimilarity" if matrix_kind(X).kind == "dissimilarity" else "distance"
            self.guess("kind", self.kind, f"the array is named {name}", "kind")
        tests = {}
        if self.use_split and side != "test" and label is not None:
            tests = self._test_arrays(arrays, base)
        groups = self._array_groups(arrays, len(y))
        ids = arrays_module.find_names(arrays, len(y))
        if not further:
            return self.make(X, y, groups, ids=ids, **tests)
        matrices_of = {one: self._further_matrix(arrays, one) for one in further}
        if tests:
            tests["X_test"] = {name: tests["X_test"]}
            tests["X_test"] |= {one: self._test_rows(arrays, one) for one in further}
        return self.make({name: X, **matrices_of}, y, groups, ids=ids, **tests)

    def _further_matrix(self, arrays: dict[str, NDArray], name: str) -> NDArray:
        return arrays_module.as_real(arrays[name], f"{name!r} in {self.what}")

    def _test_rows(self, arrays: dict[str, NDArray], name: str) -> NDArray:
        """Return the test rows of one of several matrices."""
        base = arrays_module.split_name(name)[0]
        for one in arrays:
            if arrays_module.split_name(one) == (base, "test"):
                return arrays[one]
        raise ValueError(
            f"{self.what} has test rows of the first matrix, but none named {name}_test; add them, "
            "or say --no-split."
        )

    def _label_array(self, arrays: dict[str, NDArray]) -> str | None:
        """Return the name of the array of labels; None if they are in another file."""
        if self.labels is not None:
            return self.labels if self.labels in arrays else None
        label = arrays_module.find_labels(arrays)
        if label is None:
            raise self.no_labels()
        return label

    def _test_arrays(self, arrays: dict[str, NDArray], base: str) -> dict[str, Any]:
        """Return the test set of the file, if there is one."""
        test = next(
            (name for name in arrays if arrays_module.split_name(name) == (base, "test")), None
        )
        label = arrays_module.find_labels(arrays, "test")
        if test is None or label is None:
            return {}
        y_test = label_values(arrays[label], f"{label!r} in {self.what}")
        self.guess(
            "split", f"{len(y_test)} test items", f"the file has {test} and {label}", "no-split"
        )
        return {"X_test": arrays[test], "y_test": y_test}

    def _array_groups(self, arrays: dict[str, NDArray], n_items: int) -> NDArray | None:
        if self.groups == "none":
            return None
        if self.groups is not None:
            if self.groups in arrays:
                return arrays[self.groups]
            ids = arrays_module.find_names(arrays, n_items)
            return self._file_labels(self.label_file(self.groups, arrays), n_items, ids, "groups")
        group = next((name for name in NAMES.groups if name in arrays), None)
        if group is None:
            return None
        self.guess("groups", group, "its name in the file", "groups")
        return arrays[group]

    # ------------------------------------------------------------------------------------------------ tables

    def _from_table(self, table: CellTable) -> Problem:
        if not table.named:
            self.columns = tuple(map(str, table.frame.columns))
        self._check_drop(table)
        table = table.without(self.drop)
        table = self._with_gaps(table)
        pairs = self._as_pairs(table)
        if pairs is not None:
            return self._from_pairs(pairs)
        self._note_format(table)
        label = self._label_column(table)
        if label is not None:
            self.target = label.strip() or None
            matrices.check_even(table)
        y = None if label is None else self._parse_column(table, label)
        self._choose_warping(table)
        if table.items and self.similarity is not None and y is not None:
            return self.make(list(table.items), y)
        rest = table.without([label])
        self._note_amounts(rest)
        groups, rest = self._table_groups(rest)
        test, rest = self._table_split(rest)
        if not rest.frame.shape[1]:
            raise ValueError(
                f"{self.what} has no columns beside the labels; give the data, or say which column "
                "has the labels with --labels."
            )
        if self.similarity == "dtw":
            y = self._labels(y, len(rest.frame), rest.ids)
            return self.make(self._rows_as_series(rest), y, groups, kind="distance")
        text = self._text_column(rest)
        if text is not None:
            y = self._labels(y, len(rest.frame), rest.ids)
            problem = self.make(rest.text(text), y, groups, kind="strings", ids=rest.ids, test=test)
            return replace(problem, roles={text: "text"})
        if self._is_matrix(rest, y):
            return self._from_square(rest, y, groups, test)
        y = self._labels(y, len(rest.frame), rest.ids)
        return self._from_columns(rest, y, groups, test)

    def _check_drop(self, table: CellTable) -> None:
        names = list(map(str, table.frame.columns))
        for name in self.drop:
            is_id = table.ids is not None and name.lower() in NAMES.ids
            if name not in names and not is_id:
                raise ValueError(
                    f"{self.what} has no column {name!r} to drop; it has {listed(names)}."
                )

    def _with_gaps(self, table: CellTable) -> CellTable:
        """Return the table with gaps for the words of `--missing`; raise if a word does not occur."""
        for word in self.missing:
            found = table.with_gaps([word])
            n_cells = int(found.frame.isna().sum().sum() - table.frame.isna().sum().sum())
            if not n_cells:
                raise ValueError(
                    f"{self.what} has no cell {word!r}, which --missing names; check its spelling."
                )
            self.guess("missing values", f"{n_cells} cells are {word!r}", "you said so", "missing")
        return table.with_gaps(self.missing)

    def _note_format(self, table: CellTable) -> None:
        """Record what the format implies, the column of names, and the meaning of the word "None"."""
        if table.kind is not None and self.kind is None:
            self.kind = table.kind
            reason = "R printed them" if table.kind == "distance" else "the lines are SMILES"
            self.guess("kind", table.kind, reason, "kind")
        if table.title and table.source is not None:
            why = f"it has one cell, all other lines {len(table.source.names)}"
            self.guess("left out", f"the first line, {table.title[:40]!r}", why, "format")
        if table.thousands:
            number = table.thousands.replace(".", "")
            why = f"read as {number}, since no number has other digits after a point"
            self.guess("numbers", f"such as {table.thousands}", why, "format")
        if table.summary:
            why = "its numbers are the sums or means of those above"
            self.guess("left out", f"the last row ({table.summary})", why, "format")
        if table.merged:
            self.guess("merged cells", table.merged, "only their first cell is filled", "sheet")
        if table.n_comments:
            n_lines = "1 line" if table.n_comments == 1 else f"{table.n_comments} lines"
            why = "a line that begins with # is a comment; put such cells in quotes"
            self.guess("left out", f"{n_lines} among the rows", why, "format")
        if table.ids is not None and self.kind != "strings":
            self.guess(
                "names of the items",
                f"the first column ({listed(table.ids, 3)})",
                "it names the rows",
                "drop",
            )
        if table.none_levels:
            columns = f"in {listed(table.none_levels)}"
            if table.none_is_missing:
                self.guess(NONE, f"a missing value {columns}", "columns of numbers have it", "drop")
            else:
                self.guess(NONE, f"a level {columns}", "no column of numbers has it", "drop")

    def _rows_as_series(self, table: CellTable) -> list[NDArray]:
        """Return the rows of a table of numbers as series of one length."""
        words = [str(name) for name, dtype in table.frame.dtypes.items() if dtype.kind not in "iuf"]
        if words:
            raise ValueError(
                f"{self.what} has words in {listed(words)}, and --similarity dtw compares series "
                f"of numbers; leave them out, such as with --drop {shlex.quote(words[0])}."
            )
        return list(table.frame.to_numpy(dtype=np.float64))

    def _choose_warping(self, table: CellTable) -> None:
        """Compare series of unequal length by time warping; stretch them on request or if that takes too long."""
        if not table.series or self.similarity is not None:
            return
        if (
            not table.items
            or self.kind is not None
            or warping_steps(table.items) > WARPING.most_steps
        ):
            why = "by linear interpolation; --similarity dtw compares them as they are"
            self.guess("series", f"{table.series}, stretched to one length", why, "similarity")
            return
        self.similarity = "dtw"
        why = "their lengths differ; --kind table stretches them to one length"
        self.guess("series", f"{table.series}, compared by dynamic time warping", why, "similarity")

    def _parse_column(self, table: CellTable, name: str) -> NDArray:
        """Return the labels of a column, and record which words among numbers count as missing."""
        if self.task is None and name in table.categories:
            self.task = "classification"
            self.guess("task", self.task, "the file says that they are categories", "task")
        cells = table.text(name)
        y = parse_labels(cells, f"column {name!r} of {self.what}", table.none_is_missing)
        if y.dtype.kind not in "iuf":
            return y
        plain = plain_numbers(cells)
        self._note_numbers([name], cells, plain, "task")
        words = {cell for cell in plain if cell not in MISSING and not is_plain_number(cell)}
        if words:
            why = "the other labels are numbers"
            self.guess("missing labels", listed(map(repr, sorted(words))), why, "task")
        return y

    def _labels(self, y: NDArray | None, n_items: int, ids: Sequence[str] | None) -> NDArray:
        return self._file_labels(self.labels or "", n_items, ids) if y is None else y

    def _file_labels(
        self, path: str, n_items: int | None, ids: Sequence[str] | None = None, what: str = "labels"
    ) -> NDArray:
        """Return the labels or groups of a file; record that they are in order if names could not be compared."""
        y = read_labels(path, n_items, ids)
        if label_names(path) and (ids is None or are_positions(ids)):
            why = f"the items of the data have no names to compare with those of the {what}"
            self.guess(what, "in the order of the items", why, what)
        return y

    def _count_labels(self, table: CellTable) -> int:
        if table.ids is not None:
            return len(table.frame)
        return len(read_labels(self.labels or ""))

    def _from_square(
        self, table: CellTable, y: NDArray | None, groups: NDArray | None, test: NDArray | None
    ) -> Problem:
        n_items = self._count_labels(table) if y is None else len(y)
        X, ids = matrices.as_matrix(table, n_items, gaps=True, kind=self.kind)
        if self.kind is None and table.named:
            names = tuple(map(str, table.frame.columns))
            rows = table.ids or ()
            names = () if are_positions(names) else names
            check_no_table(X, names, rows, self.what, "--kind {}")
        has_gaps = np.isnan(table.frame.to_numpy(np.float64)).any()
        if table.ragged or has_gaps or len(X) != len(table.frame):
            self.guess("matrix", f"{len(X)} x {len(X)}", "the file has one triangle of it", "kind")
            if self.kind is None and matrices.lacks_diagonal(table, len(X)):
                self.guess("diagonal", f"{X[0, 0]:g}", "the file lacks it", "kind")
        return self.make(X, self._labels(y, len(X), ids), groups, ids=ids, test=test)

    def _from_columns(
        self, table: CellTable, y: NDArray, groups: NDArray | None, test: NDArray | None
    ) -> Problem:
        matrices.check_even(table)
        frame = table.frame.copy()
        for name, column in table.frame.items():
            if name not in table.categories:
                frame[name] = self._cleaned(str(name), column)
            self._note_odd_numbers(str(name), frame[name])
        if self.kind is None:
            self.kind = "table"
            shape = f"{frame.shape[0]} rows and {frame.shape[1]} columns"
            self.guess("kind", "table", shape, "kind")
        return self.make(frame, y, groups, ids=table.ids, test=test)

    def _cleaned(self, name: str, column: "Series") -> "Series":
        """Return a column of numbers without stray words, which become gaps; anything else as it is."""
        if column.dtype.kind == "f":
            is_infinite = np.isinf(column)
            if is_infinite.any():
                self._note_gaps(name, f"{is_infinite.sum()} infinite numbers")
            return column.where(~is_infinite, np.nan)
        if column.dtype.kind != "O":
            return column
        cells = column.dropna().astype(str)
        plain = plain_numbers(list(cells))
        cleaned = cells.map(dict(zip(cells, plain)))
        is_word = ~cleaned.map(is_number).astype(bool)
        n_words = int(is_word.sum())
        if n_words >= (1 - LIMITS.numbers_in_column) * len(cells):
            return column
        words = sorted(set(cells[is_word]))
        if words and cells.nunique() <= LIMITS.mixed_levels and len(words) < n_words:
            what = f"column {name!r} with {listed(map(repr, words), 3)}"
            self.guess("categories", what, "it has few different values", "drop")
            return column
        self._note_numbers([name], list(cells), list(cleaned), "drop")
        if n_words:
            cell = "cell is" if n_words == 1 else "cells are"
            self._note_gaps(name, f"{n_words} {cell} {listed(map(repr, words), 3)}")
        numbers = cleaned.where(~is_word, "nan").astype(np.float64)
        numbers = numbers.where(np.isfinite(numbers), np.nan)
        return numbers.reindex(column.index)

    def _note_odd_numbers(self, name: str, column: "Series") -> None:
        """Record a column that counts the rows, and a number that may stand for a gap; both are used as they are."""
        if column.dtype.kind not in "iuf":
            return
        if counts_rows(column):
            why = "used as a number; if the rows are sorted by label, it gives the labels away"
            self.guess("counts the rows", f"column {name!r}", why, "drop")
        elif _may_number_rows(name, column):
            why = "used as a number; leave it out if it only numbers the rows"
            self.guess("different in every row", f"column {name!r}", why, "drop")
        for code in LIMITS.gap_codes:
            n_cells = int((column == code).sum())
            others = column[column != code].dropna()
            if n_cells < 2 or len(others) == 0:
                continue
            is_far = others.min() >= 0 if code < 0 else 3 * others.abs().max() < code
            if is_far:
                why = f"used as a number; say --missing {code} if it means a gap"
                self.guess("odd number", f"{code} in {n_cells} cells of {name!r}", why, "missing")

    def _note_amounts(self, table: CellTable) -> None:
        """Record columns of numbers that have a currency or a percent sign, once for each way to write them."""
        columns: dict[str, list[str]] = {}
        for name, cells in table.amounts.items():
            if name in table.frame.columns:
                mark = read_amounts(cells).mark
                columns.setdefault(mark, []).append(name)
        self.percents = tuple(columns.get("%", ()))
        for names in columns.values():
            cells = table.text(names[0])
            self._note_numbers(names, cells, plain_numbers(cells), "drop")

    def _note_numbers(
        self, names: list[str], cells: Sequence[str], plain: Sequence[str], option: str
    ) -> None:
        """Record how the numbers of columns are read if they are not written as plain numbers."""
        other = [pair for pair in zip(cells, plain) if pair[0] != pair[1] and is_number(pair[1])]
        if not other:
            return
        not_zero = [pair for pair in other if float(pair[1])] or other
        in_parentheses = [pair for pair in not_zero if pair[0].startswith("(")]
        cell, number = (in_parentheses or not_zero)[0]
        column = "column" if len(names) == 1 else "columns"
        what = f"{column} {listed(map(repr, names), 3)}, such as {cell}"
        self.guess("numbers", what, f"read as {float(number):.15g}", option)

    def _note_gaps(self, name: str, what: str) -> None:
        why = "taken as missing, since the column has numbers"
        self.guess("words among numbers", f"column {name!r}: {what}", why, "drop")

    def _is_matrix(self, table: CellTable, y: NDArray | None) -> bool:
        """Whether the columns are a square matrix, one triangle of it or the distances of all pairs."""
        if self.kind is not None:
            return self.kind in KINDS
        n_rows, n_columns = table.frame.shape
        n_numeric = sum(dtype.kind in "biuf" for dtype in table.frame.dtypes)
        if n_numeric < n_columns:
            return n_rows == n_columns and n_numeric > n_columns / 2
        if n_rows == n_columns:
            return True
        if n_columns == n_rows - 1 and table.frame.isna().to_numpy().any():
            return True
        is_vector = 1 in (n_rows, n_columns) and n_rows * n_columns > 2
        return y is None and is_vector and self._count_labels(table) != n_rows

    def _label_column(self, table: CellTable) -> str | None:
        """Return the column of labels; None if they are in a file."""
        names = list(map(str, table.frame.columns))
        if self.labels is not None:
            if self.labels in names:
                return self.labels
            self.label_file(self.labels, names)
            return None
        self._check_no_edges(names)
        usual = [name for name in names if name.lower() in NAMES.labels]
        if table.ids is not None and set(usual) & set(table.ids):
            usual = []  # an item of a matrix
        usual.sort(key=lambda name: name.lower() == "y")  # beside others it is a coordinate
        if usual:
            column, *others = usual
            kept = f"; {listed(map(repr, others))} is no label then" if others else ""
            self.guess("labels", f"column {column!r}", f"its name{kept}", "labels")
            return column
        if self._is_class_first(table):
            if self.kind is None:
                self.kind = "table"
            self.guess(
                "labels", f"column {names[0]!r}", "classes come first, then numbers", "labels"
            )
            return names[0]
        n_rows = len(table.frame)
        if len(names) == 1 and n_rows > 1 and table.source is not None:
            raise ValueError(
                f"{self.what} has one column and no labels; separate cells by commas, semicolons "
                "or tabs, or give the labels with --labels FILE, one per item."
            )
        if len(names) in (1, n_rows, n_rows - 1) or n_rows == 1 or table.ragged:
            raise self.no_labels()
        column = names[-1]
        why = "the last column"
        if (
            len(names) == 2
            and _is_text(table.text(names[1]))
            and not _is_text(table.text(names[0]))
        ):
            # label first, then the string
            column = names[0]
            why = "the column that repeats"
        self.guess("labels", f"column {column!r}", why, "labels")
        return column

    def _check_no_edges(self, names: list[str]) -> None:
        """Raise if the columns are those of a list of edges, whose "target" is no label."""
        if [name.lower() for name in names[:2]] == ["source", "target"] and len(names) < 4:
            raise ValueError(
                f"{self.what} seems to be a list of edges without labels of the items; give them "
                "with --labels FILE, one line with name and label per item, or say --labels "
                f"{shlex.quote(names[1])} if that is the label."
            )

    def _is_class_first(self, table: CellTable) -> bool:
        """Whether a table of numbers without header has its classes in front, as UCR's time series have.

        This holds if whole numbers of few values come before many columns of decimals, or if only the first column has
        consecutive codes and the last has too many values for classes. Raises if other columns may be classes, too.
        """
        frame = table.frame
        n_columns = frame.shape[1]
        is_numeric = all(dtype.kind in "iuf" for dtype in frame.dtypes)
        if table.named or table.ids is not None or not is_numeric or n_columns < 3 or table.ragged:
            return False
        first = frame.iloc[:, 0]
        last = frame.iloc[:, -1]
        if not _are_classes(first) or (_are_classes(last) and last.nunique() > 1):
            return False
        rest = frame.iloc[:, 1:]
        n_decimal = sum(not _is_whole(column) for _, column in rest.items())
        are_series = n_columns > LIMITS.series_columns and n_decimal > 0.9 * (n_columns - 1)
        if not are_series and (n_columns == len(frame) or not _are_codes(first)):
            return False
        if any(_are_codes(column) for _, column in rest.items()):
            classes = listed(map(int, np.unique(first)), 4)
            raise ValueError(
                f"{self.what} has no header, and its labels may be the classes {classes} in the "
                "first column or the numbers in the last; say --labels 'column 1' or --labels "
                f"'column {n_columns}'."
            )
        return True

    def _text_column(self, table: CellTable) -> str | None:
        """Return the column of strings to compare, or None if the file is a table."""
        columns = zip(table.frame.columns, table.frame.dtypes)
        words = [str(name) for name, dtype in columns if dtype.kind == "O"]
        if self.kind not in (None, "strings"):
            return None
        if self.kind is None and self.similarity is None:
            is_only = table.frame.shape[1] == 1 and len(words) == 1
            return words[0] if is_only and _is_text(table.text(words[0])) else None
        texts = [name for name in words if _is_text(table.text(name))]
        texts = texts or words or [str(table.frame.columns[0])]
        if len(texts) > 1:
            raise ValueError(
                f"{self.what} has several columns of text, {listed(texts)}; leave out all but the "
                f"one to compare, such as with --drop {shlex.quote(texts[-1])}."
            )
        return texts[0]

    def _table_groups(self, table: CellTable) -> tuple[NDArray | None, CellTable]:
        names = list(map(str, table.frame.columns))
        name = self.groups
        if name == "none":
            return None, table
        if name is not None and name not in names:
            if Path(name).is_file():
                return self._file_labels(name, len(table.frame), table.ids, "groups"), table
            raise ValueError(f"{self.what} has no column {name!r}; it has {listed(names)}.")
        if name is None:
            name = next((column for column in names if column.lower() in NAMES.groups), None)
            if name is None:
                return None, table
            self.guess("groups", f"column {name!r}", "its name", "groups")
        return np.array(table.text(name)), table.without([name])

    def _table_split(self, table: CellTable) -> tuple[NDArray | None, CellTable]:
        """Remove the column that marks training and test rows; return the rest, and True for test rows."""
        for name in map(str, table.frame.columns):
            if name.lower() not in NAMES.splits:
                continue
            cells = [cell.lower() for cell in table.text(name)]
            if set(cells) <= {"train", "training", "test", "testing"} and len(set(cells)) == 2:
                rest = table.without([name])
                if not self.use_split:
                    return None, rest
                test = np.array([cell.startswith("test") for cell in cells])
                self.guess("split", f"{test.sum()} test items", f"column {name!r}", "no-split")
                return test, rest
            if {"train", "test"} & set(cells) or {"training", "testing"} & set(cells):
                why = "it has other values than train and test, so it is a column like the others"
                self.guess("split", f"none by column {name!r}", why, "drop")
        return None, table

    # ------------------------------------------------------------------------------------------------- pairs

    def _as_pairs(self, table: CellTable) -> Pairs | None:
        """Return the rows as pairs of items if they are pairs with a number, or edges between labeled items."""
        is_excluded = table.ids is not None or self.kind in ("table", "strings")
        has_label_file = self.labels is not None and self.labels not in table.frame.columns
        if is_excluded or not has_label_file or table.frame.shape[1] < 2:
            return None
        names = list(map(str, table.frame.columns))
        if any(dtype.kind not in "Oiu" for dtype in table.frame.dtypes[:2]):
            return None
        first = table.text(names[0])
        second = table.text(names[1])
        if table.frame.shape[1] > 3:
            return self._as_hits(table, first, second)
        if table.frame.shape[1] == 2:
            if not self._are_labeled([*first, *second]):
                return None
            self._check_edges(table)
            ones = np.ones(len(first))
            why = "every row is an edge between two items"
            return Pairs(self.path, first, second, ones, "edge", why, kind="similarity")
        if table.frame.dtypes.iloc[2].kind not in "biuf":
            return None
        if not _share_names(first, second):
            return None
        matrices.check_numbers(table, [names[2]])
        values = table.frame[names[2]].to_numpy(np.float64)
        why = "every row is a pair of items and a number"
        return Pairs(self.path, first, second, values, names[2], why, lines=table.lines)

    def _check_edges(self, table: CellTable) -> None:
        """Raise if two columns of numbers with a label for every row may be a table as well as edges."""
        are_numbers = all(dtype.kind in "iu" for dtype in table.frame.dtypes)
        n_rows = len(table.frame)
        if self.kind is None and are_numbers and len(read_labels(self.labels or "")) == n_rows:
            raise ValueError(
                f"{self.what} has two columns of whole numbers and a label for every row; say "
                "--kind table for a table, or --kind similarity for edges between numbered items."
            )

    def _as_hits(self, table: CellTable, first: list[str], second: list[str]) -> Pairs | None:
        """Return pairs of items with several numbers by their bit scores; raise if there are none."""
        are_words = all(dtype.kind == "O" for dtype in table.frame.dtypes[:2])
        n_rows = len(table.frame)
        if not are_words or not _share_names(first, second):
            return None
        if len(read_labels(self.labels or "", n_rows)) == n_rows:  # a label for every row
            return None
        numbers = list(map(str, table.frame.columns[2:]))
        score = matrices.bit_score(table)
        if score is None:
            raise ValueError(
                f"{self.what} lists pairs of items with several columns, {listed(numbers)}; keep "
                "the one with their similarity or distance, and leave out the others, such as "
                f"with --drop {shlex.quote(numbers[-1])}."
            )
        return matrices.best_hits(table, score)

    def _from_pairs(self, pairs: Pairs) -> Problem:
        """Convert a list of pairs into a matrix, and record the numbers of pairs that are not listed."""
        kind = self.kind or pairs.kind
        if kind is None:
            kind = self._kind_of_pairs(pairs)
        elif self.kind is None:
            self.guess("kind", kind, f"the numbers are of the type {pairs.name}", "kind")
        self.kind = kind
        matrix = matrices.pair_matrix(pairs, kind)
        n_items = len(matrix.ids)
        filled = ""
        if matrix.n_unlisted:
            filled = f"; {matrix.n_unlisted} entries that it does not have are {matrix.far:g}"
        self.guess("matrix", f"{n_items} x {n_items}", f"{pairs.why}{filled}", "kind")
        if matrix.n_alone:
            why = f"{matrix.n_alone} items are not compared with themselves"
            self.guess("diagonal", f"{matrix.near:g}", why, "kind")
        return self.make(matrix.X, self._pair_labels(pairs, matrix.ids), ids=matrix.ids)

    def _pair_labels(self, pairs: Pairs, ids: list[str]) -> NDArray:
        """Return the labels of the items: from a file, or from the attributes of a graph's nodes."""
        attributes = pairs.attributes
        names = [] if attributes is None else list(map(str, attributes.columns))
        name = self.labels
        if name is None:
            name = next((column for column in names if column.lower() in NAMES.labels), None)
            if name is None:
                raise self.no_labels(names)
            self.guess("labels", f"attribute {name!r} of the nodes", "its name", "labels")
        if attributes is None or name not in names:
            path = self.label_file(name, names)
            if not label_names(path):
                raise ValueError(
                    f"{self.what} lists pairs of items, which have no order, and "
                    f"{files.name_of(Path(path))} has no names of the items; write the name and "
                    "the label of an item in each line, with a comma between them."
                )
            return self._file_labels(path, len(ids), ids)
        cells = attributes[name].reindex(ids).fillna("")
        return parse_labels(cells.tolist(), f"attribute {name!r} of {self.what}")

    def _kind_of_pairs(self, pairs: Pairs) -> str:
        """Distinguish similarities from distances by their name or by the items' numbers with themselves."""
        name = pairs.name.lower()
        if name.startswith("dis") or name == "d":
            kind = "distance"
            why = f"the column is named {pairs.name!r}"
        elif name.startswith(("sim", "score", "weight", "kernel", "identity", "corr")):
            kind = "similarity"
            why = f"the column is named {pairs.name!r}"
        else:
            is_self = np.array(pairs.first) == np.array(pairs.second)
            selves = pairs.values[is_self & ~np.isnan(pairs.values)]
            if not len(selves):
                raise ValueError(
                    f"{self.what} is a list of pairs, but are its numbers similarities or "
                    "distances? Say --kind similarity or --kind distance."
                )
            kind = "distance" if selves.max() <= np.nanmin(pairs.values) else "similarity"
            why = "of the items with themselves"
        self.guess("kind", kind, why, "kind")
        return kind


def _share_names(first: list[str], second: list[str]) -> bool:
    """Whether two columns name the same items, some of them repeatedly."""
    shared = set(first) & set(second)
    fewest = min(len(set(first)), len(set(second)))
    return len(shared) >= 0.5 * fewest and len(first) > len(set(first))


def _mostly_numbers_in(line: str) -> bool:
    """Whether more than half of the words of a line are numbers."""
    words = line.split()
    return 2 * sum(map(is_number, words)) > len(words)


def _is_text(cells: list[str]) -> bool:
    """Whether a column holds strings to be compared: words, most of them different."""
    return len(set(cells)) > len(cells) / 2 and not any(map(is_number, cells))


def _may_number_rows(name: str, column: "Series") -> bool:
    """Whether a column is named like a number of rows, and all its values are different whole numbers."""
    endings = r"(?:^|[ _.-])(?:id|ID|nr|no|number|key)$|[a-z](?:ID|Id|Nr|No)$"
    is_named_so = re.search(endings, name.strip()) is not None
    return is_named_so and column.dtype.kind in "iu" and bool(column.is_unique)


def _is_whole(column: "Series") -> bool:
    values = column.dropna().to_numpy(np.float64)
    return bool((values == np.round(values)).all())


def _are_classes(column: "Series") -> bool:
    """Whether a column of numbers may hold classes: whole numbers of few values."""
    values = column.to_numpy(np.float64)
    if not np.isfinite(values).all() or not _is_whole(column):
        return False
    if column.nunique() > LIMITS.leading_classes:
        return False
    return guess_task(values)[0] == "classification"


def _are_codes(column: "Series") -> bool:
    """Whether a column holds codes of classes: 0, 1, 2, ..., or 1, 2, 3, ..., or -1 and 1."""
    if not _are_classes(column):
        return False
    codes = np.unique(column)
    if codes.tolist() == [-1, 1]:
        return True
    return len(codes) > 1 and codes[0] in (0, 1) and bool((np.diff(codes) == 1).all())
