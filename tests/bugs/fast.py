"""Bugs in what makes kernels, strings and fits fast, and in what is foretold of their time."""

from bugs import Bug

FUNCTIONS, KERNELS = "test_functions.py", "test_kernels.py"

BUGS = [
    # strings
    Bug(
        "fast-jaro-directions",
        'if same and self.similarity.startswith("jaro"):',
        "if False:",
        f"{FUNCTIONS} -k short_and_long",
    ),
    Bug(
        "fast-strings-always-short",
        "return bool(np.sum(lengths > n_letters) <= most_longer * len(strings))",
        "return True",
        f"{FUNCTIONS} -k 'one_long or values_of_long'",
    ),
    Bug(
        "fast-strings-unchecked-columns",
        "        self._check_strings(columns, range(len(columns)))\n",
        "",
        f"{FUNCTIONS} -k no_string",
    ),
    # kernels
    Bug(
        "fast-pieces-skipped",
        "    for rows in _slices(0, len(block), height):\n        elementwise(block[rows])",
        "    for rows in _slices(0, height, height):\n        elementwise(block[rows])",
        f"{KERNELS} -k any_shape",
    ),
]
