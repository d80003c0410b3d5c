// Ratings that the server has not acknowledged yet, kept on this device for all items of a task: they are sent from
// whichever page of the task is open next, whatever happened to the tab in which they were given.
"use strict";
const outbox = (() => {
  const task = location.pathname.split("/").slice(0, 3).join("/");
  const name = "elench:" + task;
  const memory = {}; // where the browser has no storage
  const tab = (() => {
    try {
      const known = sessionStorage.getItem("elench:tab") || Math.random().toString(36).slice(2) + Date.now().toString(36);
      sessionStorage.setItem("elench:tab", known);
      return known;
    } catch { return ""; }
  })();

  const read = () => { try { return JSON.parse(localStorage.getItem(name)) || {}; } catch { return memory; } };
  const write = (all) => {
    try {
      if (Object.keys(all).length) localStorage.setItem(name, JSON.stringify(all));
      else localStorage.removeItem(name);
    } catch { Object.assign(memory, all); }
  };

  // fields: criterion → list of [field, value]
  const put = (path, fields, seen, seconds) => {
    const all = read();
    const entry = all[path] || { seen, tab, fields: {} };
    Object.assign(entry.fields, fields);
    entry.seconds = seconds;
    all[path] = entry;
    write(all);
  };

  const drop = (path, sent) => {
    const all = read();
    const entry = all[path];
    if (!entry) return;
    for (const [key, value] of Object.entries(sent || entry.fields)) {
      if (JSON.stringify(entry.fields[key]) === JSON.stringify(value)) delete entry.fields[key];
    }
    if (!Object.keys(entry.fields).length) delete all[path];
    write(all);
  };

  const post = (path, csrf, entry, go) => {
    const body = new URLSearchParams();
    for (const pairs of Object.values(entry.fields)) for (const [key, value] of pairs) body.append(key, value);
    body.set("csrf", csrf);
    body.set("tab", entry.tab);
    if (entry.seen !== undefined) body.set("seen", entry.seen);
    if (entry.seconds !== undefined) body.set("seconds", entry.seconds);
    if (go) body.set("go", go);
    return fetch(path, { method: "POST", body, headers: { accept: "application/json" } });
  };

  // Sends one entry. → {sent, reply} or {stale|closed|refused}; throws when the server does not answer.
  const send = async (path, csrf, go) => {
    const entry = read()[path] || { seen: undefined, tab, fields: {} };
    const sent = JSON.parse(JSON.stringify(entry.fields));
    const answer = await post(path, csrf, entry, go);
    if (answer.status >= 500 || answer.status === 429 || answer.status === 408) throw new Error(String(answer.status));
    const reply = await answer.json();
    if (answer.ok) {
      drop(path, sent);
      const all = read();
      if (all[path] && reply.seen) { all[path].seen = reply.seen; write(all); }
      return { sent: true, reply };
    }
    drop(path);
    if (reply.closed) write({});
    return { stale: reply.stale, closed: reply.closed, refused: reply.reason };
  };

  return { tab, read, put, send, waiting: () => Object.keys(read()) };
})();
