"""Numbers as people write them in tables: with a currency, a percent sign, or in parentheses if negative."""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple


class Amount(NamedTuple):
    """The parts of a number as it is written: its sign, its digits, and the currency or percent sign beside them."""

    sign: str
    digits: str
    mark: str
    in_parentheses: bool

    @property
    def is_zero(self) -> bool:
        """Whether the number is zero, which is the same in any currency."""
        return re.search("[1-9]", self.digits) is None


class Amounts(NamedTuple):
    """The cells of a column without the mark that all its numbers have."""

    cells: list[str]
    mark: str = ""


@cache
def _pattern() -> re.Pattern[str]:
    """Return the expression of a number with its marks."""
    currency = (
        r"[$\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u20ba]|US\$|EUR|USD|GBP|CHF|JPY|CNY|INR|AUD|CAD"
        r"|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|KRW|SGD|HKD|TRY|RUB"
    )
    sign = r"[+\-\u2212]?"
    space = r"[ \u00a0\u202f]?"
    thousands = r"[1-9]\d{0,2}(?:[.,' \u00a0\u202f\u2019]\d{3})+"
    digits = rf"(?=[.,]?\d)(?:0|{thousands}|[1-9]\d*)?(?:[.,]\d*)?(?:[eE][+-]?\d+)?"
    return re.compile(
        rf"(?P<open>\()?{space}(?P<outer>{sign})(?P<before>{currency})?{space}(?P<inner>{sign})"
        rf"(?P<digits>{digits}){space}(?P<after>{currency}|%)?{space}(?P<close>\))?"
    )


def read_amount(cell: str) -> Amount | None:
    """Return the parts of a number such as "-$1,200.50", "1.200,50 €", "EUR 12", "12.5 %" or "(1,200)"; else None.

    Numbers with a unit of measure are none, since a column may mix units, and so are those with leading zeros, which
    codes have.
    """
    parts = _pattern().fullmatch(cell.strip())
    if parts is None or (parts["before"] and parts["after"]):
        return None
    sign = (parts["outer"] + parts["inner"]).replace("\u2212", "-")
    in_parentheses = parts["open"] is not None
    if in_parentheses != (parts["close"] is not None):
        return None
    if len(sign) > 1 or (sign and in_parentheses):
        return None
    return Amount(sign, parts["digits"], parts["before"] or parts["after"] or "", in_parentheses)


def read_amounts(cells: Sequence[str]) -> Amounts:
    """Return the cells of a column without the currency or percent sign of its numbers.

    All numbers but zeros must have the same mark; otherwise the cells stay as they are. Numbers in parentheses are
    negative if the column also has numbers without.
    """
    amounts = [read_amount(cell) for cell in cells]
    numbers = [amount for amount in amounts if amount is not None]
    marks = {amount.mark for amount in numbers if not amount.is_zero}
    if len(marks) != 1:
        return Amounts(list(cells))
    are_negative = any(not amount.in_parentheses for amount in numbers)
    bare = []
    for cell, amount in zip(cells, amounts):
        if amount is None or (amount.in_parentheses and not are_negative):
            bare.append(cell)
        elif amount.in_parentheses:
            bare.append(f"-{amount.digits}")
        else:
            bare.append(amount.sign + amount.digits)
    return Amounts(bare, marks.pop())
