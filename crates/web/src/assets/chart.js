"use strict";
// Charts that are drawn in the browser, from a table of numbers of which any two columns can be chosen.
// What is shown is part of the address, so that a link shows the same.
const Chart = (() => {
  const WIDTHS = [320, 1280];
  const MARGIN = { left: 78, right: 18, top: 14, bottom: 52 };
  const COLOURS = 8;
  // With more points than this in a line, single marks would hide it.
  const MARKS_MAX = 80;

  // As every number on our pages: three or four digits, thousands separated.
  function number(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size < 1e-4 || size >= 1e9) return value.toExponential(2);
    const limits = [999.95, 99.995, 0.9995, 0.00995, 0.000995, 0];
    const digits = limits.findIndex((limit) => limit <= size);
    return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function draw(name, attributes = {}, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  const colour = (place) => `var(--series-${(place % COLOURS) + 1})`;
  const brief = (value) => number(value).replace(/\.0+$/, "");
  const titled = (axis) => (axis.unit ? `${axis.title} (${axis.unit})` : axis.title);

  // Round numbers between two ends.
  function ticks(low, high, isLog, most = 6) {
    if (isLog) {
      const found = [];
      for (let power = Math.floor(low); power <= Math.ceil(high); power += 1) {
        for (const digit of high - low < 2 ? [1, 2, 5] : [1]) found.push(power + Math.log10(digit));
      }
      return found.filter((tick) => low <= tick && tick <= high);
    }
    const raw = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => raw <= size);
    const found = [];
    for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) {
      found.push(Math.abs(tick) < step * 1e-9 ? 0 : tick);
    }
    return found;
  }

  class Explorer {
    constructor(section, views) {
      this.section = section;
      this.views = views;
      const asked = new URLSearchParams(location.search);
      this.view = views.find((view) => view.key === asked.get("view")) ?? views[0];
      this.choose(asked.get("x"), asked.get("y"));
      this.isLog = asked.get("log") === "1";
      this.off = new Set((asked.get("off") ?? "").split(",").filter(Boolean).map(Number));
      const zoom = (asked.get("zoom") ?? "").split(",").map(Number);
      this.zoom = zoom.length === 4 && zoom.every(Number.isFinite) ? zoom : null;
      this.build();
      this.redraw();
      // As wide as its place, so that words are as large on a phone as elsewhere.
      new ResizeObserver(() => this.width !== this.room() && this.redraw()).observe(this.plot);
    }

    room() {
      const [least, most] = WIDTHS;
      return Math.max(least, Math.min(this.plot.clientWidth, most));
    }

    choose(x, y) {
      const known = (key, otherwise) =>
        this.view.axes.some((axis) => axis.key === key) ? key : otherwise;
      this.x = known(x, this.view.x);
      this.y = known(y, this.view.y);
    }

    build() {
      const bar = make("div", { class: "filters" });
      const select = (title, options, change) => {
        const list = make("select");
        list.addEventListener("change", () => change(list.value));
        bar.append(make("label", {}, title, list));
        return { list, fill: (items, chosen) => {
          list.replaceChildren(...items.map(([value, words]) => make("option", { value }, words)));
          list.value = chosen;
        } };
      };
      this.viewList = select("Chart", [], (key) => {
        this.view = this.views.find((view) => view.key === key);
        this.choose();
        [this.zoom, this.off] = [null, new Set()];
        this.redraw();
      });
      this.xList = select("Horizontal", [], (key) => { [this.x, this.zoom] = [key, null]; this.redraw(); });
      this.yList = select("Vertical", [], (key) => { [this.y, this.zoom] = [key, null]; this.redraw(); });
      this.log = make("input", { type: "checkbox" });
      this.log.addEventListener("change", () => {
        [this.isLog, this.zoom] = [this.log.checked, null];
        this.redraw();
      });
      bar.append(make("label", { class: "check" }, this.log, "Logarithmic"));
      const button = (words, press) => {
        const one = make("button", { type: "button" }, words);
        one.addEventListener("click", press);
        bar.append(one);
        return one;
      };
      button("Zoom in", () => this.scale(0.6));
      button("Zoom out", () => this.scale(1 / 0.6));
      this.reset = button("Reset", () => { this.zoom = null; this.redraw(); });
      this.plot = make("div", { class: "plot", tabindex: "0", role: "region", "aria-label": "Chart" });
      this.legend = make("div", { class: "toggles", role: "group", "aria-label": "Series shown" });
      const figure = make("figure", { class: "figure" }, bar, this.plot, this.legend);
      figure.append(make("p", { class: "n" }, "Drag over the chart to zoom. Arrow keys go from point to point."));
      this.section.append(figure);
      saving(figure, () => this.plot.querySelector("svg"), () => `inferometer-${this.x}-${this.y}`);
    }

    // The points of each series on both axes, left to right.
    lines() {
      const [x, y] = [this.x, this.y].map((key) => this.view.axes.findIndex((axis) => axis.key === key));
      const isDrawn = (value) => value !== null && (!this.isLog || value > 0);
      return this.view.series.map((series, place) => ({
        ...series,
        place,
        isOff: this.off.has(place),
        drawn: series.points
          .filter((point) => point.values[x] !== null && isDrawn(point.values[y]))
          .map((point) => ({
            x: point.values[x],
            y: this.isLog ? Math.log10(point.values[y]) : point.values[y],
            real: point.values[y],
            name: point.name,
          }))
          .sort((a, b) => a.x - b.x),
      }));
    }

    whole(lines) {
      const shown = lines.filter((line) => !line.isOff).flatMap((line) => line.drawn);
      if (shown.length === 0) return [0, 1, 0, 1];
      const ends = (values) => [Math.min(...values), Math.max(...values)];
      let [left, right] = ends(shown.map((point) => point.x));
      let [low, high] = ends(shown.map((point) => point.y));
      // A scale from zero shows sizes; a logarithm has no zero.
      if (!this.isLog && low > 0) low = 0;
      if (left > 0 && left < right / 3) left = 0;
      if (left === right) [left, right] = [left - (Math.abs(left) || 1) / 2, right + (Math.abs(right) || 1) / 2];
      if (low === high) [low, high] = [low - 0.5, high + 0.5];
      return [left, right + (right - left) * 0.02, low, high + (high - low) * 0.05];
    }

    scale(factor) {
      const [left, right, low, high] = this.shown;
      const around = (from, to) => {
        const [middle, half] = [(from + to) / 2, ((to - from) / 2) * factor];
        return [middle - half, middle + half];
      };
      this.zoom = [...around(left, right), ...around(low, high)];
      this.redraw();
    }

    redraw() {
      const names = this.view.axes.map((axis) => [axis.key, titled(axis)]);
      this.viewList.fill(this.views.map((view) => [view.key, view.title]), this.view.key);
      this.viewList.list.parentElement.hidden = this.views.length < 2;
      this.xList.fill(names, this.x);
      this.yList.fill(names, this.y);
      this.log.checked = this.isLog;
      this.reset.disabled = this.zoom === null;
      const lines = this.lines();
      this.width = this.room();
      this.height = Math.round(Math.max(300, Math.min(this.width * 0.46, 460)));
      this.inner = { width: this.width - MARGIN.left - MARGIN.right, height: this.height - MARGIN.top - MARGIN.bottom };
      this.shown = this.zoom ?? this.whole(lines);
      this.plot.replaceChildren(this.picture(lines));
      this.legend.replaceChildren(...lines.map((line) => this.entry(line)));
      this.legend.hidden = lines.length < 2;
      this.remember();
    }

    entry(line) {
      const swatch = make("i", { "aria-hidden": "true" });
      swatch.style.background = swatch.style.borderColor = colour(line.place);
      const button = make("button", { type: "button", "aria-pressed": String(!line.isOff) }, swatch, line.name);
      button.addEventListener("click", () => {
        if (!this.off.delete(line.place)) this.off.add(line.place);
        this.redraw();
        this.legend.children[line.place]?.focus();
      });
      return button;
    }

    remember() {
      const asked = new URLSearchParams(location.search);
      const set = (key, value, usual) => {
        if (value === usual) asked.delete(key);
        else asked.set(key, value);
      };
      set("view", this.view.key, this.views[0].key);
      set("x", this.x, this.view.x);
      set("y", this.y, this.view.y);
      set("log", this.isLog ? "1" : "", "");
      set("off", [...this.off].join(","), "");
      set("zoom", this.zoom ? this.zoom.map((end) => Number(end.toPrecision(6))).join(",") : "", "");
      history.replaceState(history.state, "", `${location.pathname}?${asked}`);
    }

    picture(lines) {
      const [left, right, low, high] = this.shown;
      const across = (value) => MARGIN.left + ((value - left) / (right - left)) * this.inner.width;
      const up = (value) => MARGIN.top + this.inner.height - ((value - low) / (high - low)) * this.inner.height;
      const axis = (key) => this.view.axes.find((one) => one.key === key);
      const svg = draw("svg", {
        viewBox: `0 0 ${this.width} ${this.height}`, role: "group", "font-size": "13", fill: "var(--ink)",
        "font-family": "system-ui, sans-serif", "aria-label": `${titled(axis(this.y))} over ${titled(axis(this.x))}`,
      });
      const clip = draw("clipPath", { id: "inside" });
      clip.append(draw("rect", { x: MARGIN.left, y: MARGIN.top - 6, width: this.inner.width + 6, height: this.inner.height + 12 }));
      svg.append(clip);
      for (const tick of ticks(low, high, this.isLog)) {
        const y = up(tick);
        svg.append(draw("line", { x1: MARGIN.left, x2: this.width - MARGIN.right, y1: y, y2: y, stroke: "var(--grid)" }));
        const words = brief(this.isLog ? 10 ** tick : tick);
        svg.append(draw("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end", fill: "var(--ink-soft)" }, words));
      }
      for (const tick of ticks(left, right, false, this.width < 600 ? 4 : 6)) {
        const x = across(tick);
        svg.append(draw("line", { x1: x, x2: x, y1: this.height - MARGIN.bottom, y2: this.height - MARGIN.bottom + 5, stroke: "var(--edge)" }));
        const words = brief(tick);
        svg.append(draw("text", { x, y: this.height - MARGIN.bottom + 20, "text-anchor": "middle", fill: "var(--ink-soft)" }, words));
      }
      svg.append(draw("text", { x: MARGIN.left + this.inner.width / 2, y: this.height - 8, "text-anchor": "middle" }, titled(axis(this.x))));
      svg.append(draw("text", {
        x: 16, y: MARGIN.top + this.inner.height / 2, "text-anchor": "middle",
        transform: `rotate(-90 16 ${MARGIN.top + this.inner.height / 2})`,
      }, titled(axis(this.y))));
      const inside = draw("g", { "clip-path": "url(#inside)" });
      for (const line of lines.filter((one) => !one.isOff)) inside.append(this.line(line, across, up));
      svg.append(inside);
      this.walk(svg);
      this.drag(svg);
      return svg;
    }

    line(line, across, up) {
      const group = draw("g", { "data-series": line.name });
      const places = line.drawn.map((point) => `${across(point.x).toFixed(1)},${up(point.y).toFixed(1)}`);
      group.append(draw("polyline", { points: places.join(" "), fill: "none", stroke: colour(line.place), "stroke-width": 2 }));
      const every = Math.ceil(line.drawn.length / MARKS_MAX);
      const axis = (key) => this.view.axes.find((one) => one.key === key);
      const words = (key, value) => `${axis(key).title} ${value} ${axis(key).unit}`.trim();
      // A series begins with the id of what it is from, and so do most of its points.
      const [id, ...rest] = line.name.split(" · ");
      line.drawn.forEach((point, place) => {
        if (place % every !== 0) return;
        const tip = [...(point.name.startsWith(id) ? rest : [line.name]), point.name, words(this.x, brief(point.x)), words(this.y, number(point.real))];
        const mark = draw("circle", {
          class: "mark", cx: across(point.x), cy: up(point.y), r: every > 1 ? 3 : 4.5, role: "img",
          fill: colour(line.place), stroke: "var(--surface)", "data-tip": [...new Set(tip)].join(" · "),
        });
        mark.setAttribute("aria-label", mark.dataset.tip);
        group.append(mark);
      });
      return group;
    }

    // One stop of the tab key; the arrow keys go from mark to mark.
    walk(svg) {
      const marks = [...svg.querySelectorAll(".mark")];
      const stop = (chosen) => marks.forEach((mark) => mark.setAttribute("tabindex", mark === chosen ? "0" : "-1"));
      stop(marks[0]);
      svg.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        const place = marks.indexOf(event.target);
        if (!step || place < 0) return;
        event.preventDefault();
        const next = marks[(place + step + marks.length) % marks.length];
        stop(next);
        next.focus();
      });
    }

    drag(svg) {
      const at = (event) => {
        const box = svg.getBoundingClientRect();
        const inside = (value, from, size) => Math.max(0, Math.min(1, (value - from) / size));
        return {
          x: inside(((event.clientX - box.left) / box.width) * this.width, MARGIN.left, this.inner.width),
          y: 1 - inside(((event.clientY - box.top) / box.height) * this.height, MARGIN.top, this.inner.height),
        };
      };
      let from = null;
      const frame = draw("rect", { fill: "var(--link)", "fill-opacity": "0.15", stroke: "var(--link)", visibility: "hidden" });
      svg.append(frame);
      svg.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        from = at(event);
        // A drag may end beside the picture.
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener("pointermove", (event) => {
        if (!from) return;
        const to = at(event);
        frame.setAttribute("visibility", "visible");
        frame.setAttribute("x", MARGIN.left + Math.min(from.x, to.x) * this.inner.width);
        frame.setAttribute("y", MARGIN.top + (1 - Math.max(from.y, to.y)) * this.inner.height);
        frame.setAttribute("width", Math.abs(from.x - to.x) * this.inner.width);
        frame.setAttribute("height", Math.abs(from.y - to.y) * this.inner.height);
      });
      const end = (event) => {
        if (!from) return;
        const to = at(event);
        const [left, right, low, high] = this.shown;
        const span = (one, other, start, size) => [start + Math.min(one, other) * size, start + Math.max(one, other) * size];
        const isDrag = Math.abs(from.x - to.x) > 0.02 && Math.abs(from.y - to.y) > 0.02;
        if (isDrag) {
          this.zoom = [...span(from.x, to.x, left, right - left), ...span(from.y, to.y, low, high - low)];
        }
        from = null;
        frame.setAttribute("visibility", "hidden");
        if (isDrag) this.redraw();
      };
      svg.addEventListener("pointerup", end);
      svg.addEventListener("pointercancel", () => { from = null; });
    }
  }

  // A picture by itself: the colours of the page become plain ones.
  function standalone(svg) {
    const copy = svg.cloneNode(true);
    const style = getComputedStyle(document.documentElement);
    const plain = (value) => value.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    for (const element of [copy, ...copy.querySelectorAll("*")]) {
      for (const { name, value } of [...element.attributes]) {
        if (value.includes("var(--")) element.setAttribute(name, plain(value));
      }
    }
    const [x, y, width, height] = svg.getAttribute("viewBox").split(/[ ,]+/).map(Number);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.prepend(draw("rect", { x, y, width, height, fill: style.getPropertyValue("--surface").trim() }));
    return { text: new XMLSerializer().serializeToString(copy), width, height };
  }

  function download(blob, name) {
    const link = make("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  async function savePng(svg, name) {
    const { text, width, height } = standalone(svg);
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = make("canvas", { width: width * 2, height: height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, width * 2, height * 2);
    canvas.toBlob((blob) => download(blob, `${name}.png`), "image/png");
  }

  // Buttons that save a picture as it is shown.
  function saving(figure, picture, name) {
    const bar = make("div", { class: "saving" });
    const button = (words, save) => {
      const one = make("button", { type: "button" }, words);
      one.addEventListener("click", () => save(picture(), name()));
      bar.append(one);
    };
    button("Save as SVG", (svg, file) => {
      download(new Blob([standalone(svg).text], { type: "image/svg+xml" }), `${file}.svg`);
    });
    button("Save as PNG", savePng);
    figure.append(bar);
  }

  return { Explorer, make, draw, number };
})();
