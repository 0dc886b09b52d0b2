// SPDX-License-Identifier: Apache-2.0
// Pages are whole without this: it sorts and filters tables, and loads the page of an evaluation
// that is still running again. Text goes in as text only.
"use strict";

// A cell sorts by its key, else by its text; numbers by value.
function keyOf(row, column) {
  const cell = row.cells[column];
  if (!cell) return "";
  const text = cell.dataset.key || cell.textContent.trim();
  const number = Number(text);
  return text !== "" && !Number.isNaN(number) ? number : text.toLowerCase();
}

// What has no number, such as the speedup of a failed shape, comes last both up and down.
function compare(a, b, up) {
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1);
}

function makeSortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = heading.getAttribute("aria-sort") !== "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, column), row]);
      rows.sort((a, b) => compare(a[0], b[0], up));
      table.tBodies[0].replaceChildren(...rows.map((pair) => pair[1]));
    });
  });
}

// Rows with all of the words stay.
function makeFilterable(table) {
  const label = document.createElement("label");
  label.className = "filter";
  const input = document.createElement("input");
  input.type = "search";
  const count = document.createElement("output");
  label.append("Only rows with ", input, " ", count);
  table.closest("section").before(label);
  const rows = [...table.tBodies[0].rows].map((row) => [row.textContent.toLowerCase(), row]);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const [text, row] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) shown += 1;
    }
    count.textContent = shown + " of " + rows.length + " rows";
  });
}

function enhance(root) {
  root.querySelectorAll("table[data-sortable]").forEach(makeSortable);
  root.querySelectorAll("table[data-filterable]").forEach(makeFilterable);
}

// Replaces what is in <main> by what the server has now, until that asks for no more. A page opened
// from a file can only be loaded again whole.
function refresh() {
  const main = document.getElementById("main");
  const seconds = Number(main.dataset.refresh);
  if (!(seconds > 0)) return;
  const label = document.createElement("label");
  const wanted = document.createElement("input");
  wanted.type = "checkbox";
  wanted.checked = true;
  label.className = "refresh";
  label.append(wanted, " Refresh every " + seconds + " seconds");
  document.querySelector("nav").append(label);
  const again = () => setTimeout(load, seconds * 1000);
  const load = async () => {
    if (document.hidden || !wanted.checked) return again();
    if (location.protocol === "file:") return location.reload();
    try {
      const answer = await fetch(location.pathname, { cache: "no-cache" });
      if (!answer.ok) return again();
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("main");
      if (fresh && fresh.innerHTML !== seen) {
        seen = fresh.innerHTML;
        document.title = page.title;
        main.replaceChildren(...fresh.childNodes);
        enhance(main);
        if (!fresh.dataset.refresh) {
          main.removeAttribute("data-refresh");
          return label.remove();
        }
      }
    } catch {
      // The server is away for a moment.
    }
    again();
  };
  let seen = main.innerHTML;
  again();
}

enhance(document);
refresh();
