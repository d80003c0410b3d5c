// Sliders with nothing chosen until touched, saving while rating, and no loss when the connection drops.
"use strict";
(() => {
  const form = document.getElementById("rate");
  const state = document.getElementById("state");
  const path = location.pathname;
  const text = form.dataset;
  const csrf = form.elements.namedItem("csrf").value;
  form.noValidate = true; // what is missing is named below, in the language of the study
  const preview = Boolean(text.preview);
  let seen = Number(form.elements.namedItem("seen").value);

  const say = (words, lost) => {
    if (!state) return;
    state.textContent = words;
    state.classList.toggle("lost", Boolean(lost));
  };

  // How long this item has been looked at, over all visits from this device.
  const clock = "elench:seconds:" + path;
  let seconds = 0;
  try { seconds = Number(sessionStorage.getItem(clock)) || 0; } catch { /* counted for this visit only */ }
  let since = document.hidden ? null : performance.now();
  const looked = () => seconds + (since === null ? 0 : (performance.now() - since) / 1000);
  const keepTime = () => { try { sessionStorage.setItem(clock, String(looked())); } catch { /* no storage */ } };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { seconds = looked(); since = null; keepTime(); } else since = performance.now();
  });
  addEventListener("pagehide", keepTime);

  const sets = [...form.querySelectorAll("fieldset[data-criterion]")];
  const fieldsOf = (set) => {
    const data = new FormData(form);
    const names = new Set([...set.querySelectorAll("[name]")].map((input) => input.name));
    return [...names].flatMap((name) => data.getAll(name).filter((value) => value !== "").map((value) => [name, value]));
  };
  const complete = (set) => {
    const names = new Set([...set.querySelectorAll("[name]")].map((input) => input.name));
    const given = new Set(fieldsOf(set).map(([name]) => name));
    return [...names].every((name) => given.has(name));
  };

  const slider = (box) => {
    const number = box.querySelector("input");
    const set = box.closest("fieldset");
    const range = document.createElement("input");
    const { low, high } = box.dataset;
    Object.assign(range, { type: "range", min: 0, max: 100, step: 1, value: number.value || 50 });
    const span = text.fromTo.replace("{low}", low).replace("{high}", high);
    range.setAttribute("aria-label", set.querySelector("legend").textContent + " " + span);
    const ends = document.createElement("div");
    ends.className = "ends";
    ends.setAttribute("aria-hidden", "true");
    const [, hint] = [low, text.untouched, high].map((words) => {
      ends.append(Object.assign(document.createElement("span"), { textContent: words }));
      return ends.lastChild;
    });
    hint.className = "untouched-hint";
    const show = () => {
      const touched = number.value !== "";
      range.classList.toggle("untouched", !touched);
      hint.classList.toggle("touched", touched);
      range.setAttribute("aria-valuetext", touched ? text.of.replace("{value}", number.value) : text.untouched);
    };
    const commit = () => {
      if (number.value !== range.value) { number.value = range.value; show(); }
      save(set);
    };
    const restore = () => { range.value = number.value || 50; show(); };

    // A finger that scrolls the page must not rate: what a touch does to the slider counts only when the finger is
    // lifted without having scrolled.
    let finger = null; // where the touch began
    let ignore = false;
    range.addEventListener("pointerdown", (event) => {
      ignore = false;
      finger = event.pointerType === "mouse" ? null : { x: event.clientX, y: event.clientY };
    });
    range.addEventListener("pointercancel", () => { if (finger) { finger = null; ignore = true; restore(); } });
    range.addEventListener("pointerup", (event) => {
      if (!finger) return;
      const [dx, dy] = [Math.abs(event.clientX - finger.x), Math.abs(event.clientY - finger.y)];
      finger = null;
      if (dy > 10 && dy > dx) { ignore = true; restore(); return; }
      commit();
    });
    for (const kind of ["input", "change", "click"]) {
      range.addEventListener(kind, () => {
        if (finger) return;
        if (ignore) { restore(); return; }
        if (kind === "input") { number.value = range.value; show(); } else commit();
      });
    }
    range.addEventListener("keydown", (event) => {
      ignore = false;
      finger = null;
      if (event.key === " ") { event.preventDefault(); commit(); }
      if (event.key === "Enter" && !preview) { event.preventDefault(); form.requestSubmit(form.querySelector("button.primary")); }
    });
    number.addEventListener("kept", restore);
    number.type = "hidden";
    box.querySelector("label").hidden = true;
    box.append(range, ends);
    show();
  };

  // "Nothing is wrong" and marked words exclude each other.
  const spans = (set) => {
    const none = set.querySelector("[data-none]");
    const words = [...set.querySelectorAll(".word input")];
    set.addEventListener("change", (event) => {
      if (event.target === none && none.checked) words.forEach((word) => { word.checked = false; });
      else if (event.target !== none && event.target.checked) none.checked = false;
    }, true);
  };

  let waiting = null; // the button to repeat once the connection is back
  let leaving = false;
  let timer = null;
  let sending = Promise.resolve();

  const follow = (result) => {
    if (result.stale || result.closed) { leaving = true; location.reload(); return; }
    if (result.refused) { waiting = null; say(result.refused, true); return; }
    if (result.reply.seen) seen = Math.max(seen, result.reply.seen);
    say(text.saved);
    if (waiting && result.reply.next && !leaving) { leaving = true; keepTime(); location.assign(result.reply.next); return; }
    if (waiting && result.reply.incomplete) { waiting = null; say(text.all, true); }
  };
  const flush = async () => {
    if (leaving) return;
    try {
      for (const other of outbox.waiting()) if (other !== path) await outbox.send(other, csrf);
      if (waiting || outbox.waiting().includes(path)) follow(await outbox.send(path, csrf, waiting));
    } catch {
      say(text.lost, true);
      clearTimeout(timer);
      timer = setTimeout(queue, 3000);
    }
  };
  const queue = () => { sending = sending.then(flush); return sending; };

  const put = (some) => {
    const fields = {};
    for (const set of some) if (complete(set) || set.querySelector(".word, textarea")) {
      const pairs = fieldsOf(set);
      if (pairs.length) fields[set.dataset.criterion] = pairs;
    }
    if (Object.keys(fields).length) outbox.put(path, fields, seen, looked().toFixed(1));
    return Object.keys(fields).length > 0;
  };
  const last = {};
  const save = (set) => {
    if (preview) return;
    const now = JSON.stringify(fieldsOf(set));
    if (last[set.dataset.criterion] === now) return;
    last[set.dataset.criterion] = now;
    if (put([set])) queue();
  };

  form.querySelectorAll(".slider").forEach(slider);
  for (const set of sets) {
    if (set.querySelector(".word")) spans(set);
    if (!set.querySelector(".slider")) set.addEventListener("change", () => save(set));
  }

  // What an earlier visit could not send is shown again and sent now.
  const kept = outbox.read()[path];
  for (const pairs of kept ? Object.values(kept.fields) : []) {
    const names = new Set(pairs.map(([name]) => name));
    for (const input of form.querySelectorAll("[name]")) {
      if (!names.has(input.name)) continue;
      const values = pairs.filter(([name]) => name === input.name).map(([, value]) => value);
      if (input.type === "radio" || input.type === "checkbox") input.checked = values.includes(input.value);
      else { input.value = values[0]; input.dispatchEvent(new Event("kept")); }
    }
  }
  if (preview) return;
  queue();
  addEventListener("online", queue);

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (leaving || waiting) return; // a second press changes nothing
    const go = event.submitter ? event.submitter.value : "next";
    if (go === "next") {
      const open = sets.filter((set) => set.dataset.required === "yes" && (set.querySelector(".word") ? !fieldsOf(set).length : !complete(set)));
      sets.forEach((set) => set.classList.toggle("lacking", open.includes(set)));
      if (open.length) {
        say(text.all, true);
        open[0].querySelector("input:not([type=hidden]), select, textarea").focus();
        return;
      }
    }
    put(sets);
    waiting = go;
    say(text.saving);
    queue();
  });
})();
