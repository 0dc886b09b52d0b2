// SPDX-License-Identifier: Apache-2.0
// Follows kjudge.js where kjudge serve was told to count: which metrics of a profile are opened or
// rested on in this visit, each once, and nothing of whose visit it is.
{
  const place = new URL("api/metrics", document.currentScript.src);
  const main = document.getElementById("main");
  const REST_MS = 1000;
  const seen = { opened: new Set(), rested: new Set() };
  let sent = { opened: 0, rested: 0 };
  let at = null, timer = 0;

  const metricOf = (element) => {
    const metric = element.closest("details.metric, table[data-filterable] tbody tr");
    const name = metric && metric.querySelector("summary code, th");
    return name && { metric, name: name.textContent };
  };
  const send = () => {
    const added = {};
    for (const kind of ["opened", "rested"]) {
      added[kind] = [...seen[kind]].slice(sent[kind]);
      sent[kind] = seen[kind].size;
    }
    if (added.opened.length + added.rested.length === 0) return;
    fetch(place, { method: "POST", body: JSON.stringify(added), keepalive: true,
                   headers: { "Content-Type": "application/json" } }).catch(() => {});
  };
  const count = () => {
    main.addEventListener("toggle", (event) => {
      const found = event.target.open && event.target.matches("details.metric") && metricOf(event.target);
      if (found) seen.opened.add(found.name);
    }, true);
    main.addEventListener("pointerover", (event) => {
      const found = metricOf(event.target);
      if (found && found.metric === at) return;
      clearTimeout(timer);
      at = found && found.metric;
      if (found) timer = setTimeout(() => seen.rested.add(found.name), REST_MS);
    });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) send();
    });
    addEventListener("pagehide", send);
  };

  if (main.querySelector("details.metric")) {
    const note = document.createElement("p");
    note.textContent = "The organizer counts which metrics are opened or rested on, and nothing about who does it; "
      + "a browser that asks not to be tracked is left out.";
    main.append(note);
    if (!navigator.globalPrivacyControl && navigator.doNotTrack !== "1") count();
  }
}
