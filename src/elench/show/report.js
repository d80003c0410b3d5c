"use strict";
(async () => {
  const el = id => document.getElementById(id), packed = el("data").textContent;
  if (typeof DecompressionStream === "undefined") {
    el("count").textContent = "This browser is too old to unpack the list of records."; return;
  }
  const bytes = Uint8Array.from(atob(packed), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const { specs, lower, rows } = JSON.parse(await new Response(stream).text());
  const RUN = 0, ID = 1, SYSTEM = 2, JUDGE = 3, TITLE = 4, VALUES = 5, DETAIL = 6, PAGE = 50;
  let by = null, down = false, shown = PAGE, chosen = [];
  const key = r => [r[RUN], r[ID], r[SYSTEM]].map(encodeURIComponent).join("/");
  const make = (tag, text, kind) => {
    const e = document.createElement(tag); if (text !== undefined) e.textContent = text; if (kind) e.className = kind; return e;
  };
  const number = v => v === null ? "–" : Math.abs(v) >= 100 ? v.toFixed(1) : v.toFixed(3);
  const used = () => specs.map((_, k) => k).filter(k => chosen.some(r => r[VALUES][k] !== null));

  function choose() {
    const words = el("find").value.toLowerCase(), system = el("system")?.value, judge = el("judge")?.value;
    chosen = rows.filter(r => (!system || r[SYSTEM] === system) && (!judge || r[JUDGE] === judge) &&
      (!words || r[ID].toLowerCase().includes(words) || r[TITLE].toLowerCase().includes(words) ||
       r[DETAIL].toLowerCase().includes(words)));
    if (by !== null) {
      const value = typeof by === "number" ? r => r[VALUES][by] : r => r[by === "id" ? ID : SYSTEM];
      chosen = chosen.filter(r => typeof by !== "number" || value(r) !== null);
      chosen.sort((a, b) => {
        const p = value(a), q = value(b), d = typeof p === "number" ? p - q : String(p).localeCompare(String(q), undefined, { numeric: true });
        return down ? -d : d;
      });
    }
    list(); plot();
  }

  function list() {
    const table = el("list"), columns = used(), systems = rows.some(r => r[SYSTEM]);
    const head = make("tr"), body = make("tbody");
    const column = (name, order, kind) => {
      const th = make("th", name, kind); th.dataset.by = order; th.scope = "col"; th.tabIndex = 0;
      if (by === order) th.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sort = () => { down = by === order ? !down : typeof order === "number" && lower[order]; by = order; choose(); };
      th.onclick = sort; th.onkeydown = e => { if (e.key === "Enter") sort(); };
      head.append(th);
    };
    const narrow = matchMedia("(max-width:44rem)").matches; // on a phone the score comes before the text
    column("id", "id", "l"); if (systems) column("system", "system", "l"); if (!narrow) head.append(make("th", "text", "l"));
    const front = typeof by === "number" ? by : columns[0];
    columns.forEach(k => column(specs[k], k, "s" + (k === front ? " on" : ""))); if (narrow) head.append(make("th", "text", "l"));
    chosen.slice(0, shown).forEach(r => {
      const tr = make("tr", undefined, "row"); tr.tabIndex = 0; tr.id = "r/" + key(r);
      tr.append(make("td", r[ID], "l")); if (systems) tr.append(make("td", r[SYSTEM], "l"));
      const title = make("td", r[TITLE], "t"); if (!narrow) tr.append(title);
      columns.forEach(k => tr.append(make("td", number(r[VALUES][k]), "s" + (k === front ? " on" : "")))); if (narrow) tr.append(title);
      tr.onclick = () => toggle(tr, r); tr.onkeydown = e => { if (e.key === "Enter") toggle(tr, r); };
      body.append(tr);
    });
    const thead = make("thead"); thead.append(head); table.replaceChildren(thead, body);
    const order = by === null ? "" : ", by " + (typeof by === "number" ? specs[by] : by);
    el("count").textContent = `${Math.min(shown, chosen.length)} of ${chosen.length} records${order}. Press a row for its texts and evidence, a column head to sort.`;
    el("more").hidden = shown >= chosen.length;
  }

  function toggle(tr, r) {
    if (tr.nextSibling?.className === "open") { tr.nextSibling.remove(); return; }
    const line = make("tr", undefined, "open"), cell = make("td", undefined, "detail"), box = make("div");
    const link = make("a", "link to this record");
    cell.colSpan = tr.children.length; link.href = "#r/" + key(r);
    if (r[DETAIL]) box.innerHTML = r[DETAIL]; // escaped when the report was made
    else box.append(make("p", "The texts of this record were left out to keep the file small."));
    box.style.width = el("list").parentElement.clientWidth + "px"; // as wide as the screen, however wide the table
    box.append(link); cell.append(box); line.append(cell); tr.after(line);
  }

  function open(address) {
    const r = rows.find(r => "r/" + key(r) === address);
    if (!r) return;
    if (!chosen.includes(r)) { el("find").value = ""; ["system", "judge"].forEach(n => { if (el(n)) el(n).value = ""; }); by = null; choose(); }
    shown = Math.max(shown, chosen.indexOf(r) + 1); list();
    const tr = el("r/" + key(r)); toggle(tr, r); tr.scrollIntoView();
  }

  const ranks = values => {
    const order = values.map((v, k) => [v, k]).sort((a, b) => a[0] - b[0]), out = [];
    for (let i = 0; i < order.length;) {
      let j = i; while (j < order.length && order[j][0] === order[i][0]) j++;
      for (let k = i; k < j; k++) out[order[k][1]] = (i + j - 1) / 2; i = j;
    }
    return out;
  };

  function plot() {
    if (!el("x")) return;
    const x = +el("x").value, y = +el("y").value;
    const both = chosen.filter(r => r[VALUES][x] !== null && r[VALUES][y] !== null);
    el("differ").replaceChildren();
    if (both.length < 2) { el("scatter").textContent = "Fewer than two of the records listed above have both scores."; return; }
    const xs = both.map(r => r[VALUES][x]), ys = both.map(r => r[VALUES][y]);
    const a = ranks(xs).map(v => lower[x] ? -v : v), b = ranks(ys).map(v => lower[y] ? -v : v);
    const turn = v => { const low = Math.min(...v); return v.map(z => z - low); };
    const p = turn(a), q = turn(b), gap = p.map((v, k) => (v - q[k]) / both.length);
    const far = gap.map((g, k) => [Math.abs(g), k]).sort((m, n) => n[0] - m[0]).slice(0, 8).filter(g => g[0] > Math.max(0.15, 3 / both.length)).map(g => g[1]);
    const W = 520, H = 340, L = 52, B = 40, span = v => { const lo = Math.min(...v), hi = Math.max(...v); return hi > lo ? [lo, hi] : [lo - .5, hi + .5]; };
    const [x0, x1] = span(xs), [y0, y1] = span(ys);
    const px = v => L + (v - x0) / (x1 - x0) * (W - L - 12), py = v => H - B - (v - y0) / (y1 - y0) * (H - B - 30);
    const ticks = (lo, hi) => {  // round numbers: steps of 1, 2, 2.5 or 5 times a power of ten
      const raw = (hi - lo) / 4, ten = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 2.5, 5, 10].find(m => m * ten >= raw) * ten, out = [];
      for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + step * 1e-9; k++) out.push(+(k * step).toPrecision(6));
      return out;
    };
    const NS = "http://www.w3.org/2000/svg", svg = document.createElementNS(NS, "svg");
    const add = (tag, attributes, text) => {
      const e = document.createElementNS(NS, tag); for (const n in attributes) e.setAttribute(n, attributes[n]);
      if (text !== undefined) e.textContent = text; svg.append(e); return e;
    };
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`); svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${specs[y]} against ${specs[x]}, ${both.length} records`);
    ticks(y0, y1).forEach(v => {
      add("line", { x1: L, x2: W - 12, y1: py(v), y2: py(v), class: "grid" });
      add("text", { x: L - 8, y: py(v) + 4, "text-anchor": "end", class: "small" }, v);
    });
    ticks(x0, x1).forEach(v => add("text", { x: px(v), y: H - B + 18, "text-anchor": "middle", class: "small" }, v));
    add("text", { x: (L + W) / 2, y: H - 6, "text-anchor": "middle" }, specs[x]); add("text", { x: 4, y: 10 }, specs[y]);
    both.forEach((r, k) => {
      const dot = add("circle", { cx: px(xs[k]).toFixed(1), cy: py(ys[k]).toFixed(1), r: 4, class: far.includes(k) ? "point far" : "point" });
      const tip = document.createElementNS(NS, "title"); tip.textContent = `${r[ID]} ${r[SYSTEM]}: ${number(xs[k])}, ${number(ys[k])}`;
      dot.append(tip); dot.onclick = () => { location.hash = "r/" + key(r); };
    });
    el("scatter").replaceChildren(svg);
    const head = make("p", far.length ? "The two metrics rank these records most differently (orange):" : "The two metrics rank the records much alike.", "note");
    const items = make("ul");
    far.forEach(k => {
      const li = make("li"), link = make("a", `${both[k][ID]} ${both[k][SYSTEM]}`.trim()); link.href = "#r/" + key(both[k]);
      li.append(link, `: ${specs[x]} ${number(xs[k])}, ${specs[y]} ${number(ys[k])}. ${both[k][TITLE]}`); items.append(li);
    });
    el("differ").append(head, items);
  }

  ["find", "system", "judge", "x", "y"].forEach(n => el(n)?.addEventListener("input", () => { shown = PAGE; n === "x" || n === "y" ? plot() : choose(); }));
  el("sort").addEventListener("input", e => { by = e.target.value === "" ? null : +e.target.value; down = by !== null && lower[by]; shown = PAGE; choose(); });
  el("more").onclick = () => { shown += PAGE * 4; list(); };
  addEventListener("hashchange", () => open(decodeURI(location.hash.slice(1)) && location.hash.slice(1)));
  choose();
  if (location.hash.startsWith("#r/")) open(location.hash.slice(1));
})();
