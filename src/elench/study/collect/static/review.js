// Before the task can be submitted, everything that is still on this device is sent.
"use strict";
(() => {
  const card = document.getElementById("review");
  const state = document.getElementById("state");
  const button = card.querySelector("button.primary");
  const flush = async () => {
    const paths = outbox.waiting();
    if (!paths.length) return;
    if (button) button.disabled = true;
    state.textContent = card.dataset.saving;
    try {
      for (const path of paths) await outbox.send(path, card.dataset.csrf);
      location.reload();
    } catch {
      state.textContent = card.dataset.lost;
      setTimeout(flush, 3000);
    }
  };
  flush();
  const form = card.querySelector("form");
  let sent = false;
  if (form) form.addEventListener("submit", (event) => { if (sent) event.preventDefault(); sent = true; });
})();
