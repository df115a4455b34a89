"""From a file to a learning problem: what it holds is found out, noted and can be said otherwise."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercerless.comparison import files, tables
from mercerless.comparison.problem import Guess, Problem, listed, make_problem
from mercerless.spectra import KINDS, matrix_kind

DISTANCE_NAMES = ("d", "dist", "distance", "distances")
GROUP_COLUMNS = ("group", "groups")
SPLIT_COLUMNS = ("split", "partition", "subset")


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
) -> Problem:
    """Read a matrix, a table or items with their labels.

    Parameters
    ----------
    path : path-like
        A file of arrays (.npy, .npz, .mat), a table (text of any kind, .parquet, .feather, .xlsx), or sequences
        (.fasta), compressed or not; "-" is the standard input.
    labels : str or None, default=None
        A file with one label per item, or with their names and labels, or the column (or array) that holds them.
    kind, task : str or None, default=None
        What the data and labels are; None finds out.
    groups : str or None, default=None
        The column (or array, or file) of groups; None looks for one named "group"; "none" uses none.
    array : str or None, default=None
        The array of a file of several.
    drop : sequence of str, default=()
        Columns to leave out.
    use_split : bool, default=True
        Whether a split into training and test rows found in the file is kept.
    similarity : str or None, default=None
        How items are compared, by name or as "module:function".

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
    source = _Source(
        files.existing_file(path),
        labels,
        kind,
        task,
        groups,
        array,
        tuple(drop),
        similarity,
        use_split=use_split,
    )
    problem = source.read()
    options = {
        "labels": labels,
        "kind": problem.kind if problem.items is None else kind,
        "task": problem.task,
        "groups": groups,
        "array": array,
        "drop": list(drop) or None,
        "similarity": similarity,
        "use_split": None if use_split else False,
    }
    said = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    loading = f"problem = read_problem({os.fspath(path)!r}{said})\nX, y = problem.X, problem.y"
    return replace(problem, loading=loading)


@dataclass
class _Source:
    """A file and what was said about it; `read` finds out the rest and notes it in `guesses`."""

    path: Path
    labels: str | None
    kind: str | None
    task: str | None
    groups: str | None
    array: str | None
    drop: tuple[str, ...]
    similarity: str | None
    use_split: bool
    guesses: list[Guess] = field(default_factory=list)

    @property
    def what(self) -> str:
        return files.name_of(self.path)

    def guess(self, *guess: str) -> None:
        self.guesses.append(Guess(*guess))

    def make(self, X: Any, y: Any, groups: Any = None, **more: Any) -> Problem:
        name = "standard input" if str(self.path) == "-" else self.path.name
        more = {"kind": self.kind, "similarity": self.similarity, **more}
        return make_problem(
            X, y, task=self.task, groups=groups, name=name, guesses=self.guesses, **more
        )

    def read(self) -> Problem:
        if self._are_lines():
            return self._from_items(tables.read_lines(self.path), None)
        content = tables.read(self.path)
        if isinstance(content, dict):
            return self._from_arrays(content)
        if isinstance(content, tables.Items):
            self.guess("kind", "strings", "the file has sequences", "kind")
            return self._from_items(content.items, content.ids)
        return self._from_table(content)

    def label_file(self, name: str, known: Iterable[str]) -> str:
        if not Path(name).exists():
            raise ValueError(
                f"{name!r} is neither a file nor in {self.what}, which has {listed(known)}."
            )
        return name

    # ------------------------------------------------------------------------------------------------- items

    def _are_lines(self) -> bool:
        """Whether the file holds one text per line: said, or no columns and a word for every number in every line."""
        text = str(self.path) != "-" and files.format_of(self.path) in files.TEXT_SUFFIXES
        if (
            not text
            or self.labels is None
            or not Path(self.labels).is_file()
            or self.kind not in (None, "strings")
        ):
            return False
        lines = tables.read_lines(self.path)
        columns = any(mark in line for line in lines for mark in "\t;,|")
        if not lines or lines[0].startswith(">") or files.format_of(self.path) != ".txt":
            return (
                self.kind == "strings"
                and bool(lines)
                and not columns
                and not lines[0].startswith(">")
            )
        if self.kind == "strings":
            return True
        if columns or any(
            2 * sum(map(tables.is_number, line.split())) > len(line.split()) for line in lines
        ):
            return False
        self.guess("kind", "strings", "every line has words in it", "kind")
        return True

    def _from_items(self, items: Sequence[str], ids: Sequence[str] | None) -> Problem:
        if self.labels is None:
            raise ValueError(
                f"{self.what} has no labels; give them with --labels FILE, one per item."
            )
        y = tables.read_labels(self.label_file(self.labels, ()), len(items), ids)
        g = (
            None
            if self.groups in (None, "none")
            else tables.read_labels(self.groups, len(items), ids)
        )
        if len(items) == len(y) + 1 and self.kind == "strings":
            items = items[1:]  # a header
        return self.make(list(items), y, g, kind="strings", ids=ids)

    # ------------------------------------------------------------------------------------------------ arrays

    def _from_arrays(self, arrays: dict[str, NDArray]) -> Problem:
        name = files.find_matrix(arrays, self.path, self.array)
        base, side = files.split_name(name)
        if len(arrays) > 1 and self.array is None:
            self.guess("matrix", name, "its name in the file", "array")
        labels = (
            self.labels
            if self.labels in arrays
            else None
            if self.labels
            else files.find_labels(arrays)
        )
        if labels is None and self.labels is None:
            raise ValueError(
                f"{self.what} has no labels; give them with --labels FILE, one per item."
            )
        where = self.what if len(arrays) == 1 else f"{name!r} in {self.what}"
        X = arrays[name]
        n_items = None if X.ndim == 1 else len(X)
        if labels is None:
            y = tables.read_labels(self.label_file(self.labels or "", arrays), n_items)
        else:
            y = tables.label_values(arrays[labels], f"{labels!r} in {self.what}")
        if X.ndim == 1 and X.dtype.kind in "biuf":
            X = tables.from_condensed(X, where, len(y))
            self.guess(
                "matrix", f"{len(X)} x {len(X)}", f"{name} has the distances of all pairs", "array"
            )
        X = files.as_real(X, where)
        if self.kind is None and base in DISTANCE_NAMES and X.shape[0] == X.shape[1]:
            self.kind = "dissimilarity" if matrix_kind(X).kind == "dissimilarity" else "distance"
            self.guess("kind", self.kind, f"the array is named {name}", "kind")
        more = {}
        test = next((name for name in arrays if files.split_name(name) == (base, "test")), None)
        y_test = files.find_labels(arrays, "test")
        if (
            self.use_split
            and side != "test"
            and test is not None
            and y_test is not None
            and labels is not None
        ):
            more = {
                "X_test": arrays[test],
                "y_test": tables.label_values(arrays[y_test], f"{y_test!r} in {self.what}"),
            }
            self.guess(
                "split",
                f"{len(more['y_test'])} test items",
                f"the file has {test} and {y_test}",
                "no-split",
            )
        return self.make(X, y, self._array_groups(arrays, len(y)), **more)

    def _array_groups(self, arrays: dict[str, NDArray], n_items: int) -> NDArray | None:
        if self.groups == "none":
            return None
        if self.groups is not None:
            known = self.groups in arrays
            return (
                arrays[self.groups]
                if known
                else tables.read_labels(self.label_file(self.groups, arrays), n_items)
            )
        group = next((name for name in GROUP_COLUMNS if name in arrays), None)
        if group is not None:
            self.guess("groups", group, "its name in the file", "groups")
        return None if group is None else arrays[group]

    # ------------------------------------------------------------------------------------------------ tables

    def _from_table(self, table: tables.CellTable) -> Problem:
        names = list(map(str, table.frame.columns))
        for name in self.drop:
            if name not in names and not (
                table.ids is not None and name.lower() in tables.ID_NAMES
            ):
                raise ValueError(
                    f"{self.what} has no column {name!r} to drop; it has {listed(names)}."
                )
        table = table.without(self.drop)
        if self._is_pair_list(table):
            return self._from_pairs(table)
        if table.ids is not None and self.kind != "strings":
            self.guess(
                "names of the items",
                f"the first column ({listed(table.ids, 3)})",
                "it names the rows",
                "drop",
            )
        label = self._label_column(table)
        if label is not None and table.ragged:
            raise ValueError(f"{table.ragged}; {tables.UNEVEN}")
        y = (
            None
            if label is None
            else tables.parse_labels(table.text(label), f"column {label!r} of {self.what}")
        )
        rest = table.without([label])
        g, rest = self._table_groups(rest)
        test, rest = self._table_split(rest)
        if not rest.frame.shape[1]:
            raise ValueError(f"{self.what} has no columns beside the labels.")
        text = self._text_column(rest)
        if text is not None:
            y = self._labels(y, len(rest.frame), rest.ids)
            problem = self.make(rest.text(text), y, g, kind="strings", ids=rest.ids, test=test)
            problem = replace(problem, roles={text: "text"})
        elif self._is_matrix(rest, y):
            n_items = len(y) if y is not None else self._count_labels(rest)
            X, ids = tables.as_matrix(rest, n_items, gaps=True)
            if (
                rest.ragged
                or np.isnan(rest.frame.to_numpy(np.float64)).any()
                or len(X) != len(rest.frame)
            ):
                self.guess(
                    "matrix", f"{len(X)} x {len(X)}", "the file has one triangle of it", "kind"
                )
            problem = self.make(X, self._labels(y, len(X), ids), g, ids=ids, test=test)
        else:
            problem = self._from_columns(rest, self._labels(y, len(rest.frame), rest.ids), g, test)
        return problem

    def _labels(self, y: NDArray | None, n_items: int, ids: Sequence[str] | None) -> NDArray:
        return y if y is not None else tables.read_labels(self.labels or "", n_items, ids)

    def _count_labels(self, table: tables.CellTable) -> int:
        return (
            len(table.frame)
            if table.ids is not None
            else len(tables.read_labels(self.labels or ""))
        )

    def _from_columns(
        self, table: tables.CellTable, y: NDArray, groups: NDArray | None, test: NDArray | None
    ) -> Problem:
        if table.ragged:
            raise ValueError(f"{table.ragged}; {tables.UNEVEN}")
        mixed = [
            name
            for name, column in table.frame.items()
            if column.dtype.kind == "O" and _mostly_numbers(column.dropna().astype(str))
        ]
        tables.check_numbers(
            table, [*mixed, *table.frame.columns[[d.kind in "biuf" for d in table.frame.dtypes]]]
        )
        if self.kind is None:
            self.kind = "table"
            self.guess(
                "kind",
                "table",
                f"{table.frame.shape[0]} rows and {table.frame.shape[1]} columns",
                "kind",
            )
        return self.make(table.frame, y, groups, ids=table.ids, test=test)

    def _is_matrix(self, table: tables.CellTable, y: NDArray | None) -> bool:
        """Whether the columns are a square matrix, one triangle of it or the distances of all pairs."""
        if self.kind is not None:
            return self.kind in KINDS
        n_rows, n_columns = table.frame.shape
        if any(dtype.kind not in "biuf" for dtype in table.frame.dtypes):
            return (
                n_rows == n_columns
                and sum(dtype.kind in "biuf" for dtype in table.frame.dtypes) > n_columns / 2
            )
        if n_rows == n_columns or (n_columns == n_rows - 1 and table.frame.isna().to_numpy().any()):
            return True
        return (
            y is None
            and 1 in (n_rows, n_columns)
            and n_rows * n_columns > 2
            and self._count_labels(table) != n_rows
        )

    def _label_column(self, table: tables.CellTable) -> str | None:
        """Return the column of labels; None where they are in a file."""
        names = list(map(str, table.frame.columns))
        if self.labels is not None:
            if self.labels in names:
                return self.labels
            self.label_file(self.labels, names)
            return None
        column = next((name for name in names if name.lower() in files.LABEL_NAMES), None)
        if column is not None:
            self.guess("labels", f"column {column!r}", "its name", "labels")
            return column
        n_rows = len(table.frame)
        if len(names) in (1, n_rows, n_rows - 1) or n_rows == 1 or table.ragged:
            raise ValueError(
                f"{self.what} has no labels; give them with --labels FILE, one per item."
            )
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

    def _text_column(self, table: tables.CellTable) -> str | None:
        """Return the column of strings to compare, where that is what the file is for."""
        names = [
            str(name)
            for name, dtype in zip(table.frame.columns, table.frame.dtypes)
            if dtype.kind == "O"
        ]
        if self.kind not in (None, "strings") or (self.kind is None and self.similarity is None):
            only = (
                len(table.frame.columns) == 1 and len(names) == 1 and _is_text(table.text(names[0]))
            )
            return names[0] if self.kind is None and only else None
        texts = (
            [name for name in names if _is_text(table.text(name))]
            or names
            or [str(table.frame.columns[0])]
        )
        if len(texts) > 1:
            raise ValueError(
                f"{self.what} has several columns of text, {listed(texts)}; leave out all but the "
                "one to compare with "
                "--drop."
            )
        return texts[0]

    def _table_groups(self, table: tables.CellTable) -> tuple[NDArray | None, tables.CellTable]:
        names = list(map(str, table.frame.columns))
        name = self.groups
        if name == "none":
            return None, table
        if name is not None and name not in names:
            if Path(name).is_file():
                return tables.read_labels(name, len(table.frame), table.ids), table
            raise ValueError(f"{self.what} has no column {name!r}; it has {listed(names)}.")
        if name is None:
            name = next((column for column in names if column.lower() in GROUP_COLUMNS), None)
            if name is None:
                return None, table
            self.guess("groups", f"column {name!r}", "its name", "groups")
        return np.array(table.text(name)), table.without([name])

    def _table_split(self, table: tables.CellTable) -> tuple[NDArray | None, tables.CellTable]:
        """Take out a column that says train or test; True marks test rows."""
        for name in map(str, table.frame.columns):
            if name.lower() not in SPLIT_COLUMNS:
                continue
            cells = [cell.lower() for cell in table.text(name)]
            if set(cells) <= {"train", "training", "test", "testing"} and len(set(cells)) == 2:
                test = np.array([cell.startswith("test") for cell in cells])
                if self.use_split:
                    self.guess("split", f"{test.sum()} test items", f"column {name!r}", "no-split")
                return test if self.use_split else None, table.without([name])
        return None, table

    # ------------------------------------------------------------------------------------------------- pairs

    def _is_pair_list(self, table: tables.CellTable) -> bool:
        """Whether the rows are pairs: two columns with the same names and one of numbers, more rows than names."""
        if table.frame.shape[1] != 3 or table.ids is not None or self.kind in ("table", "strings"):
            return False
        if (
            self.labels is None
            or self.labels in table.frame.columns
            or table.frame.dtypes.iloc[2].kind not in "biuf"
        ):
            return False
        first, second = (set(table.text(str(name))) for name in table.frame.columns[:2])
        words = all(dtype.kind in "Oiu" for dtype in table.frame.dtypes[:2])
        return (
            words
            and len(first & second) >= 0.5 * min(len(first), len(second))
            and len(table.frame) > len(first)
        )

    def _from_pairs(self, table: tables.CellTable) -> Problem:
        """Make a list of pairs a matrix: a pair in one direction counts for both.

        Pairs that are not listed are the farthest, since lists mostly leave out what is unlike, as a search does; those
        listed without a number are unknown, and completed.
        """
        rows, columns, name = (str(name) for name in table.frame.columns)
        tables.check_numbers(table, [name])
        values = table.frame[name].to_numpy(np.float64)
        known = values[~np.isnan(values)]
        if not len(known):
            raise ValueError(f"{self.what} is a list of pairs, but column {name!r} has no number.")
        pairs = list(zip(table.text(rows), table.text(columns)))
        ids = sorted({item for pair in pairs for item in pair})
        kind = self.kind or self._kind_of_pairs(name, pairs, values)
        unknown = np.zeros((len(ids), len(ids)), dtype=bool)
        place = {item: i for i, item in enumerate(ids)}
        X = np.full((len(ids), len(ids)), np.nan)
        for row, ((a, b), value) in enumerate(zip(pairs, values)):
            if not np.isnan(X[place[a], place[b]]) and X[place[a], place[b]] != value:
                raise ValueError(
                    f"{table.at(row, name)}: the pair {a}, {b} comes twice with different numbers; "
                    "keep one."
                )
            X[place[a], place[b]] = value
            unknown[place[a], place[b]] = unknown[place[b], place[a]] = np.isnan(value)
        X = np.where(np.isnan(X), X.T, X)
        near, far = (0.0, known.max()) if kind == "distance" else (known.max(), 0.0)
        alone = np.isnan(np.diagonal(X))
        X[alone, alone] = near
        gaps = np.isnan(X) & ~unknown
        X[gaps] = far
        self.kind = kind
        filled = f"; {gaps.sum()} entries that it does not have are {far:g}" if gaps.any() else ""
        self.guess(
            "matrix",
            f"{len(ids)} x {len(ids)}",
            f"every row is a pair of items and a number{filled}",
            "kind",
        )
        if alone.any():
            self.guess(
                "diagonal",
                f"{near:g}",
                f"{alone.sum()} items are not compared with themselves",
                "kind",
            )
        return self.make(X, tables.read_labels(self.labels or "", len(ids), ids), ids=ids)

    def _kind_of_pairs(self, name: str, pairs: list[tuple[str, str]], values: NDArray) -> str:
        """Tell similarities from distances by the column's name or by the items' numbers with themselves."""
        named = name.lower()
        if named.startswith("dis") or named == "d":
            kind = "distance"
            why = f"the column is named {name!r}"
        elif named.startswith(("sim", "score", "weight", "kernel", "identity", "corr")):
            kind = "similarity"
            why = f"the column is named {name!r}"
        else:
            selves = [
                value for (a, b), value in zip(pairs, values) if a == b and not np.isnan(value)
            ]
            if not selves:
                raise ValueError(
                    f"{self.what} is a list of pairs, but are its numbers similarities or "
                    "distances? Say --kind "
                    "similarity or --kind distance."
                )
            kind = "distance" if max(selves) <= np.nanmin(values) else "similarity"
            why = "of the items with themselves"
        self.guess("kind", kind, why, "kind")
        return kind


def _mostly_numbers(cells: Any) -> bool:
    """Whether a column of text should be numbers: most cells are, or would be without thousands separators."""
    numbers = sum(map(tables.is_number, cells))
    separated = any("," in cell and tables.is_number(cell.replace(",", "")) for cell in cells)
    return numbers > 0.5 * len(cells) or separated


def _is_text(cells: list[str]) -> bool:
    """Whether a column holds strings to be compared: words, most of them different."""
    return len(set(cells)) > len(cells) / 2 and not any(map(tables.is_number, cells))
