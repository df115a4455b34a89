{
  const tables = [...document.querySelectorAll("table.portrait")];
  const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
  const box = document.createElement("input");
  const count = document.createElement("output");
  const filter = () => {
    const text = box.value.trim().toLowerCase();
    const matches = (row) =>
      [row.cells[0], row.cells[1]].some((cell) => cell.textContent.toLowerCase().includes(text));
    for (const row of rows) row.hidden = !matches(row);
    for (const table of tables) {
      const folded = table.closest("details");
      if (folded && text) folded.open = [...table.tBodies[0].rows].some((row) => !row.hidden);
    }
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = text ? ` ${shown} of ${rows.length}` : "";
  };
  box.type = "search";
  box.placeholder = "name or type";
  box.ariaLabel = "Filter columns by name or type";
  box.addEventListener("input", filter);
  if (rows.length > 1) {
    const line = document.createElement("p");
    line.className = "soft screen";
    line.append("Filter columns: ", box, count);
    tables[0].parentElement.before(line);
  }
}
