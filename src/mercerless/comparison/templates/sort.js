for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const sign = head.ariaSort === "descending" ? 1 : -1;
      for (const other of heads) other.ariaSort = null;
      head.ariaSort = sign < 0 ? "descending" : "ascending";
      const before = (a, b) => {
        const [x, y] = [value(a, column), value(b, column)];
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return sign * (typeof x === "number" ? x - y : x.localeCompare(y));
      };
      body.append(...[...body.rows].sort(before));
    });
  });
}
