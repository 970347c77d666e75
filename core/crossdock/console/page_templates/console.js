// The console works without this script. It filters the rows of long tables as one types, and renews what is running.
"use strict";
const LONG = 12; // rows

function addFilters(page) {
  for (const table of page.querySelectorAll(".wide > table:not(.calendar)")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length <= LONG) continue;
    const label = document.createElement("label");
    const input = document.createElement("input");
    label.className = "filter";
    input.type = "search";
    label.append(`Filter these ${rows.length} rows`, input);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    table.parentElement.before(label);
  }
}

// A person who types or has chosen a text is not disturbed.
function isInUse(page) {
  return page.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")
    || !document.getSelection().isCollapsed;
}

async function renew(page) {
  const next = () => setTimeout(renew, page.dataset.refreshes * 1000, page);
  if (document.hidden || isInUse(page)) return next();
  let renewed;
  try {
    const answer = await fetch(location.href);
    if (!answer.ok || answer.redirected) return next();
    renewed = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
  } catch {
    return next(); // the server may be back soon
  }
  if (isInUse(page)) return next();
  const details = [...page.querySelectorAll("details")].map((each) => each.open);
  const focused = page.contains(document.activeElement) && document.activeElement.getAttribute("href");
  page.replaceChildren(...renewed.childNodes);
  page.querySelectorAll("details").forEach((each, number) => { each.open = details[number] ?? each.open; });
  if (focused) [...page.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused)?.focus();
  addFilters(page);
  page.dataset.refreshes = renewed.dataset.refreshes ?? "";
  if (page.dataset.refreshes) next();
}

const page = document.querySelector("main");
addFilters(page);
if (page.dataset.refreshes) setTimeout(renew, page.dataset.refreshes * 1000, page);
