// Keep the researcher's figures fresh without losing the place on the page.
"use strict";
setInterval(async () => {
  const live = document.getElementById("live");
  if (document.hidden || live.contains(document.activeElement)) return; // never under a reader's keyboard
  try {
    const answer = await fetch("/admin");
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const name of ["live", "at"]) {
      const fresh = page.getElementById(name);
      if (fresh) document.getElementById(name).replaceChildren(...fresh.childNodes);
    }
  } catch { /* the server is away: the old figures stay */ }
}, 10000);
document.getElementById("join").addEventListener("focus", (event) => event.target.select());
