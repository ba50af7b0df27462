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
    for (const group of all("[data-series]", plot)) {
      const name = group.dataset.series;
      if (group.matches(".legend")) legend.set(name, group);
      else series.set(name, [...(series.get(name) ?? []), group]);
    }
    if (series.size < 2) return;
    const hides = (button, groups) => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      for (const group of groups) group.classList.toggle("off", !shown);
      again();
    };
    if ([...series.keys()].every((name) => legend.has(name))) {
      plot.querySelector("svg").setAttribute("role", "group");
      for (const [name, groups] of series) {
        const entry = legend.get(name);
        const attributes = { role: "button", tabindex: "0", "aria-pressed": "true", "aria-label": name };
        for (const [key, value] of Object.entries(attributes)) entry.setAttribute(key, value);
        entry.addEventListener("click", () => hides(entry, groups));
        entry.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          hides(entry, groups);
        });
      }
      return;
    }
    const bar = make("div", { class: "toggles", role: "group", "aria-label": "Series shown" });
    for (const [name, groups] of series) {
      const button = make("button", { type: "button", "aria-pressed": "true" });
      const swatch = make("i", { "aria-hidden": "true" });
      swatch.style.background = swatch.style.borderColor = colour(groups[0]);
      button.append(swatch, name);
      const own = legend.has(name) ? [...groups, legend.get(name)] : groups;
      button.addEventListener("click", () => hides(button, own));
      bar.append(button);
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
    const svg = plot.querySelector("svg");
    if (svg) toggles(plot, walks(svg));
  }
  all("main table").forEach(sorts);
  print();
})();
