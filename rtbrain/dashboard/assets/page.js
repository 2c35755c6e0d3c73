// What the page does with the values that the server sends as JSON: all names go in as text, never as markup.
window.rtbrain = (() => {
  const SILENT_MS = 4000; // the server sends several times a second; after so long it is gone
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = { solid: "", dashed: "6 4", dotted: "2 3", dotdash: "2 3 6 3", dashdot: "6 3 2 3" };
  const $ = (id) => document.getElementById(id);
  const clock = (ms, seconds = true) => new Date(ms).toLocaleTimeString([], { hourCycle: "h23", hour: "2-digit", minute: "2-digit", ...(seconds && { second: "2-digit" }) });
  const percent = (share) => `${Math.round(100 * share)} %`;
  let known = null, lastMinute = null, band = 0, heard = performance.now();

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function drawn(name, attributes = {}, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function head(reach, inside, above) { // the outline is at 1; `reach` says how far out there is something to see
    return drawn("svg", { class: "head", viewBox: `${-reach} ${-reach - 0.06} ${2 * reach} ${2 * reach}` },
      drawn("path", { d: "M -.16 -.99 L 0 -1.17 L .16 -.99" }),
      drawn("path", { d: "M -1 -.17 C -1.12 -.2 -1.12 .2 -1 .17 M 1 -.17 C 1.12 -.2 1.12 .2 1 .17" }),
      ...inside, drawn("circle", { r: 1 }), ...above);
  }

  function chip(look, text, name = "h3") {
    const made = element(name, {}, text);
    made.style.background = `linear-gradient(to top, #000a ${100 * look.stripe}%, ${look.colour} ${100 * look.stripe}%)`;
    return made;
  }

  function facts(source) {
    known = JSON.parse(source.data.json[0]);
    if (!known) return;
    $("bundle").textContent = `model ${known.bundle}${known.parity ? " (certified)" : ""}`;
    const from = known.source;
    $("source").textContent = from ? `stream ${from.name} at ${from.rate_hz} Hz${from.speed === 1 ? "" : `, speed ${from.speed}`}` : "";
    $("bars").replaceChildren(...known.classes.map((each) => {
      const sample = drawn("svg", { viewBox: "0 0 24 8" }, drawn("line", {
        x1: 0, x2: 24, y1: 4, y2: 4, stroke: each.colour, "stroke-width": 3, "stroke-dasharray": DASHES[each.dash] }));
      const filled = element("b", { style: `background:${each.colour}` });
      const row = element("div", { class: "bar" }, element("span", {}, sample, each.name), element("i", {}, filled), element("span"));
      row.dataset.name = each.name;
      return row;
    }));
    band = Math.min(band, known.bands.length - 1);
    $("bands").hidden = known.bands.length < 2;
    $("bands").replaceChildren(...known.bands.map((each, i) => {
      const button = element("button", { "aria-pressed": i === band }, `${each.name}, ${each.range}`);
      button.onclick = () => { band = i; showBand(); for (const other of $("bands").children) other.setAttribute("aria-pressed", other === button); };
      return button;
    }));
    const reach = Math.max(1.14, ...known.electrodes.map(({ x, y }) => Math.max(Math.abs(x) + 0.22, Math.abs(y) + 0.14)));
    const size = known.electrodes.length > 40 ? 0.85 : 1.15; // room for the names of a large cap
    $("quality").replaceChildren(head(reach, [], known.electrodes.map(({ name, x, y }) => {
      const made = drawn("g", { class: "electrode", transform: `translate(${x} ${-y}) scale(${size})` },
        drawn("circle", { r: 0.092 }), drawn("path", { d: "M -.12 -.12 L .12 .12 M -.12 .12 L .12 -.12" }), drawn("text"));
      made.lastChild.textContent = name;
      made.dataset.name = name;
      return made;
    })));
    showBand();
  }

  function showBand() {
    const own = known.bands[band];
    $("states").replaceChildren(...own.states.map((look, i) => {
      const image = look.image ? [drawn("image", { href: look.image, x: -1, y: -1, width: 2, height: 2 })] : [];
      const made = element("div", { class: "state" }, chip(look, String(i)), head(1.14, image, []),
        element("div", { class: "meter" }, element("b"), ...(own.training ? [element("i")] : [])),
        element("p", { class: "coverage" }), element("p", { class: "duration" }));
      made.dataset.state = i;
      return made;
    }));
    matrix($("moves-training"), own.states, own.training && own.training.transitions);
    showMinute();
  }

  function matrix(where, looks, values) {
    if (!values) { where.replaceChildren(element("p", { class: "small" }, "not known")); return; }
    const few = looks.length <= 8;
    const grid = element("div", { class: "matrix", style: `grid-template-columns:repeat(${looks.length + 1},minmax(0,1fr))` }, element("span"));
    const key = (look, i) => { const made = chip(look, few ? String(i) : "", "span"); made.className = "key"; return made; };
    grid.append(...looks.map(key));
    values.forEach((row, i) => {
      grid.append(key(looks[i], i));
      row.forEach((value, j) => {
        const cell = element("span", { title: `${i} to ${j}: ${percent(value)}` }, few && i !== j ? String(Math.round(100 * value)) : "");
        cell.style.background = `color-mix(in srgb, var(--accent) ${Math.round(85 * value)}%, var(--card))`;
        cell.dataset.value = value;
        grid.append(cell);
      });
    });
    where.replaceChildren(grid);
  }

  function minute(source) {
    lastMinute = JSON.parse(source.data.json[0]);
    if (lastMinute && known) showMinute();
  }

  function showMinute() {
    if (!lastMinute) return;
    const own = known.bands[band], now = lastMinute.bands[own.name], usual = own.training;
    if (!now) return;
    const most = Math.max(0.01, ...now.coverage, ...(usual ? usual.coverage : []));
    for (const card of $("states").children) {
      const i = Number(card.dataset.state);
      const [filled, mark] = card.querySelector(".meter").children;
      filled.style.width = `${100 * now.coverage[i] / most}%`;
      if (mark) mark.style.left = `${100 * usual.coverage[i] / most}%`;
      card.querySelector(".coverage").textContent = percent(now.coverage[i]) + (usual ? ` (${percent(usual.coverage[i])})` : "");
      const ms = (seconds) => Math.round(1000 * seconds);
      card.querySelector(".duration").textContent = `${ms(now.duration_s[i])} ms` + (usual ? ` (${ms(usual.duration_s[i])})` : "");
    }
    matrix($("moves-live"), own.states, now.transitions);
    for (const each of document.querySelectorAll(".electrode")) each.classList.toggle("lately", each.dataset.name in lastMinute.bad);
  }

  function present(source) {
    const now = JSON.parse(source.data.json[0]);
    if (!now) return;
    heard = performance.now();
    say(now.condition, now.headline, now.detail, now.since_s, now.now_s);
    if (now.decision) decision(now.decision);
    for (const card of document.querySelectorAll(".state")) {
      const active = now.active[known.bands[band].name];
      card.classList.toggle("active", now.condition === "live" && Number(card.dataset.state) === active && active !== null);
    }
    if (now.status) health(now.status, now.decision, now.missed);
  }

  function say(condition, headline, detail, since, now) {
    document.body.dataset.condition = condition;
    $("pill").textContent = condition;
    $("banner").hidden = !headline && !detail;
    $("headline").textContent = headline;
    $("since").textContent = since ? `since ${clock(1000 * since)} (${Math.max(0, Math.round(now - since))} s)` : "";
    $("detail").textContent = detail;
  }

  function decision(made) {
    document.body.dataset.seq = made.seq;
    document.querySelector(".hero").classList.toggle("doubted", !made.trusted);
    $("label").textContent = made.label;
    $("label").style.setProperty("--letters", Math.max(4, made.label.length));
    $("confidence").textContent = percent(made.confidence);
    $("trust").textContent = made.trusted ? "✓ trusted" : "✗ not trusted";
    $("trust").dataset.trusted = made.trusted;
    $("reasons").replaceChildren(...made.reasons.map((reason) => element("li", {}, reason)));
    for (const row of $("bars").children) {
      const share = made.probabilities[row.dataset.name] ?? 0;
      row.querySelector("b").style.width = `${100 * share}%`;
      row.lastChild.textContent = share.toFixed(3);
    }
    const context = made.context;
    $("context").textContent = `rests on ${context.seconds.toFixed(0)} s, ${context.tokens} tokens; context ${context.number} began by: ${context.began}`;
  }

  function health(status, made, missed) {
    const ms = (value) => (value === null || value === undefined ? "unknown" : `${Math.round(value)} ms`);
    const samples = status.samples, latency = status.latency, age = made && made.age;
    const parts = age && age.total_s !== null
      ? `transport ${ms(1000 * age.transport_s)}, computing ${ms(1000 * age.inference_s)}; filters add ${ms(1000 * age.filter_s)}` : "";
    const rows = [
      ["age p50", latency && ms(latency.p50_ms), "half of the newest decisions are younger"],
      ["age p99", latency && ms(latency.p99_ms), "99 of 100 are younger"],
      ["age now", age && ms(age.total_s === null ? null : 1000 * age.total_s), parts],
      ["samples lost", samples.lost, `of ${samples.received + samples.lost}; ${samples.skipped} of them skipped, ${samples.filled} filled`, samples.lost > 0],
      ["gaps", status.gaps, `${status.stalls} stalls of ${(status.away_s ?? 0).toFixed(1)} s in all, ${status.reconnects} reconnects, ${status.clock_steps} clock steps`, status.gaps > 0],
      ["messages missed", missed, "on the way to this page", missed > 0],
      ["decoder", percent(status.cpu_share), `of one core; ${Math.round(status.rss_mb)} MB; ${status.queue} samples wait`],
      ["session log", status.log.state, status.log.state === "off" ? "" : `${status.log.written} written, ${status.log.dropped} dropped`, status.log.state === "failing" || status.log.dropped > 0],
    ];
    $("health").replaceChildren(...rows.map(([name, value, note, warn]) => element("div", {}, element("dt", {}, name),
      element("dd", warn ? { class: "warn" } : {}, String(value ?? "–"), element("small", {}, note)))));
    const bad = new Set(status.bad_channels);
    for (const each of document.querySelectorAll(".electrode")) each.classList.toggle("bad", bad.has(each.dataset.name));
    const unplaced = known && known.unplaced.length ? `; without a known place: ${known.unplaced.join(", ")}` : "";
    $("quality-words").textContent = (bad.size ? `bad: ${[...bad].join(", ")}` : known ? "all good" : "") + unplaced;
  }

  function paint() { // Bokeh draws on a canvas, which the style sheet does not reach
    const style = getComputedStyle(document.documentElement);
    const [ink, rule] = ["--ink", "--rule"].map((name) => style.getPropertyValue(name).trim());
    for (const name of ["recent", "hour", "ribbon"]) {
      const plot = Bokeh.documents[0].get_model_by_name(name);
      for (const axis of [...plot.below, ...plot.left]) {
        Object.assign(axis, { major_label_text_color: ink, axis_line_color: rule,
          major_tick_line_color: rule, minor_tick_line_color: null, major_label_text_font_size: "13px" });
      }
      for (const grid of plot.center) if ("grid_line_color" in grid && grid.dimension === 1) grid.grid_line_color = name === "ribbon" ? null : rule;
    }
    Bokeh.documents[0].get_model_by_name("ribbon-numbers").visible = window.innerWidth >= 700;
  }

  function begin(known, lastMinute, now) {
    facts(known);
    minute(lastMinute);
    present(now);
    paint();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
    setInterval(() => {
      if (performance.now() - heard > SILENT_MS) say("offline", "This page has lost its server", "what it shows is old; it was stopped, or the network is down: reload once it is back");
    }, 1000);
  }

  return { begin, facts, minute, present, clock };
})();
