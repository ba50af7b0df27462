"use strict";
// What makes the page more comfortable. Everything that it shows is on the page without it.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  function make(name, attributes, text) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    return element;
  }

  // More about a mark or a number, for pointers, keyboards and fingers.
  function tips() {
    for (const element of all("main [title]")) {
      element.dataset.tip = element.title;
      element.removeAttribute("title");
    }
    const tip = make("div", { id: "tip", role: "tooltip", hidden: "" });
    document.body.append(tip);
    let shown = null;

    function hide() {
      tip.hidden = true;
      shown?.removeAttribute("aria-describedby");
      shown = null;
    }

    function show(element, x, y) {
      hide();
      shown = element;
      tip.textContent = element.dataset.tip;
      tip.hidden = false;
      element.setAttribute("aria-describedby", "tip");
      place(element, x, y);
    }

    // Above the pointer or the element, below where there is no room.
    function place(element, x, y) {
      const box = element.getBoundingClientRect();
      const [width, height] = [tip.offsetWidth, tip.offsetHeight];
      const left = (x ?? box.left + box.width / 2) - width / 2;
      const top = (y ?? box.top) - height - 12;
      const below = (y ?? box.bottom) + 16;
      tip.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
      tip.style.top = `${top < 8 ? below : top}px`;
    }

    const near = (event) => event.target.closest?.("[data-tip]");
    document.addEventListener("pointerover", (event) => {
      const element = near(event);
      if (element) show(element, event.clientX, event.clientY);
    });
    document.addEventListener("pointerout", (event) => {
      if (event.pointerType === "mouse" && near(event) === shown) hide();
    });
    document.addEventListener("click", (event) => {
      const element = near(event);
      if (element) show(element, event.clientX, event.clientY);
      else hide();
    });
    document.addEventListener("focusin", (event) => {
      const element = near(event);
      if (element?.matches(":focus-visible")) show(element);
    });
    document.addEventListener("focusout", hide);
    document.addEventListener("scroll", () => {
      // Focus scrolls to what it goes to, and must not hide what it showed.
      if (shown && shown === document.activeElement) place(shown);
      else hide();
    }, { capture: true, passive: true });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide();
    });
  }

  // A chart is one stop of the tab key; the arrow keys go from mark to mark.
  function walks(svg) {
    const title = svg.querySelector(":scope > title");
    if (title) {
      svg.setAttribute("aria-label", title.textContent);
      title.remove();
    }
    const marks = all(".mark[data-tip]", svg);
    if (marks.length === 0) return () => {};
    svg.setAttribute("role", "group");
    for (const mark of marks) {
      mark.setAttribute("role", "img");
      mark.setAttribute("aria-label", mark.dataset.tip);
    }
    const seen = () => marks.filter((mark) => !mark.closest(".off"));
    const stop = (chosen) => marks.forEach((mark) => {
      mark.setAttribute("tabindex", mark === chosen ? "0" : "-1");
    });
    svg.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      const step = steps[event.key];
      const left = seen();
      const place = left.indexOf(event.target);
      if (!step || place < 0) return;
      event.preventDefault();
      const next = left[(place + step + left.length) % left.length];
      stop(next);
      next.focus();
    });
    const again = () => stop(seen()[0]);
    again();
    return again;
  }

  // The colour that a series is drawn in, as the chart names it.
  function colour(group) {
    for (const element of [group, ...all("*", group)]) {
      for (const key of ["stroke", "fill"]) {
        const value = element.getAttribute(key);
        if (value?.startsWith("var(--") && value !== "var(--surface)") return value;
      }
    }
    return "var(--ink-soft)";
  }

  // Each series of a chart that has several can be hidden: by its name in the picture's legend, or by
  // a button where the picture has none.
  function toggles(plot, again) {
    const series = new Map();
    const legend = new Map();
    const add = (map, group) => {
      const name = group.dataset.series;
      map.set(name, [...(map.get(name) ?? []), group]);
    };
    // The drawing for phones has the same series.
    for (const group of all("[data-series]", plot)) add(group.matches(".legend") ? legend : series, group);
    if (series.size < 2) return;
    const hides = (buttons, groups) => {
      const shown = buttons[0].getAttribute("aria-pressed") !== "true";
      for (const button of buttons) button.setAttribute("aria-pressed", String(shown));
      for (const group of groups) group.classList.toggle("off", !shown);
      again();
    };
    if ([...series.keys()].every((name) => legend.has(name))) {
      for (const svg of all("svg", plot)) svg.setAttribute("role", "group");
      for (const [name, groups] of series) {
        const entries = legend.get(name);
        for (const entry of entries) {
          // A long name is cut in the picture; the label begins with what is seen.
          const seen = entry.textContent.trim();
          const label = name.includes(seen) ? name : `${seen} (${name})`;
          const attributes = { role: "button", tabindex: "0", "aria-pressed": "true", "aria-label": label };
          for (const [key, value] of Object.entries(attributes)) entry.setAttribute(key, value);
          entry.addEventListener("click", () => hides(entries, groups));
          entry.addEventListener("keydown", (event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            hides(entries, groups);
          });
        }
      }
      return;
    }
    const bar = make("div", { class: "toggles", role: "group", "aria-label": "Series shown" });
    for (const [name, groups] of series) {
      const button = make("button", { type: "button", "aria-pressed": "true" });
      const swatch = make("i", { "aria-hidden": "true" });
      swatch.style.background = swatch.style.borderColor = colour(groups[0]);
      button.append(swatch, name);
      const own = [...groups, ...(legend.get(name) ?? [])];
      button.addEventListener("click", () => hides([button], own));
      bar.append(button);
    }
    plot.after(bar);
  }

  // Scales as the charts draw them: to a measure of equal distances, and back.
  const scales = {
    linear: { to: (value) => value, from: (at) => at },
    log: { to: (value) => Math.log10(Math.max(value, Number.MIN_VALUE)), from: (at) => 10 ** at },
    tail: { to: (value) => -Math.log10(Math.max(1 - value, 1e-9)), from: (at) => 1 - 10 ** -at },
  };

  // An axis as the drawing describes it: `log 1 64 90 780`.
  function readAxis(text) {
    const [kind, ...numbers] = text.split(" ");
    const [low, high, from, to] = numbers.map(Number);
    return { kind, low, high, from, to };
  }

  function toPixel({ kind, low, high, from, to }, value) {
    const { to: measure } = scales[kind];
    const span = measure(high) - measure(low) || 1;
    return from + ((measure(value) - measure(low)) / span) * (to - from);
  }

  function toValue({ kind, low, high, from, to }, pixel) {
    const { to: measure, from: back } = scales[kind];
    const share = (pixel - from) / (to - from || 1);
    return back(measure(low) + share * (measure(high) - measure(low)));
  }

  // Round values between the ends of an axis.
  function roundValues({ kind, low, high }) {
    if (kind === "log" && 4 < high / low) {
      const powers = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) powers.push(power);
      const factors = powers.length < 5 ? [1, 2, 5] : [1];
      const found = powers.flatMap((power) => factors.map((factor) => factor * 10 ** power));
      return found.filter((value) => low <= value * (1 + 1e-9) && value <= high * (1 + 1e-9));
    }
    const least = (high - low) / 6;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((it) => least <= it * (1 + 1e-9));
    const first = Math.ceil(low / step - 1e-9);
    const count = Math.min(12, Math.floor(high / step + 1e-9) - first);
    return Array.from({ length: Math.max(0, count + 1) }, (_, index) => (first + index) * step);
  }

  const tickLabel = (value) => new Intl.NumberFormat("en", {
    maximumSignificantDigits: 4,
    notation: value !== 0 && (Math.abs(value) < 1e-3 || 1e7 <= Math.abs(value)) ? "scientific" : "standard",
  }).format(value);

  const numbersOf = (element, names) => names.map((name) => Number(element.getAttribute(name)));

  // What a shape is made of: vertices that move each by itself, or one place that it moves with.
  function piece(element) {
    const name = element.localName;
    if (name === "rect") {
      const [x, width] = numbersOf(element, ["x", "width"]);
      return { element, edges: [x, x + width] };
    }
    const isRigid = element.matches(".mark, .cap, circle, text");
    let points;
    if (name === "line") {
      const [x1, y1, x2, y2] = numbersOf(element, ["x1", "y1", "x2", "y2"]);
      points = [[x1, y1], [x2, y2]];
    } else if (name === "circle") {
      points = [numbersOf(element, ["cx", "cy"])];
    } else if (name === "text") {
      points = [numbersOf(element, ["x", "y"])];
    } else {
      const pairs = (element.getAttribute("points") ?? "").trim().split(/\s+/);
      points = pairs.map((pair) => pair.split(",").map(Number));
    }
    if (!isRigid) return { element, points };
    const middle = (index) => {
      const all = points.map((point) => point[index]);
      return (Math.min(...all) + Math.max(...all)) / 2;
    };
    return { element, at: [middle(0), middle(1)] };
  }

  // The moving parts of a drawing that has axes, or null.
  function readView(svg, id) {
    const read = (group, axes) => {
      const moving = ".series *, .limit *, .gap, .frontier, .bands *, .heat *";
      const shapes = all("line, rect, circle, text, polyline, polygon", group);
      const pieces = shapes.filter((it) => it.matches(moving) && !it.closest("[class*=ticks]")).map(piece);
      // A name moves with the mark or the line before it.
      pieces.forEach((one, index) => {
        const before = pieces[index - 1];
        if (one.element.localName === "text" && before) one.at = before.at ?? before.points[0];
      });
      return { group, pieces, ...axes };
    };
    const panels = all(".panel[data-area]", svg).map((group, index) => read(group, {
      area: group.dataset.area.split(" ").map(Number),
      x: group.dataset.x && readAxis(group.dataset.x),
      y: readAxis(group.dataset.y),
      clip: `${id}-clip-${index}`,
    }));
    if (panels.length === 0) return null;
    const bands = all(".bands", svg).map((group) => read(group, { ...panels[0], isBands: true }));
    for (const panel of panels) clip(svg, panel);
    const ticks = all(".ticks-x, .ticks-y, .grid-x", svg);
    return { svg, panels, bands, written: new Map(ticks.map((group) => [group, [...group.children]])) };
  }

  function shape(name, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  function clip(svg, { area: [left, top, right, bottom], clip }) {
    const path = shape("clipPath", { id: clip });
    path.append(shape("rect", { x: left - 1, y: top - 8, width: right - left + 14, height: bottom - top + 10 }));
    svg.append(path);
  }

  // The axes of a panel as the reader wants them.
  function viewedAxes(panel, { range, isLog }) {
    const x = panel.x && range ? { ...panel.x, low: range[0], high: range[1] } : panel.x;
    if (panel.y.kind === "tail") {
      if (!x || !isLog) return { x, y: panel.y };
      const kind = x.kind === "log" ? "linear" : "log";
      return { x: { ...x, kind }, y: panel.y };
    }
    if (!range && !isLog) return { x, y: panel.y };
    const kind = isLog ? { linear: "log", log: "linear" }[panel.y.kind] : panel.y.kind;
    const points = panel.pieces.filter(({ element }) => element.localName !== "polygon" || element.matches(".mark"));
    const seen = points.flatMap(({ at, points }) => (at ? [at] : points ?? []))
      .filter(([at]) => !x || !range || (x.low <= toValue(panel.x, at) && toValue(panel.x, at) <= x.high))
      .map(([, at]) => toValue(panel.y, at))
      .filter((value) => Number.isFinite(value) && (kind === "linear" || 0 < value));
    if (seen.length === 0) return { x, y: panel.y };
    const [low, high] = [Math.min(...seen), Math.max(...seen)];
    const ends = kind === "log" ? { low: low / 1.1, high: high * 1.1 } : { low: Math.min(0, low), high: high * 1.05 || 1 };
    return { x, y: { ...panel.y, kind, ...ends } };
  }

  function drawPiece({ element, at, points, edges }, moveX, moveY) {
    if (at) {
      const [dx, dy] = [moveX(at[0]) - at[0], moveY(at[1]) - at[1]];
      return element.setAttribute("transform", `translate(${dx} ${dy})`);
    }
    if (edges) {
      const [from, to] = edges.map(moveX);
      element.setAttribute("x", from);
      return element.setAttribute("width", Math.max(0, to - from));
    }
    const moved = points.map(([x, y]) => [moveX(x), moveY(y)]);
    if (element.localName === "line") {
      ["x1", "y1", "x2", "y2"].forEach((name, index) => element.setAttribute(name, moved.flat()[index]));
    } else {
      element.setAttribute("points", moved.map((point) => point.join(",")).join(" "));
    }
  }

  // New ticks in the look of the first ones, or those that were written.
  function drawTicks(group, written, axis, place) {
    if (!axis) return group.replaceChildren(...written);
    const [line, text] = ["line", "text"].map((name) => written.find((it) => it.localName === name));
    const made = roundValues(axis).flatMap((value) => {
      const { lineAt, textAt } = place(toPixel(axis, value));
      const parts = [];
      if (line) parts.push(line.cloneNode());
      if (line) for (const [key, at] of Object.entries(lineAt)) parts[0].setAttribute(key, at);
      if (text && textAt) {
        const label = text.cloneNode();
        for (const [key, at] of Object.entries(textAt)) label.setAttribute(key, at);
        label.textContent = tickLabel(value);
        parts.push(label);
      }
      return parts;
    });
    group.replaceChildren(...made);
  }

  function drawView({ panels, bands, written }, state) {
    const isPlain = !state.range && !state.isLog;
    for (const panel of [...panels, ...bands]) {
      const { x, y } = viewedAxes(panel, state);
      const [left, top, right, bottom] = panel.area;
      const moveX = (at) => (x ? toPixel(x, toValue(panel.x, at)) : at);
      const moveY = (at) => {
        if (panel.isBands || y === panel.y) return at;
        return Math.min(bottom, toPixel(y, Math.max(toValue(panel.y, at), y.kind === "log" ? y.low : -Infinity)));
      };
      for (const one of panel.pieces) drawPiece(one, moveX, moveY);
      if (panel.isBands) continue;
      for (const group of all(".series", panel.group)) {
        if (isPlain) group.removeAttribute("clip-path");
        else group.setAttribute("clip-path", `url(#${panel.clip})`);
      }
      for (const [group, own] of written) {
        if (!panel.group.contains(group)) continue;
        if (group.matches(".ticks-y")) {
          drawTicks(group, own, y !== panel.y && y, (at) => ({
            lineAt: { x1: left, x2: right, y1: at, y2: at }, textAt: { x: left - 8, y: at + 4 },
          }));
        } else if (group.matches(".ticks-x")) {
          drawTicks(group, own, x !== panel.x && x, (at) => ({
            lineAt: { x1: at, x2: at, y1: bottom, y2: bottom + 5 }, textAt: { x: at, y: bottom + 19 },
          }));
        } else {
          drawTicks(group, own, x !== panel.x && x, (at) => ({ lineAt: { x1: at, x2: at, y1: top, y2: bottom } }));
        }
      }
    }
  }

  // A stretch that is dragged over is shown alone.
  function drags({ svg, panels }, state, zoom) {
    const box = shape("rect", { class: "zoom-box", visibility: "hidden" });
    svg.append(box);
    const at = (event) => {
      const { left, top, width } = svg.getBoundingClientRect();
      const shown = svg.viewBox.baseVal;
      const scale = shown.width / width;
      return [shown.x + (event.clientX - left) * scale, shown.y + (event.clientY - top) * scale];
    };
    let begun = null;
    const panel = panels.find((one) => one.x);
    const [left, top, right, bottom] = [...panel.area.slice(0, 3), panels.at(-1).area[3]];
    svg.addEventListener("pointerdown", (event) => {
      const [x, y] = at(event);
      const isInside = left <= x && x <= right && top <= y && y <= bottom;
      if (event.button === 0 && isInside) begun = { x };
    });
    const sides = (event) => {
      const ends = [begun.x, at(event)[0]].map((x) => Math.max(left, Math.min(right, x)));
      return [Math.min(...ends), Math.max(...ends)];
    };
    svg.addEventListener("pointermove", (event) => {
      if (!begun) return;
      const [from, to] = sides(event);
      if (to - from < 6) return;
      event.preventDefault();
      svg.setPointerCapture(event.pointerId);
      const attributes = { x: from, width: to - from, y: top, height: bottom - top, visibility: "visible" };
      for (const [key, value] of Object.entries(attributes)) box.setAttribute(key, value);
    });
    const end = (event) => {
      if (!begun) return;
      const [from, to] = sides(event);
      const { x } = viewedAxes(panel, state);
      begun = null;
      box.setAttribute("visibility", "hidden");
      if (event.type === "pointerup" && 6 <= to - from) zoom([toValue(x, from), toValue(x, to)]);
    };
    svg.addEventListener("pointerup", end);
    svg.addEventListener("pointercancel", end);
    svg.addEventListener("dblclick", () => zoom(null));
  }

  // The picture as a file, in the colours of the page and with its title.
  function save(svg, title, kind) {
    const copy = svg.cloneNode(true);
    all(".off, .zoom-box", copy).forEach((one) => one.remove());
    const style = getComputedStyle(document.documentElement);
    const { x, width, height } = svg.viewBox.baseVal;
    const head = 44;
    const values = { viewBox: `${x} ${-head} ${width} ${height + head}`, width, height: height + head };
    for (const [key, value] of Object.entries(values)) copy.setAttribute(key, value);
    const name = shape("text", { x: x + 24, y: -16, "font-size": 18, "font-weight": 600, fill: "var(--ink)" });
    name.textContent = title;
    copy.prepend(shape("rect", { x, y: -head, width, height: height + head, fill: "var(--surface)" }), name);
    const text = new XMLSerializer().serializeToString(copy)
      .replace(/var\((--[a-z0-9-]+)\)/g, (_, variable) => style.getPropertyValue(variable).trim());
    const keep = (blob) => {
      const link = make("a", { href: URL.createObjectURL(blob), download: `${svg.closest("figure").id}.${kind}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    };
    if (kind === "svg") return keep(new Blob([text], { type: "image/svg+xml" }));
    const image = new Image();
    image.onload = () => {
      const canvas = make("canvas", { width: 2 * width, height: 2 * (height + head) });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(keep);
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  }

  // Buttons below a chart: another scale, a closer look, and the picture as a file.
  function tools(plot) {
    const figure = plot.closest("figure");
    const title = figure.querySelector(".chart-title")?.textContent ?? "";
    const views = all("svg", plot).map((svg, index) => readView(svg, `${figure.id}-${index}`)).filter(Boolean);
    const state = { range: null, isLog: false };
    const bar = make("div", { class: "tools", role: "group", "aria-label": `Tools of ${title}` });
    const button = (label, attributes, act) => {
      const made = make("button", { type: "button", ...attributes }, label);
      made.addEventListener("click", () => act(made));
      bar.append(made);
      return made;
    };
    let reset;
    const zoom = (range) => {
      state.range = range;
      for (const view of views) drawView(view, state);
      if (reset) reset.disabled = !range;
    };
    if (views.length) {
      button("Log scale", { "aria-pressed": "false", title: "Switch between a linear and a logarithmic axis" }, (own) => {
        state.isLog = !state.isLog;
        own.setAttribute("aria-pressed", String(state.isLog));
        zoom(state.range);
      });
    }
    const axis = views[0]?.panels.find((panel) => panel.x)?.x;
    if (axis) {
      button("Zoom in", { title: "Or drag over a part of the chart" }, () => {
        const shown = { ...axis, from: 0, to: 1, ...(state.range && { low: state.range[0], high: state.range[1] }) };
        zoom([toValue(shown, 0.25), toValue(shown, 0.75)]);
      });
      reset = button("Reset", { disabled: "" }, () => zoom(null));
      for (const view of views) drags(view, state, zoom);
    }
    const seen = () => all("svg", plot).find((svg) => svg.getBoundingClientRect().width) ?? plot.querySelector("svg");
    for (const kind of ["svg", "png"]) {
      button(kind.toUpperCase(), { "aria-label": `Save as ${kind.toUpperCase()}` }, () => save(seen(), title, kind));
    }
    plot.after(bar);
  }

  // Up, down, and as it was written. What is no number stands below the numbers either way.
  function sorts(table) {
    const body = table.tBodies[0];
    const written = body ? [...body.rows] : [];
    if (written.length < 2 || !body.querySelector("[data-number]")) return;
    const heads = all("thead th", table);
    const key = (row, column) => {
      const cell = row.cells[column];
      const text = cell?.textContent.trim() ?? "";
      return cell?.dataset.number === undefined
        ? { text, rank: text === "" || text.startsWith("–") ? 2 : 1 }
        : { number: Number(cell.dataset.number), rank: 0 };
    };
    const compare = (a, b) =>
      a.rank === 0 ? a.number - b.number : a.text.localeCompare(b.text, "en", { numeric: true });
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, head.textContent);
      if (!head.textContent.trim()) button.setAttribute("aria-label", "Sort by this column");
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const after = { ascending: "descending", descending: null }[before];
        const order = after === undefined ? "ascending" : after;
        for (const other of heads) other.removeAttribute("aria-sort");
        if (order === null) return body.append(...written);
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const keyed = written.map((row) => ({ row, key: key(row, column) }));
        keyed.sort((a, b) => a.key.rank - b.key.rank || sign * compare(a.key, b.key));
        body.append(...keyed.map(({ row }) => row));
      });
    });
  }

  // As the system has it, or as the reader wants it; a browser may refuse to remember.
  function theme() {
    const button = document.getElementById("theme");
    const themes = ["auto", "light", "dark"];
    const set = (name) => {
      if (name === "auto") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = name;
      button.textContent = `Theme: ${name}`;
    };
    const remembered = () => {
      try {
        return localStorage.getItem("inferometer-theme");
      } catch {
        return null;
      }
    };
    let now = themes.includes(remembered()) ? remembered() : "auto";
    set(now);
    button.hidden = false;
    button.addEventListener("click", () => {
      now = themes[(themes.indexOf(now) + 1) % themes.length];
      set(now);
      try {
        localStorage.setItem("inferometer-theme", now);
      } catch {
        // It holds until the page is closed.
      }
    });
  }

  // Open at the side of a wide page, with the section that is being read.
  function contents() {
    const list = document.getElementById("contents");
    if (!list) return;
    const wide = matchMedia("(min-width: 70rem)");
    const fold = () => { list.open = wide.matches; };
    wide.addEventListener("change", fold);
    fold();
    const links = new Map(all("a", list).map((link) => [link.hash.slice(1), link]));
    for (const link of links.values()) {
      link.addEventListener("click", () => { if (!wide.matches) list.open = false; });
    }
    const sections = all("section[id]");
    let waiting = false;
    const mark = () => {
      waiting = false;
      const begun = sections.filter((one) => one.getBoundingClientRect().top < innerHeight / 4);
      const read = begun.at(-1) ?? sections[0];
      for (const [id, link] of links) {
        if (id === read?.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    };
    addEventListener("scroll", () => {
      if (!waiting) requestAnimationFrame(mark);
      waiting = true;
    }, { passive: true });
    mark();
  }

  // What is folded away is printed, save for long tables beside their charts.
  function print() {
    let opened = [];
    addEventListener("beforeprint", () => {
      opened = all("main details:not([open]):not(.long)");
      for (const details of opened) details.open = true;
    });
    addEventListener("afterprint", () => {
      for (const details of opened) details.open = false;
    });
  }

  theme();
  contents();
  tips();
  for (const plot of all(".plot")) {
    const again = all("svg", plot).map(walks);
    tools(plot);
    toggles(plot, () => again.forEach((one) => one()));
  }
  all("main table").forEach(sorts);
  print();
})();
