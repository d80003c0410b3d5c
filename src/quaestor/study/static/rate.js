// Sliders with nothing chosen until touched, saving while rating, and no loss when the connection drops.
"use strict";
(() => {
  const form = document.getElementById("rate");
  const state = document.getElementById("state");
  const kept = "quaestor:" + location.pathname; // answers not yet acknowledged by the server, on this device

  const say = (text, lost) => {
    state.textContent = text;
    state.classList.toggle("lost", Boolean(lost));
  };

  for (const box of form.querySelectorAll(".slider")) {
    const number = box.querySelector("input");
    const range = document.createElement("input");
    const { low, high } = box.dataset;
    Object.assign(range, { type: "range", min: 0, max: 100, step: 1, value: number.value || 50 });
    range.setAttribute("aria-label", box.closest("fieldset").querySelector("legend").textContent + " From " + low + " to " + high);
    const ends = document.createElement("div");
    ends.className = "ends";
    ends.setAttribute("aria-hidden", "true");
    const [, hint] = [low, "not rated yet", high].map((text) => {
      ends.append(Object.assign(document.createElement("span"), { textContent: text }));
      return ends.lastChild;
    });
    hint.className = "untouched-hint";
    const show = () => {
      const touched = number.value !== "";
      range.classList.toggle("untouched", !touched);
      hint.classList.toggle("touched", touched);
      range.setAttribute("aria-valuetext", touched ? number.value + " of 100" : "not rated yet");
    };
    const touch = () => {
      if (number.value === range.value) return;
      number.value = range.value;
      show();
    };
    range.addEventListener("input", touch);
    range.addEventListener("click", () => { touch(); save(number.name); });
    range.addEventListener("keydown", (event) => {
      if (event.key === " ") { event.preventDefault(); touch(); save(number.name); }
      if (event.key === "Enter" && !form.dataset.preview) { event.preventDefault(); form.requestSubmit(form.querySelector("button.primary")); }
    });
    range.addEventListener("change", () => { touch(); save(number.name); });
    number.addEventListener("kept", () => { range.value = number.value; show(); });
    number.type = "hidden";
    box.querySelector("label").hidden = true;
    box.append(range, ends);
    show();
  }

  for (const radio of form.querySelectorAll("input[type=radio]")) radio.addEventListener("change", () => save(radio.name));

  const read = () => { try { return JSON.parse(localStorage.getItem(kept)) || {}; } catch { return {}; } };
  const write = (answers) => {
    try {
      if (Object.keys(answers).length) localStorage.setItem(kept, JSON.stringify(answers));
      else localStorage.removeItem(kept);
    } catch { /* no storage in this browser: the server's copy remains */ }
  };

  const send = async (fields) => {
    const body = new URLSearchParams(fields);
    body.set("csrf", form.elements.csrf.value);
    const answer = await fetch(form.action, { method: "POST", body, headers: { accept: "application/json" } });
    if (answer.status === 409) { write({}); location.reload(); }
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  };

  let waiting = null; // the submit to repeat once the connection is back
  let timer = null;
  let sending = Promise.resolve();

  const flush = async () => {
    const answers = read();
    if (!waiting && !Object.keys(answers).length) return;
    try {
      const reply = await send(waiting ? { ...answers, ...waiting } : answers);
      const now = read();
      for (const name of Object.keys(answers)) if (now[name] === answers[name]) delete now[name];
      write(now);
      say("Saved");
      if (waiting && reply.next) { location.assign(reply.next); return; }
      if (waiting && reply.incomplete) { waiting = null; say("Please rate every statement before you go on.", true); }
    } catch {
      say("No connection. Your ratings are kept on this device and will be sent again.", true);
      clearTimeout(timer);
      timer = setTimeout(queue, 3000);
    }
  };
  const queue = () => { sending = sending.then(flush); return sending; };

  const save = (name) => {
    if (form.dataset.preview) return;
    const value = new FormData(form).get(name);
    if (value === null || value === "") return;
    const answers = read();
    if (answers[name] === value) return;
    answers[name] = value;
    write(answers);
    queue();
  };

  // What an earlier visit could not send is put back and sent now.
  for (const [name, value] of Object.entries(read())) {
    const field = form.elements[name];
    if (!field) continue;
    field.value = value;
    if (field.dispatchEvent && !(field instanceof RadioNodeList)) field.dispatchEvent(new Event("kept"));
  }
  if (form.dataset.preview) return;
  queue();
  addEventListener("online", queue);

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const go = event.submitter ? event.submitter.value : "next";
    const fields = Object.fromEntries([...new FormData(form)].filter(([name, value]) => name !== "csrf" && value !== ""));
    if (go === "next") {
      const open = [...form.querySelectorAll("fieldset")].filter((set) => ![...set.querySelectorAll("input[name]")].some(
        (input) => fields[input.name] !== undefined));
      form.querySelectorAll("fieldset").forEach((set) => set.classList.toggle("lacking", open.includes(set)));
      if (open.length) {
        say("Please rate every statement before you go on.", true);
        open[0].querySelector("input:not([type=hidden])").focus();
        return;
      }
    }
    const answers = read();
    write({ ...answers, ...fields });
    waiting = { ...fields, go };
    say("Saving …");
    queue();
  });
})();
