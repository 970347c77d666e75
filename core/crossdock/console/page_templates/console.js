// The console works without this script. It filters the rows of a table as one types, and follows what is running.
"use strict";
for (const input of document.querySelectorAll("input[data-filters]")) {
  const rows = document.querySelectorAll(`#${input.dataset.filters} tbody tr`);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}
