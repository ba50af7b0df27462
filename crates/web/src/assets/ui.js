"use strict";
// The list that filters while one types, charts, and figures of runs that are going on.
(() => {
  const { Explorer, make, draw, number } = Chart;

  // The list works without a script; with it, only the table is exchanged.
  function list(form) {
    const results = document.getElementById("results");
    let asked = 0;
    let shown = results.innerHTML;
    const address = (submitter) => {
      const data = new URLSearchParams(new FormData(form));
      if (submitter?.name === "sort") data.delete("sort");
      if (submitter?.name) data.append(submitter.name, submitter.value);
      for (const [key, value] of [...data]) if (value === "") data.delete(key, value);
      return `${form.getAttribute("action")}?${data}`;
    };
    const show = async (url, remember) => {
      asked += 1;
      const mine = asked;
      const answer = await fetch(url).catch(() => null);
      if (!answer?.ok || mine !== asked) return;
      remember?.call(history, null, "", url);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.getElementById("results");
      // What is the same stays, with the focus and what is marked in it.
      if (found.innerHTML === shown) return;
      shown = found.innerHTML;
      const focused = document.activeElement;
      const place = results.contains(focused) ? `[name="${CSS.escape(focused.name)}"][value="${CSS.escape(focused.value)}"]` : null;
      results.replaceChildren(...found.childNodes);
      const sort = (within) => within.querySelector("input[name=sort]");
      sort(form).value = sort(page).value;
      if (place) results.querySelector(place)?.focus();
    };
    form.addEventListener("submit", (event) => {
      if (event.submitter?.getAttribute("formaction")) return;
      event.preventDefault();
      show(address(event.submitter), history.pushState);
    });
    let waiting = 0;
    form.addEventListener("input", (event) => {
      if (event.target.name === "pick") {
        // An answer on its way does not know of this one.
        asked += 1;
        return picks(form);
      }
      clearTimeout(waiting);
      waiting = setTimeout(() => show(address(), history.replaceState), 200);
    });
    addEventListener("popstate", () => location.reload());
    // Runs begin and end.
    setInterval(() => {
      if (!document.hidden) show(address(), null);
    }, 3_000);
    picks(form);
  }

  // What is chosen is part of the address, and eight are enough.
  function picks(form) {
    const chosen = [...form.querySelectorAll("[name=pick]")].filter((one) => one.type === "hidden" || one.checked);
    for (const box of form.querySelectorAll("[name=pick][type=checkbox]")) {
      box.disabled = chosen.length >= 8 && !box.checked;
    }
    const url = new URL(location);
    url.searchParams.delete("pick");
    for (const one of chosen) url.searchParams.append("pick", one.value);
    history.replaceState(null, "", url);
  }

  async function explore(section) {
    const answer = await fetch(section.dataset.source).catch(() => null);
    const found = answer?.ok ? await answer.json() : { views: [] };
    const views = found.views.filter((view) => view.series.some((series) => series.points.length > 0));
    if (views.length > 0) new Explorer(section, views);
    else section.append(make("p", {}, "There are no numbers that could be drawn."));
  }

  function curve(values) {
    const most = Math.max(...values, 1e-9);
    const svg = draw("svg", { viewBox: "0 0 100 24", class: "curve", "aria-hidden": "true", preserveAspectRatio: "none" });
    const step = 100 / Math.max(values.length - 1, 1);
    const places = values.map((value, place) => `${place * step},${23 - (value / most) * 22}`);
    svg.append(draw("polyline", { points: places.join(" "), fill: "none", stroke: "var(--series-1)", "stroke-width": "1.5" }));
    return svg;
  }

  // Figures of a run, as its events bring them.
  function live(box) {
    const [status, bar, cards] = [box.querySelector(".status"), box.querySelector("progress"), box.querySelector("dl")];
    const lines = document.querySelector(".lines code");
    const history = { output_tokens_per_s: [], requests_per_s: [] };
    const card = (label, value, detail, values) => {
      const one = make("div", { class: "card" }, make("dt", {}, label), make("dd", { class: "value" }, value));
      if (detail) one.append(make("dd", { class: "detail" }, detail));
      if (values) one.append(make("dd", {}, curve(values)));
      return one;
    };
    const spread = (label, found) =>
      found ? [card(label, `${number(found.p50)} ms`, `p99 ${number(found.p99)} ms`)] : [];
    // What nobody reports has no card.
    const known = (label, value, words, detail) => (value == null ? [] : [card(label, words(value), detail)]);
    const show = (progress) => {
      const figures = progress.live;
      for (const [key, values] of Object.entries(history)) {
        values.push(figures[key]);
        if (values.length > 120) values.shift();
      }
      bar.value = progress.share;
      const failures = Object.entries(figures.failures).map(([kind, count]) => `${count} ${kind}`).join(", ");
      const server = figures.server ?? {};
      cards.replaceChildren(
        card("Requests ok", progress.ok.toLocaleString("en-US"), failures || `${progress.in_flight} in flight`),
        card("Output", `${number(figures.output_tokens_per_s)} tok/s`, "", history.output_tokens_per_s),
        card("Requests", `${number(figures.requests_per_s)} req/s`, "", history.requests_per_s),
        ...spread("TTFT p50", figures.ttft_ms),
        ...spread("ITL p50", figures.itl_ms),
        ...known("Server queue", server.waiting, (n) => `${number(n)} waiting`, server.running == null ? "" : `${number(server.running)} running`),
        ...known("KV use", server.kv_usage, (share) => `${number(100 * share)} %`),
        ...known("GPU power", figures.gpu_power_w, (watts) => `${number(watts)} W`),
        ...known("Client send lag", figures.send_lag_ms?.p99, (ms) => `${number(ms)} ms`, figures.client_cpus == null ? "p99" : `p99, ${number(figures.client_cpus)} CPUs`),
      );
    };
    const source = new EventSource(box.dataset.source);
    const end = (words, to) => {
      source.close();
      status.replaceChildren(words, " ", make("a", { href: to }, "Open the results"), ".");
      bar.hidden = true;
    };
    source.addEventListener("message", (message) => {
      const event = JSON.parse(message.data);
      if (event.progress) show(event.progress);
      if (event.event === "ended") return end("It has ended.", box.dataset.after);
      if (event.event !== "job") {
        status.textContent = event.text;
        return;
      }
      lines.textContent = event.lines.join("\n");
      status.textContent = event.running ? "Going on …" : `Ended: ${event.ending}`;
      if (!event.running) {
        const to = event.stored ? `/view?id=${encodeURIComponent(event.stored)}` : box.dataset.after;
        end(`Ended: ${event.ending}.`, to);
      }
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) status.textContent = "The connection was closed.";
    });
  }

  const all = (selector) => [...document.querySelectorAll(selector)];
  all("form#list").forEach(list);
  all(".explorer").forEach(explore);
  all(".live").forEach(live);
})();
