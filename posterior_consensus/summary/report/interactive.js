// Interactive figures of the report: one state, and functions that show it. Names are always set as text.
const look = (() => {
  "use strict";
  const MISSING = 65535, ROWS = 25, LISTED = 15, MATCHES = 12, REACH = 14, KEYED = 40, SURELY = 0.005;
  const SLIDERS = ["layer", "clusters", "threshold"];
  // From transparent to full colour, so that a matrix fits any background, on screen and on paper.
  const PALETTES = { light: ["#ffffff00", "#6baed6ff", "#08306bff"], dark: ["#2b7cc400", "#2b7cc480", "#2b8cdeff"] };
  const SHAPES = { circle: "●", square: "■", triangle: "▲", diamond: "◆", inverted_triangle: "▼", plus: "✚" };
  const TYPES = {
    uint8: Uint8Array, uint16: Uint16Array, int32: Int32Array, float32: Float32Array, float64: Float64Array,
  };
  const columnsOf = () => [
    ["item", i => meta.names[i]], ["cluster", i => meta.clusters[label(i)]],
    ["membership", i => value("membership", i)],
    ["similarity to own", i => value("own", i)], ["nearest cluster", i => nextName(i)],
    ["similarity to nearest", i => value("other", i)], ["margin", i => value("own", i) - value("other", i)],
  ];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const state = { partition: 0, order: "reported", on: [], selected: [], sort: 0, down: false, page: 0 };
  let meta, columns, arrays, models, mean, standing, position, bars, place, listed;

  const $ = id => document.getElementById(id);
  const row = () => meta.partitions[state.partition].row * meta.names.length;
  const byClusters = () => state.order === "reported" || state.order === "clusters";
  const isAbsent = cluster => meta.layers !== undefined && cluster === meta.clusters.length - 1;
  const label = i => arrays.labels[row() + i];
  const number = stored => stored === MISSING ? NaN : stored / 10000;
  const value = (name, i) => number(arrays[name][row() + i]);
  const nextName = i => arrays.nearest[row() + i] < 0 ? "" : meta.clusters[arrays.nearest[row() + i]];
  const text = number => Number.isNaN(number) ? "–" : number.toFixed(2);
  // Bokeh treats these as formulas, and garbles them without its library for formulas.
  const noFormula = name => name.replace(/\$\$|\\[([]/g, found => `${found[0]}\u200b${found[1]}`);
  const nameOf = i => meta.names[i].trim() ? meta.names[i] : "(no name)";
  const short = name => name.length > 60 ? name.slice(0, 59) + "…" : name;

  function element(tag, words, attributes = {}) {
    const made = Object.assign(document.createElement(tag), attributes);
    made.textContent = words;
    return made;
  }

  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const whole = await new Response(stream).arrayBuffer();
    const length = Number(new DataView(whole).getBigUint64(0, true));
    meta = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 8, length)));
    arrays = {};
    for (const [name, { dtype, at, size }] of Object.entries(meta.arrays))
      arrays[name] = new TYPES[dtype](whole, 8 + length + at, size);
  }

  async function begin(found) {
    models = found;
    await unpack($("payload").textContent);
    columns = columnsOf();
    state.on = meta.chains.map((_, c) => meta.layers === undefined || c === 0);
    place = new Map([...arrays.shown].map((item, k) => [item, k]));
    $("notes").textContent = meta.notes.join(" ");
    fillControls();
    fillTableControls();
    average();
    theme();
    if (matchMedia("(pointer: coarse)").matches)  // scrolling the page by finger must not drag the figures
      for (const plot of pictures())
        for (const tool of plot.toolbar.tools) if (tool.active) tool.active = false;
    dark.addEventListener("change", theme);
    showAll();
    nameTools();
    $("look").dataset.ready = "yes";
  }

  // Similarities of the items in the figures: mean over the chains selected.
  function average() {
    const m = arrays.shown.length, n_pairs = m * (m - 1) / 2;
    const total = meta.chains.reduce((sum, chain, c) => sum + (state.on[c] ? chain.share : 0), 0);
    const weights = meta.chains.map((chain, c) => state.on[c] ? chain.share / total : 0);
    mean = new Float32Array(m * m);
    for (let i = 0, pair = 0; i < m; i++) {
      mean[i * m + i] = 255;
      for (let j = i + 1; j < m; j++, pair++) {
        let sum = 0;
        for (let c = 0; c < weights.length; c++) sum += weights[c] * arrays.similarities[c * n_pairs + pair];
        mean[i * m + j] = mean[j * m + i] = sum;
      }
    }
  }

  function arrange() {
    const m = arrays.shown.length, base = new Int32Array(m);
    arrays.order.forEach((k, rank) => { base[k] = rank; });
    const n = meta.names.length, item = k => arrays.shown[k], labels = row => k => arrays.labels[row * n + item(k)];
    // Clusters of all layers, one after the other, or of the partition reported: the order of the still figures.
    const reported = meta.layers === undefined ? [labels(0)] : meta.partitions.map(one => labels(one.row));
    const keys = { reported, clusters: [k => label(item(k))], data: [k => k], along: [k => arrays.along[k]] }[state.order];
    const by = (a, b) => keys.reduce((found, key) => found || key(a) - key(b), 0);
    const all = Int32Array.from({ length: m }, (_, k) => k);
    standing = all.slice().sort((a, b) => by(a, b) || base[a] - base[b]);
    position = ranks(standing);
    // Within a cluster, the still figure has bars by their height.
    const from = state.order === "reported" ? 0 : row(), height = name => k => number(arrays[name][from + item(k)]) || 0;
    const [own, other] = [height("own"), height("other")];
    bars = byClusters() && meta.layers === undefined
      ? all.sort((a, b) => by(a, b) || own(b) - own(a) || other(a) - other(b)) : standing;
  }

  function ranks(order) {
    const found = new Int32Array(order.length);
    order.forEach((k, rank) => { found[k] = rank; });
    return found;
  }

  function showMatrix() {
    const m = standing.length, shown = new Uint8Array(m * m);
    for (let r = 0; r < m; r++)
      for (let s = 0, from = standing[r] * m; s < m; s++) shown[r * m + s] = Math.round(mean[from + standing[s]]);
    const Image = models.image.data.image[0].constructor;
    models.image.data = { image: [new Image(shown.buffer, [m, m])], size: [m] };
    Object.assign(models.matrix.x_range, { start: 0, end: m, reset_start: 0, reset_end: m });
    Object.assign(models.matrix.y_range, { start: m, end: 0, reset_start: m, reset_end: 0 });
    const runs = [];
    standing.forEach((k, rank) => {
      const cluster = label(arrays.shown[k]), last = runs.at(-1);
      if (last?.cluster === cluster) last.end = rank + 1;
      else runs.push({ cluster, start: rank, end: rank + 1 });
    });
    const colour = runs.map(run => meta.colours[run.cluster]), edge = m / 60;
    const starts = runs.map(run => run.start), ends = runs.map(run => run.end);
    models.strip.data = {
      left: [...starts, ...runs.map(() => 0)], right: [...ends, ...runs.map(() => edge)],
      top: [...runs.map(() => 0), ...starts], bottom: [...runs.map(() => edge), ...ends], colour: [...colour, ...colour],
    };
    const outlined = byClusters() ? runs : [];
    models.blocks.data = {
      left: outlined.map(run => run.start), right: outlined.map(run => run.end), top: outlined.map(run => run.start),
      bottom: outlined.map(run => run.end),
    };
    const order = $("order").selectedOptions[0].textContent;
    for (const axis of [models.matrix.below[0], models.matrix.left[0]]) axis.axis_label = `items, in the order of ${order}`;
  }

  function showItems() {
    const m = standing.length, column = name => [...arrays.features.subarray(m * name, m * (name + 1))];
    const own = [...arrays.shown].map(i => value("own", i));
    const axis = id => $(id).value === "own" ? own : column(Number($(id).value));
    const clusters = [...arrays.shown].map(label);
    models.items.data = {
      x: axis("across"), y: axis("upwards"), rank: [...ranks(bars)].map(rank => rank + 0.5), own,
      other: [...arrays.shown].map(i => value("other", i)), colour: clusters.map(k => meta.colours[k]),
      marker: clusters.map(k => meta.markers[k]),
    };
    for (const [side, id] of [["below", "across"], ["left", "upwards"]])
      models.scatter[side][0].axis_label = noFormula(short($(id).selectedOptions[0].textContent));
    Object.assign(models.bars.x_range, { start: 0, end: m, reset_start: 0, reset_end: m });
  }

  function showAll() {
    arrange();
    showMatrix();
    showItems();
    const shown = meta.partitions[state.partition], order = $("order").selectedOptions[0].textContent;
    const count = fillClusters(), clusters = `, ${count} ${count === 1 ? "cluster" : "clusters"}`;
    const explored = meta.layers === undefined && !(shown.row === 0 && state.on.every(Boolean));
    const more = explored ? " Not the reported result." : "";
    $("partition").textContent = `Shown: ${shown.words}${shown.kind === "mode" ? clusters : ""}.${more}`;
    $("partition").classList.toggle("explored", explored);
    for (const [id, words] of [
      ["of-matrix", "Similarity matrix"], ["of-scatter", "Items"],
      ["of-bars", "Mean similarity to own and nearest cluster"],
    ]) $(id).setAttribute("aria-label", `${words} of ${standing.length} items, ${count} clusters, order: ${order}`);
    for (const id of SLIDERS) {
      $(`for-${id}`).classList.toggle("used", shown.kind === id);
      $(`of-${id}`).textContent = shown.kind === id ? shown.value : "–";
    }
    showTable();
    mark();
  }

  // Controls
  function fillControls() {
    const first = meta.layers === undefined ? "clusters reported" : `clusters of ${meta.partitions[0].value}`;
    const orders = [["reported", first], ["clusters", "clusters shown"], ["data", "the data"]];
    if (meta.coordinate !== null) orders.push(["along", meta.coordinate]);
    $("order").replaceChildren(...orders.map(([value, words]) => element("option", words, { value })));
    $("order").onchange = () => { state.order = $("order").value; showAll(); };
    meta.partitions.forEach((one, k) => { if (one.kind === "mode") $("modes").append(radio(one, k)); });
    for (const id of SLIDERS) slider(id);
    $("modes").hidden = meta.layers !== undefined;
    $("name-of-layers").textContent = meta.layers;
    meta.chains.forEach((chain, c) => $("chains").append(checkbox(chain, c)));
    $("explore").hidden = meta.layers !== undefined || meta.partitions.length + meta.chains.length === 2;
    $("chains").hidden = meta.chains.length === 1 || meta.layers !== undefined;
    const features = meta.features.map((words, value) => element("option", words, { value }));
    features.push(element("option", "mean similarity to own cluster", { value: "own" }));
    const isData = k => k < meta.n_data;
    for (const [id, at] of [["across", 0], ["upwards", isData(0) && !isData(1) ? features.length - 1 : 1]]) {
      $(id).replaceChildren(...features.map(option => option.cloneNode(true)));
      $(id).selectedIndex = Math.min(at, features.length - 1);
      $(id).onchange = () => { showItems(); mark(); };
    }
    $("search").oninput = complete;
    $("controls").onsubmit = event => { event.preventDefault(); find($("search").value, true); };
  }

  function radio(one, k) {
    const input = element("input", "", { type: "radio", name: "partition", value: k, checked: k === 0 });
    input.onchange = () => { state.partition = k; showAll(); };
    const made = element("label", "");
    made.append(input, one.words);
    return made;
  }

  function slider(id) {
    const steps = meta.partitions.map((one, k) => k).filter(k => meta.partitions[k].kind === id);
    $(`for-${id}`).hidden = steps.length === 0;
    const near = steps.filter(k => meta.partitions[k].row === 0);  // the reported partition, or its neighbour
    const wanted = near.length ? meta.partitions[near[near.length >> 1]].value : id === "clusters" ? meta.n_clusters : 0.5;
    const away = k => Math.abs(meta.partitions[k].value - wanted);
    const value = steps.reduce((best, k, at) => away(k) < away(steps[best]) ? at : best, 0);
    Object.assign($(id), { min: 0, max: steps.length - 1, step: 1, value });
    const say = () => $(id).setAttribute("aria-valuetext", meta.partitions[steps[$(id).value]].words);
    if (steps.length) say();
    $(id).oninput = () => {
      state.partition = steps[$(id).value];
      if (id === "layer") {  // each layer has its own matrix
        state.on = meta.chains.map((_, c) => c === state.partition);
        average();
      }
      for (const input of document.querySelectorAll("#modes input")) input.checked = false;
      say();
      showAll();
    };
  }

  function checkbox(chain, c) {
    const input = element("input", "", { type: "checkbox", checked: true });
    input.onchange = () => {
      state.on[c] = input.checked;
      if (!state.on.some(Boolean)) state.on[c] = input.checked = true;
      average();
      showAll();
    };
    const made = element("label", "");
    made.append(input, `${meta.words.chain} ${chain.name}`);
    return made;
  }

  const plain = name => name.replace(/\s+/g, " ").trim().toLowerCase();

  function complete() {
    const wanted = plain($("search").value), first = [], later = [];
    if (wanted)
      for (const name of meta.names) {
        const at = plain(name).indexOf(wanted);
        if (at === 0) first.push(name);
        else if (at > 0 && later.length < MATCHES) later.push(name);
        if (first.length === MATCHES) break;
      }
    const found = [...first, ...later].slice(0, MATCHES);
    $("matches").replaceChildren(...found.map(name => element("option", short(name), { value: name })));
    find($("search").value, false);
  }

  function find(words, nearly) {
    const wanted = plain(words);
    if (!wanted) return showPanel();
    let at = meta.names.findIndex(name => plain(name) === wanted);
    if (at < 0 && nearly) at = meta.names.findIndex(name => plain(name).startsWith(wanted));
    if (at < 0 && nearly) at = meta.names.findIndex(name => plain(name).includes(wanted));
    if (at >= 0) select([at]);
    else if (nearly) $("item").replaceChildren(element("p", `No item is named “${short(words)}”.`));
    else showPanel();
  }

  // Selection
  function select(items) {
    const { key } = document.activeElement.dataset, inPanel = $("item").contains(document.activeElement);
    state.selected = items;
    mark();
    showTable();
    if (key) ($("look").querySelector(`[data-key="${key}"]`) ?? $("item")).focus();  // the button is a new element
    else if (inPanel) $("item").focus();
  }

  function mark() {
    const inside = state.selected.filter(i => place.has(i)).map(i => place.get(i)), m = standing.length;
    const starts = [], ends = [];
    for (const at of inside.map(k => position[k]).sort((a, b) => a - b))
      if (ends.at(-1) === at) ends[ends.length - 1] = at + 1;
      else { starts.push(at); ends.push(at + 1); }
    const all = starts.map(() => m), none = starts.map(() => 0);
    models.marks.data = {
      left: [...starts, ...none], right: [...ends, ...all], top: [...none, ...starts], bottom: [...all, ...ends],
    };
    const before = models.items.selected.indices;
    if (before.length !== inside.length || before.some((k, at) => k !== inside[at]))
      models.items.selected.indices = inside;
    showPanel();
  }

  function chosen(indices) {
    const items = [...indices].map(k => arrays.shown[k]);
    if (items.length !== state.selected.length || items.some((i, at) => i !== state.selected[at]))
      if (items.length || state.selected.every(i => place.has(i))) select(items);
  }

  function button(i, more = "", key = "") {
    const made = element("button", short(nameOf(i)) + more, { type: "button", title: meta.names[i] });
    made.onclick = () => select([i]);
    if (key) made.dataset.key = key;
    return made;
  }

  function unselect() {
    const made = element("button", "Clear the selection", { type: "button" });
    made.onclick = () => select([]);
    return made;
  }

  function showPanel() {
    const [i, ...more] = state.selected, panel = $("item");
    if (i === undefined) {
      panel.replaceChildren(element("p", "Select an item in a picture, in the table, or by its name."));
      return;
    }
    if (more.length) {
      const buttons = element("p", "");
      buttons.append(...state.selected.slice(0, 50).map(item => button(item)));
      if (more.length >= 50) buttons.append(" and more");
      panel.replaceChildren(element("h3", `${more.length + 1} items are selected`), buttons, unselect());
      return;
    }
    panel.replaceChildren(element("h3", nameOf(i)), facts(i), ...company(i), ...moves(i), unselect());
  }

  function facts(i) {
    const known = [["Cluster", meta.clusters[label(i)]]], membership = value("membership", i);
    if (!Number.isNaN(membership)) known.push([`membership ${meta.words.probability}`, text(membership)]);
    const own = value("own", i), other = value("other", i);
    if (!isAbsent(label(i))) known.push(["mean similarity to it", Number.isNaN(own) ? "none, as the item is alone in it" : text(own)]);
    if (nextName(i) !== "") known.push(["nearest other cluster", nextName(i)], ["mean similarity to that", text(other)]);
    if (!Number.isNaN(own - other)) known.push(["margin", text(own - other)]);
    return element("p", known.map(([name, words]) => `${name}: ${words}`).join("; ") + ".");
  }

  function company(i) {
    if (!place.has(i)) return [element("p", "This item is not among those in the pictures.")];
    const m = standing.length, k = place.get(i), from = mean.subarray(k * m, (k + 1) * m);
    const others = [...position.keys()].filter(j => j !== k && from[j] >= 255 * SURELY).sort((a, b) => from[b] - from[a]);
    const list = others.length ? element("ol", "") : element("p", `The ${meta.words.similarity} ${meta.words.to} every other item is below 0.005.`);
    for (const j of others.slice(0, LISTED)) {
      const entry = element("li", ` ${text(from[j] / 255)}, cluster ${meta.clusters[label(arrays.shown[j])]}`);
      entry.prepend(button(arrays.shown[j]));
      list.append(entry);
    }
    const step = by => standing[(position[k] + by + m) % m], neighbours = element("p", "");
    for (const [by, words] of [[-1, " (before it)"], [1, " (after it)"]])
      neighbours.append(button(arrays.shown[step(by)], words, `step ${by}`));
    return [element("h4", `Most ${meta.words.probable} co-members`), list, neighbours];
  }

  function moves(i) {
    const n = meta.names.length, of = one => meta.clusters[arrays.labels[one.row * n + i]];
    const home = of(meta.partitions[0]), list = element("ul", "");
    for (const one of meta.partitions.slice(1))
      if (of(one) !== home) list.append(element("li", `${one.words}: cluster ${of(one)}`));
    if (meta.partitions.length === 1) return [];
    const stays = `It is in cluster ${home} in every partition on this page.`;
    const heading = element("h4", `It leaves cluster ${home} in`);
    return list.children.length ? [heading, list] : [element("p", stays)];
  }

  // Pointer
  function under(name, { x, y }) {
    const m = standing.length, model = models[name];
    if (name === "matrix") {
      const [column, line] = [Math.floor(x), Math.floor(y)];
      return column >= 0 && line >= 0 && column < m && line < m ? [standing[line], standing[column]] : [];
    }
    if (name === "bars") return x >= 0 && x < m ? [bars[Math.floor(x)]] : [];
    const { data } = models.items, across = model.inner_width / (model.x_range.end - model.x_range.start);
    const up = model.inner_height / (model.y_range.end - model.y_range.start);
    let best = -1, least = REACH * REACH;
    for (let k = 0; k < m; k++) {
      const away = ((data.x[k] - x) * across) ** 2 + ((data.y[k] - y) * up) ** 2;
      if (away < least) [best, least] = [k, away];
    }
    return best < 0 ? [] : [best];
  }

  function pointed(name, event) {
    const found = under(name, event), tip = $("tip");
    tip.hidden = found.length === 0;
    if (tip.hidden) return;
    const [k, other] = found, i = arrays.shown[k], lines = [short(nameOf(i))];
    if (other === undefined)
      lines.push(`cluster ${meta.clusters[label(i)]}, mean similarity to it ${text(value("own", i))}`);
    else {
      const shared = text(mean[k * standing.length + other] / 255);
      lines.push(short(nameOf(arrays.shown[other])), `${meta.words.similarity} ${shared}`);
    }
    tip.replaceChildren(...lines.map(line => element("div", line)));
    const box = $(`of-${name}`).getBoundingClientRect();
    tip.style.left = `${Math.min(box.left + event.sx + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${box.top + event.sy + 14}px`;
  }

  function left() { $("tip").hidden = true; }

  function tapped(name, event) {
    const [k] = under(name, event);
    if (k !== undefined) select([arrays.shown[k]]);
  }

  // Table
  function fillTableControls() {
    const head = element("tr", "");
    columns.forEach(([name], k) => {
      const cell = element("th", "", { scope: "col" }), sort = element("button", name, { type: "button" });
      sort.onclick = () => {
        Object.assign(state, { sort: k, down: state.sort === k && !state.down, page: 0 });
        showTable();
      };
      cell.append(sort);
      head.append(cell);
    });
    $("table").tHead.replaceChildren(head);
    $("filter").oninput = $("of-cluster").onchange = () => { state.page = 0; showTable(); };
    for (const [id, by] of [["before", -1], ["after", 1]]) $(id).onclick = () => { state.page += by; showTable(); };
    $("csv").onclick = save;
  }

  function swatch(cluster) {
    const made = element("span", "", { className: "mark" });
    made.dataset.shape = SHAPES[meta.markers[cluster]];
    made.style.color = meta.colours[cluster];
    return made;
  }

  // Show the clusters in the filter of the table and by colour; return their number.
  function fillClusters() {
    const before = $("of-cluster").value, members = new Map();
    arrays.labels.subarray(row(), row() + meta.names.length).forEach((k, i) => {
      if (!members.has(k)) members.set(k, []);
      members.get(k).push(i);
    });
    const used = [...members.keys()].sort((a, b) => a - b);
    $("of-cluster").replaceChildren(
      element("option", "all", { value: "" }), ...used.map(k => element("option", meta.clusters[k], { value: k })));
    $("of-cluster").value = members.has(Number(before)) ? before : "";
    const keyed = used.length > KEYED ? [] : used.map(k => {
      const words = `${meta.clusters[k]} (${members.get(k).length.toLocaleString("en")})`;
      const made = element("button", words, { type: "button", title: `Select cluster ${meta.clusters[k]}` });
      made.prepend(swatch(k));
      made.onclick = () => select(members.get(k));
      return made;
    });
    $("legend").replaceChildren("Clusters (items):", ...keyed);
    $("legend").hidden = keyed.length === 0;
    return used.filter(k => !isAbsent(k)).length;
  }

  function sorted() {
    const wanted = plain($("filter").value), cluster = $("of-cluster").value, get = columns[state.sort][1];
    const found = [];
    for (let i = 0; i < meta.names.length; i++)
      if ((cluster === "" || label(i) === Number(cluster)) && (!wanted || plain(meta.names[i]).includes(wanted)))
        found.push(i);
    const keys = new Map(found.map(i => [i, state.sort === 1 ? label(i) : get(i)])), turn = state.down ? -1 : 1;
    const { compare } = new Intl.Collator("en", { numeric: true });
    return found.sort((a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      if (typeof x === "string") return turn * compare(x, y);
      return Number.isNaN(x) - Number.isNaN(y) || turn * (x - y) || a - b;
    });
  }

  function showTable() {
    listed = sorted();
    const last = Math.max(0, Math.ceil(listed.length / ROWS) - 1);
    state.page = Math.min(Math.max(state.page, 0), last);
    const from = state.page * ROWS, rows = listed.slice(from, from + ROWS);
    $("table").tBodies[0].replaceChildren(...rows.map(i => {
      const line = element("tr", "", { className: state.selected.includes(i) ? "selected" : "" });
      columns.forEach(([name, get], k) => {
        const cell = element("td", "");
        cell.dataset.name = name;
        if (k === 0) cell.append(button(i, "", `row ${i}`));
        else cell.textContent = typeof get(i) === "string" ? get(i) : text(get(i));
        if (k === 1) cell.prepend(swatch(label(i)));
        line.append(cell);
      });
      return line;
    }));
    [...$("table").tHead.rows[0].cells].forEach((cell, k) => {
      cell.setAttribute("aria-sort", k !== state.sort ? "none" : state.down ? "descending" : "ascending");
    });
    $("rows").textContent = `${rows.length ? from + 1 : 0} to ${from + rows.length} of ${listed.length.toLocaleString("en")}`;
    [$("before").disabled, $("after").disabled] = [state.page === 0, state.page === last];
  }

  function save() {
    const quoted = cell => `"${String(cell).replaceAll('"', '""')}"`;
    const cellOf = cell => typeof cell === "string" ? quoted(cell) : Number.isNaN(cell) ? "" : cell.toFixed(4);
    const lines = listed.map(i => columns.map(([, get]) => cellOf(get(i))).join(","));
    const content = [columns.map(([name]) => quoted(name)).join(","), ...lines].join("\r\n") + "\r\n";
    const url = URL.createObjectURL(new Blob(["\ufeff", content], { type: "text/csv" }));
    element("a", "", { href: url, download: "items.csv" }).click();
    URL.revokeObjectURL(url);
  }

  const pictures = () => [models.matrix, models.scatter, models.bars];

  // Bokeh's buttons have tips but no roles or names; its event layer handles no keys that are useful here.
  function nameTools() {
    const inside = root => [...root.querySelectorAll("*")].flatMap(
      one => one.shadowRoot ? [one, ...inside(one.shadowRoot)] : [one]);
    for (const [id, whose] of [["matrix", "similarity matrix"], ["scatter", "items"], ["bars", "mean similarities"]])
      for (const one of inside($(`of-${id}`)).filter(one => one.tabIndex === 0))
        if (one.classList.contains("bk-events")) one.tabIndex = -1;
        else Object.assign(one, { role: "button", ariaLabel: `${one.title || "More tools"}: ${whose}` });
  }

  // Paper has none of this: a report is printed with its still figures alone.
  const ink = () => dark.matches ? "#e6e6e6" : "#222222";

  function theme() {
    const stops = PALETTES[dark.matches ? "dark" : "light"].map(
      colour => [1, 3, 5, 7].map(at => parseInt(colour.slice(at, at + 2), 16)));
    models.colours.palette = Array.from({ length: 256 }, (_, k) => {
      const [from, to] = k < 128 ? stops : stops.slice(1), share = (k % 128) / 127;
      const mixed = from.map((part, at) => Math.round(part + share * (to[at] - part)));
      return "#" + mixed.map(part => part.toString(16).padStart(2, "0")).join("");
    });
    axes();
  }

  function axes() {
    for (const plot of pictures()) {
      for (const axis of [...plot.below, ...plot.left])
        Object.assign(axis, {
          axis_label_text_color: ink(), major_label_text_color: ink(), axis_line_color: ink(), major_tick_line_color: ink(),
          minor_tick_line_color: null,
        });
      for (const bar of plot.right) Object.assign(bar, { title_text_color: ink(), major_label_text_color: ink() });
    }
  }

  return { begin, pointed, left, tapped, chosen };
})();
