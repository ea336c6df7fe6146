(() => {
  "use strict";
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const many = data.runs.length > 1;
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const COLOURS = 7;
  // What axes count in where tens are unnatural: seconds and minutes, binary gigabytes.
  const STEPS = {
    s: [...[-4, -3, -2, -1, 0].flatMap((e) => [1, 2, 5].map((n) => n * 10 ** e)), 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200],
    B: [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100].map((n) => n * 2 ** 30),
  };
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [14, 4]];
  const shown = new Map();

  // ---- words -------------------------------------------------------------------------------------------------

  const number = (v) => {
    const size = Math.abs(v);
    if (size >= 100) return Math.round(v).toLocaleString("en-US");
    if (size >= 10) return v.toFixed(1);
    return size >= 0.9995 || !size ? v.toFixed(2) : String(Number(v.toPrecision(3)));
  };
  const time = (v) => {
    const size = Math.abs(v);
    if (size < 0.9995) return `${number(v * 1000)} ms`;
    if (size < 100) return `${number(v)} s`;
    if (size < 3600) return `${Math.floor(v / 60)} min ${String(Math.floor(v % 60)).padStart(2, "0")} s`;
    return `${Math.floor(v / 3600)} h ${String(Math.floor((v % 3600) / 60)).padStart(2, "0")} min`;
  };
  const tokens = (v) => {
    if (v && v % 1048576 === 0) return `${v / 1048576}M`;
    if (v && v % 1024 === 0) return `${v / 1024}K`;
    return v && v % 1000 === 0 ? `${v / 1000}k` : v.toLocaleString("en-US");
  };
  const short = (v) => String(Number(v.toPrecision(4)));
  const told = {
    s: time,
    tokens,
    "tokens/s": (v) => `${number(v)} tokens/s`,
    "requests/s": (v) => `${number(v)} requests/s`,
    B: (v) => `${(v / 2 ** 30).toFixed(1)} GiB`,
    "%": (v) => `${v.toFixed(1)} %`,
  };
  const say = (axis, v) => (told[axis.unit] || short)(v);
  // `1.89` of `1.89 s` where the other end has the same unit.
  const bare = (text, other) => {
    const unit = text.replace(/^[\d.,]+/, "");
    return unit && !/\d/.test(unit) && other.endsWith(unit) ? text.slice(0, -unit.length) : text;
  };
  const onAxis = {
    s: (v) => (v === 0 ? "0" : v < 1 ? `${short(v * 1000)} ms` : v < 120 ? `${short(v)} s` : `${short(v / 60)} min`),
    tokens,
    B: (v) => `${short(v / 2 ** 30)} GiB`,
    "%": (v) => `${short(v)} %`,
  };
  const tick = (axis, v) => (onAxis[axis.unit] || ((x) => Number(x.toPrecision(4)).toLocaleString("en-US")))(v);

  // ---- colours -----------------------------------------------------------------------------------------------

  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const faded = (rgb, alpha) => {
    const parts = rgb.match(/[\d.]+/g);
    return `rgba(${parts[0]},${parts[1]},${parts[2]},${alpha})`;
  };
  // One run: each curve has its colour. Several: a run has its colour, its curves have dashes and marks.
  const look = (curve) => ({
    colour: colour(`c${(many ? curve.run : curve.style) % COLOURS}`),
    dash: DASHES[curve.style % DASHES.length],
    mark: (many ? curve.run + curve.style : curve.style) % MARKS.length,
  });

  // ---- marks -------------------------------------------------------------------------------------------------

  const polygon = (points) => (c, x, y, r) => {
    c.moveTo(x + points[0][0] * r, y + points[0][1] * r);
    for (const [px, py] of points.slice(1)) c.lineTo(x + px * r, y + py * r);
    c.closePath();
  };
  const MARKS = [
    (c, x, y, r) => c.arc(x, y, r, 0, 7),
    polygon([[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]]),
    polygon([[0, -1.2], [1.1, 0.85], [-1.1, 0.85]]),
    polygon([[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]]),
    polygon([[0, 1.2], [1.1, -0.85], [-1.1, -0.85]]),
  ];
  const mark = (c, kind, x, y, r, ink) => {
    c.beginPath();
    MARKS[kind](c, x, y, r);
    c.fillStyle = ink;
    c.fill();
  };

  // ---- one plot ----------------------------------------------------------------------------------------------

  // Depth and concurrency rise by powers: each step gets about the same width, and the ticks are what was measured.
  const spreader = (axis, xs) => {
    const positive = xs.filter((x) => x > 0);
    const least = Math.min(...positive);
    const wide = axis.spread && positive.length > 1 && Math.max(...positive) / least > 8;
    if (!wide) return { to: (x) => x, ticks: axis.spread };
    return xs.includes(0) ? { to: (x) => Math.log2(1 + x / least), ticks: true } : { to: (x) => Math.log2(x / least), ticks: true };
  };

  class Figure {
    constructor(host, plot) {
      this.host = host;
      this.plot = plot;
      this.hidden = new Set();
      this.log = false;
      this.range = null;
      this.tools = document.createElement("div");
      this.tools.className = "tools";
      host.before(this.tools);
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.tip.hidden = true;
      this.live = document.createElement("p");
      this.live.className = "quiet";
      this.live.setAttribute("aria-live", "polite");
      host.after(this.live);
      host.tabIndex = 0;
      host.setAttribute("role", "group");
      host.setAttribute("aria-label", `${plot.title}: arrow keys go from value to value, plus and minus zoom, 0 shows all`);
      host.addEventListener("keydown", (event) => this.key(event));
      host.addEventListener("blur", () => this.hide());
      new ResizeObserver(() => this.resize()).observe(host);
      this.draw();
    }

    set(plot) {
      this.plot = plot;
      this.hidden.clear();
      this.range = null;
      this.draw();
    }

    draw() {
      const { plot } = this;
      if (this.chart) this.chart.destroy();
      this.xs = [...new Set(plot.curves.flatMap((curve) => curve.points.map((point) => point[0])))].sort((a, b) => a - b);
      this.spread = spreader(plot.x, this.xs);
      this.at = this.xs.map(this.spread.to);
      this.looks = plot.curves.map(look);
      this.points = plot.curves.map((curve) => new Map(curve.points.map((point) => [point[0], point])));
      const columns = plot.curves.map((curve, index) => this.column(curve, index));
      this.lowest = Math.min(...columns.flat().filter((v) => v > 0));
      this.chart = new uPlot(this.options(), [this.at, ...columns], this.host);
      this.host.append(this.tip);
      touch(this);
      this.legend();
    }

    // A stair keeps its height until the next step, also where another curve has a step between.
    column(curve, index) {
      const found = this.points[index];
      const last = curve.points.length ? curve.points[curve.points.length - 1][0] : -Infinity;
      let height = null;
      return this.xs.map((x) => {
        const own = found.has(x) ? found.get(x)[1] : null;
        height = own ?? (curve.steps && x < last ? height : null);
        return height;
      });
    }

    options() {
      const { plot } = this;
      const [soft, grid] = [colour("soft"), colour("grid")];
      const font = `12px ${getComputedStyle(document.body).fontFamily}`;
      const axis = { stroke: soft, font, labelFont: font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, size: 5 } };
      return {
        ...this.size(),
        legend: { show: false },
        padding: [26, 22, 0, 0],
        focus: { alpha: 0.35 },
        cursor: {
          y: false,
          drag: { x: true, y: false, dist: 6, setScale: false },
          points: { size: 9, width: 2, fill: (u, i) => this.looks[i - 1].colour, stroke: () => colour("paper") },
          bind: { dblclick: () => () => (this.all(), null) },
        },
        scales: {
          x: { time: false, range: (u, least, most) => this.xRange(least, most) },
          y: { distr: this.log ? 3 : 1, range: () => this.yRange() },
        },
        axes: [
          { ...axis, label: plot.x.label, labelSize: 22, labelGap: 2, size: 34, space: 56, ...this.xTicks() },
          { ...axis, size: (u, values) => this.gutter(values), space: 36, incrs: STEPS[plot.y.unit], values: (u, all) => all.map((v) => (v === null ? null : tick(plot.y, v))) },
        ],
        series: [{}, ...plot.curves.map((curve, index) => this.series(curve, index))],
        hooks: { draw: [() => this.paint()], setSelect: [(u) => this.picked(u)], setCursor: [() => this.point()], setScale: [(u, key) => key === "x" && this.zoomed()] },
      };
    }

    series(curve, index) {
      const { colour: stroke, dash } = this.looks[index];
      const paths = curve.steps ? uPlot.paths.stepped({ align: 1 }) : undefined;
      return { stroke, dash, width: curve.thin ? 1.6 : 2, spanGaps: true, points: { show: false }, paths, show: !this.hidden.has(index) };
    }

    size() {
      const width = Math.max(this.host.clientWidth, 200);
      return { width, height: width < 480 ? 270 : width > 800 ? 360 : 310 };
    }

    resize() {
      const size = this.size();
      if (this.chart && Math.abs(size.width - this.chart.width) > 1) this.chart.setSize(size);
    }

    gutter(values) {
      const longest = (values || []).reduce((most, text) => Math.max(most, text ? text.length : 0), 0);
      return Math.max(34, 7 * longest + 16);
    }

    xTicks() {
      if (!this.spread.ticks) {
        const whole = this.xs.every(Number.isInteger);
        const incrs = STEPS[this.plot.x.unit] || (whole ? [1, 2, 5, 10, 20, 50, 100] : undefined);
        return { incrs, values: (u, all) => all.map((v) => tick(this.plot.x, v)) };
      }
      const splits = (u, axis, least, most) => {
        const width = 46 * ((most - least || 1) / Math.max(u.width - 80, 100));
        const kept = [];
        for (const at of this.at) if (at >= least && at <= most && (!kept.length || at - kept[kept.length - 1] >= width)) kept.push(at);
        return kept;
      };
      return { splits, values: (u, all) => all.map((at) => tick(this.plot.x, this.xs[this.at.indexOf(at)])) };
    }

    bounds() {
      const [first, last] = [this.at[0], this.at[this.at.length - 1]];
      const gap = (last - first || 1) * (this.plot.curves.every((curve) => curve.thin) ? 0 : 0.03);
      return [first - gap, last + gap || first + 1];
    }

    xRange(least, most) {
      return this.range || this.bounds();
    }

    // Of what is in sight, intervals and near limits with it; from zero, so that heights can be compared.
    yRange() {
      const [from, to] = this.range || this.bounds();
      let [least, most] = [Infinity, 0];
      this.plot.curves.forEach((curve, index) => {
        if (this.hidden.has(index)) return;
        for (const [x, y, low, high] of curve.points) {
          const at = this.spread.to(x);
          if (at < from || at > to) continue;
          most = Math.max(most, high ?? y);
          if (y > 0) least = Math.min(least, low > 0 ? low : y);
        }
      });
      for (const limit of this.plot.limits) if (limit.y <= most * 3) most = Math.max(most, limit.y);
      if (!most) return this.log ? [0.1, 1] : [0, 1];
      if (this.plot.y.unit === "%") most = Math.max(most, 100 / 1.06);
      return this.log ? [least / 1.3, most * 1.3] : [0, most * 1.06];
    }

    // Bands, whiskers and marks over uPlot's lines, and the limits.
    paint() {
      const u = this.chart;
      if (!u) return;
      const c = u.ctx;
      const dpr = window.devicePixelRatio || 1;
      const { left, top, width, height } = u.bbox;
      const floor = u.scales.y.min;
      const px = (x) => u.valToPos(this.spread.to(x), "x", true);
      const py = (y) => u.valToPos(this.log ? Math.max(y, floor) : y, "y", true);
      c.save();
      c.beginPath();
      c.rect(left, top - 6 * dpr, width + 8 * dpr, height + 12 * dpr);
      c.clip();
      this.plot.curves.forEach((curve, index) => {
        if (curve.thin || this.hidden.has(index)) return;
        const ink = this.looks[index].colour;
        const wide = curve.points.filter((point) => point[3] > point[2]);
        if (wide.length > 1) {
          c.beginPath();
          wide.forEach((point, n) => (n ? c.lineTo(px(point[0]), py(point[3])) : c.moveTo(px(point[0]), py(point[3]))));
          [...wide].reverse().forEach((point) => c.lineTo(px(point[0]), py(point[2])));
          c.closePath();
          c.fillStyle = faded(ink, 0.13);
          c.fill();
        }
        c.strokeStyle = ink;
        c.lineWidth = 1.2 * dpr;
        c.setLineDash([]);
        for (const point of wide) {
          const [x, cap] = [px(point[0]), 3.5 * dpr];
          c.beginPath();
          c.moveTo(x, py(point[2]));
          c.lineTo(x, py(point[3]));
          for (const end of [point[2], point[3]]) {
            c.moveTo(x - cap, py(end));
            c.lineTo(x + cap, py(end));
          }
          c.stroke();
        }
        for (const point of curve.points) mark(c, this.looks[index].mark, px(point[0]), py(point[1]), 4 * dpr, ink);
      });
      c.restore();
      c.save();
      c.font = `${12 * dpr}px ${getComputedStyle(document.body).fontFamily}`;
      c.textAlign = "left";
      c.textBaseline = "alphabetic";
      c.fillStyle = colour("soft");
      c.fillText(this.plot.y.label, 2 * dpr, 12 * dpr);
      for (const limit of this.plot.limits) {
        const y = py(limit.y);
        c.strokeStyle = c.fillStyle = colour("limit");
        if (y < top) {
          c.fillText(`${limit.name}: above`, left + 8 * dpr, top + 12 * dpr);
          continue;
        }
        c.setLineDash([4 * dpr, 4 * dpr]);
        c.lineWidth = 1.4 * dpr;
        c.beginPath();
        c.moveTo(left, y);
        c.lineTo(left + width, y);
        c.stroke();
        c.fillText(limit.name, left + 8 * dpr, y - 5 * dpr);
      }
      c.restore();
    }

    legend() {
      const buttons = this.plot.curves.map((curve, index) => {
        const name = (many ? `${letters[curve.run]}  ` : "") + curve.name;
        const button = this.button(name, () => this.toggle(index));
        button.prepend(sample(this.looks[index], curve.thin));
        button.setAttribute("aria-pressed", String(!this.hidden.has(index)));
        return button;
      });
      const alone = this.plot.curves.length === 1 && !many;
      const space = document.createElement("span");
      space.className = "space";
      this.reset = this.button("Show all", () => this.all(), "plain");
      this.reset.hidden = !this.range;
      const extra = [space, this.reset];
      if (this.plot.y.unit === "s") extra.push(this.button(this.log ? "Linear scale" : "Log scale", () => this.scale(), "plain"));
      this.tools.replaceChildren(...(alone ? [] : buttons), ...extra);
    }

    button(text, act, kind) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(document.createTextNode(text));
      if (kind) button.className = kind;
      button.addEventListener("click", act);
      return button;
    }

    scale() {
      this.log = !this.log;
      this.draw();
    }

    toggle(index) {
      if (!this.hidden.delete(index)) this.hidden.add(index);
      this.chart.setSeries(index + 1, { show: !this.hidden.has(index) });
      this.legend();
    }

    // uPlot asks for ranges: a zoom is a range that we keep.
    zoom(from, to) {
      const [first, last] = this.bounds();
      const [a, b] = [Math.max(Math.min(from, to), first), Math.min(Math.max(from, to), last)];
      if (b - a < (last - first) / 2000) return;
      this.range = a <= first && b >= last ? null : [a, b];
      this.chart.setScale("x", { min: a, max: b });
    }

    all() {
      this.range = null;
      const [min, max] = this.bounds();
      this.chart.setScale("x", { min, max });
    }

    picked(u) {
      const { left, width } = u.select;
      if (width < 6) return;
      this.zoom(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
      u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    }

    zoomed() {
      if (this.reset) this.reset.hidden = !this.range;
    }

    key(event) {
      const u = this.chart;
      const [from, to] = this.range || this.bounds();
      const middle = u.cursor.idx === null || u.cursor.idx === undefined ? (from + to) / 2 : this.at[u.cursor.idx];
      const by = (factor) => this.zoom(middle - (middle - from) * factor, middle + (to - middle) * factor);
      const acts = {
        ArrowRight: () => this.step(1),
        ArrowLeft: () => this.step(-1),
        "+": () => by(0.5),
        "=": () => by(0.5),
        "-": () => by(2),
        0: () => this.all(),
        Escape: () => (this.all(), this.hide()),
      };
      if (event.target !== this.host || event.ctrlKey || event.metaKey || event.altKey || !acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    }

    step(by) {
      const old = this.chart.cursor.idx;
      const next = old === null || old === undefined || this.tip.hidden ? (by > 0 ? 0 : this.at.length - 1) : old + by;
      const index = Math.min(Math.max(next, 0), this.at.length - 1);
      this.chart.setCursor({ left: this.chart.valToPos(this.at[index], "x"), top: 40 });
      this.live.textContent = this.tip.textContent;
    }

    hide() {
      this.tip.hidden = true;
    }

    // What stands at the cursor: each curve's value, its interval, and how many values are behind it.
    point() {
      const u = this.chart;
      if (!u) return;
      const { idx, left, top } = u.cursor;
      if (idx === null || idx === undefined || left < 0) return this.hide();
      const { x, y } = this.plot;
      const head = document.createElement("b");
      head.textContent = x.each.replace("{}", x.unit ? say(x, this.xs[idx]) : short(this.xs[idx]));
      const rows = this.plot.curves.flatMap((curve, index) => {
        const value = u.data[index + 1][idx];
        const found = this.points[index].get(this.xs[idx]) || [this.xs[idx], value];
        return value === null || this.hidden.has(index) ? [] : [this.row(curve, index, found)];
      });
      if (!rows.length) return this.hide();
      this.tip.replaceChildren(head, ...rows);
      this.tip.hidden = false;
      const at = u.valToPos(this.at[idx], "x");
      u.over.querySelector(".u-cursor-x").style.transform = `translate(${at}px, 0)`;
      const over = u.over.getBoundingClientRect();
      const box = this.host.getBoundingClientRect();
      const room = box.width - this.tip.offsetWidth - 4;
      const wanted = over.left - box.left + at + 14;
      this.tip.style.left = `${Math.max(4, wanted > room ? wanted - this.tip.offsetWidth - 28 : wanted)}px`;
      this.tip.style.top = `${Math.max(0, Math.min(over.top - box.top + top - 20, box.height - this.tip.offsetHeight - 50))}px`;
    }

    row(curve, index, [, value, low, high, count]) {
      const { y } = this.plot;
      const row = document.createElement("div");
      const dot = document.createElement("i");
      dot.style.background = this.looks[index].colour;
      const text = document.createElement("span");
      const name = this.plot.curves.length > 1 || many ? `${many ? `${letters[curve.run]} ` : ""}${curve.name}: ` : "";
      text.textContent = name + say(y, value);
      const small = document.createElement("small");
      const spread = high > low ? `${bare(say(y, low), say(y, high))} to ${say(y, high)}` : "";
      small.textContent = [spread, count ? `n = ${count}` : ""].filter(Boolean).join(", ");
      text.append(small);
      row.append(dot, text);
      return row;
    }

    // For those who test or script the page.
    get values() {
      return this.plot.curves.map((curve) => ({ name: curve.name, run: curve.run, points: curve.points }));
    }

    get drawn() {
      const { min, max } = this.chart.scales.x;
      const [low, high] = [this.chart.scales.y.min, this.chart.scales.y.max];
      const seen = this.xs.filter((x, n) => this.at[n] >= min && this.at[n] <= max);
      return { x: [min, max], y: [low, high], xs: seen, columns: this.chart.data.slice(1).map((column) => [...column]) };
    }
  }

  const sample = ({ colour: ink, dash, mark: kind }, thin) => {
    const dpr = window.devicePixelRatio || 1;
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [30 * dpr, 12 * dpr];
    const c = canvas.getContext("2d");
    c.scale(dpr, dpr);
    c.strokeStyle = ink;
    c.lineWidth = 2;
    c.setLineDash(dash);
    c.beginPath();
    c.moveTo(0, 6);
    c.lineTo(30, 6);
    c.stroke();
    if (!thin) mark(c, kind, 15, 6, 4, ink);
    return canvas;
  };

  // A finger: drag sideways to zoom, tap for values, tap twice for all. Up and down scrolls the page as ever.
  const touch = (figure) => {
    const over = figure.chart.over;
    let start = null;
    let tapped = -Infinity;
    const at = (event) => Math.min(Math.max(event.clientX - over.getBoundingClientRect().left, 0), over.clientWidth);
    over.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" || !event.isPrimary) return;
      start = at(event);
    });
    over.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse" || start === null || !event.isPrimary) return;
      const now = at(event);
      if (Math.abs(now - start) > 8) {
        figure.chart.setSelect({ left: Math.min(start, now), width: Math.abs(now - start), top: 0, height: over.clientHeight }, false);
      }
    });
    const end = (event) => {
      if (event.pointerType === "mouse" || start === null || !event.isPrimary) return;
      const [from, to] = [start, at(event)];
      start = null;
      figure.chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      if (event.type === "pointercancel") return;
      if (Math.abs(to - from) > 20) {
        figure.zoom(figure.chart.posToVal(from, "x"), figure.chart.posToVal(to, "x"));
        return;
      }
      if (event.timeStamp - tapped < 350) figure.all();
      tapped = event.timeStamp;
      figure.chart.setCursor({ left: to, top: event.clientY - over.getBoundingClientRect().top });
    };
    over.addEventListener("pointerup", end);
    over.addEventListener("pointercancel", end);
  };

  // ---- the requests' timelines -------------------------------------------------------------------------------

  const sum = (steps) => {
    let total = 0;
    return steps.map((step) => (total += step));
  };
  const timeline = (index, style) => {
    const one = data.timelines[index];
    const [at, total] = [sum(one.at), sum(one.total)];
    const points = at.map((when, n) => [when / 10000, total[n]]);
    const name = one.label.split(":")[0] + `, ${one.level}`;
    return { name, run: many ? one.run : 0, style, thin: true, steps: true, points: [[0, 0], ...points] };
  };
  const timelines = () => {
    const host = document.getElementById("plot-timeline");
    if (!host) return;
    const [first, beside] = ["request", "second"].map((name) => document.getElementById(`timeline-${name}`));
    const plot = () => {
      const chosen = [first.value, beside.value].filter((value) => value !== "");
      return {
        id: "timeline",
        title: "Tokens of one request over time",
        x: { label: "time since it was sent", unit: "s", each: "{}" },
        y: { label: "tokens", unit: "" },
        limits: [],
        curves: chosen.map((value, n) => timeline(Number(value), n)),
      };
    };
    const figure = new Figure(host, plot());
    shown.set("timeline", figure);
    for (const select of [first, beside]) select.addEventListener("change", () => figure.set(plot()));
  };

  // ---- themes and paper --------------------------------------------------------------------------------------

  const themes = ["auto", "light", "dark"];
  const button = document.getElementById("theme");
  const kept = () => {
    try {
      return localStorage.getItem("sparkwright-theme");
    } catch {
      return null;
    }
  };
  let theme = themes.includes(kept()) ? kept() : "auto";
  const wear = (name) => {
    if (name === "auto") delete root.dataset.theme;
    else root.dataset.theme = name;
    button.textContent = `Theme: ${theme}`;
    for (const figure of shown.values()) figure.draw();
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try {
      localStorage.setItem("sparkwright-theme", theme);
    } catch {
      // A page of a file may have no store: the choice then lasts as long as the page.
    }
    wear(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => wear(theme));
  addEventListener("beforeprint", () => wear("light"));
  addEventListener("afterprint", () => wear(theme));

  if (theme !== "auto") root.dataset.theme = theme;
  button.textContent = `Theme: ${theme}`;
  for (const plot of data.plots) shown.set(plot.id, new Figure(document.getElementById(`plot-${plot.id}`), plot));
  timelines();
  window.sparkwright = { data, plots: shown };
})();
