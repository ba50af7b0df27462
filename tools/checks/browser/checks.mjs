// What must hold for every report, each with its reason to fail.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

export const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const BYTES_MAX = 2_000_000;
const WIDTHS = [360, 768, 1440];
const PICTURE_HEIGHT = 2400;
const SCHEMES = ["light", "dark"];

// A reader without a network, in a place with commas in numbers and another time, at 200 % zoom: the window has
// half as many pixels of the page, each twice as wide.
export const VIEWER = { locale: "de-DE", timezoneId: "Asia/Tokyo", deviceScaleFactor: 2 };

export const checks = {
  "the file is small": ({ size }) => {
    assert.ok(size < BYTES_MAX, `${size} bytes`);
    return `${Math.ceil(size / 1000)} kB`;
  },

  "nothing is asked for and nothing refused": async ({ look }) => {
    const { page, complaints } = await look();
    await page.waitForTimeout(300); // late requests, such as for an icon, are requests too
    assert.deepEqual(complaints, []);
    assert.deepEqual(await page.evaluate(() => window.refusals), []);
    const policy = await page.getAttribute("meta[http-equiv='Content-Security-Policy']", "content");
    assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'/);
    assert.doesNotMatch(policy, /unsafe|https?:/);
  },

  "words are only words": async ({ look }) => {
    const { page, complaints } = await look();
    const found = await page.evaluate(foreignElements);
    assert.deepEqual(found, []);
    assert.equal(await page.evaluate(() => window.__pwned), undefined);
    assert.deepEqual(complaints, []);
    const header = await page.evaluate(() =>
      JSON.parse(document.getElementById("inferometer-report").textContent));
    assert.ok(Object.keys(header).length > 0, "the header for programs is empty");
  },

  "every place that a link names exists, and no id twice": async ({ look }) => {
    const { page } = await look();
    const { missing, twice } = await page.evaluate(() => {
      const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
      const links = [...document.querySelectorAll("a[href^='#']")].map((a) => a.hash.slice(1));
      return {
        missing: links.filter((link) => !ids.includes(link)),
        twice: ids.filter((id, place) => ids.indexOf(id) !== place),
      };
    });
    assert.deepEqual(missing, []);
    assert.deepEqual(twice, []);
  },

  "all is there without a script": async ({ look }) => {
    const count = () => ({
      rows: document.querySelectorAll("main tr").length,
      charts: document.querySelectorAll("figure svg").length,
      details: document.querySelectorAll("main details").length,
    });
    const [bare, full] = [await look({ script: false }), await look()];
    const text = async ({ page }) => (await page.content()).split("<main")[1].length;
    assert.deepEqual(await countIn(bare.page), await full.page.evaluate(count));
    assert.ok((await text(bare)) > 200);
    assert.equal(await bare.page.locator("#theme").isVisible(), false, "a dead button is shown");
    // The contents are at the side, unfolded, though no script unfolded them.
    const link = bare.page.locator(".contents a").first();
    if (await link.count()) assert.equal(await link.isVisible(), true, "contents are folded");
  },

  "the page is never wider than the window": async ({ look, picture }) => {
    const { page } = await look();
    const unfold = (open) => page.evaluate(setDetails, open);
    const wide = () => page.evaluate(() => document.documentElement.scrollWidth);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      for (const opened of [true, false]) {
        await unfold(opened);
        const found = await wide();
        assert.ok(found <= width, `${found} px in a window of ${width}: ${await page.evaluate(tooWide)}`);
      }
      for (const scheme of picture ? SCHEMES : []) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.setViewportSize({ width, height: PICTURE_HEIGHT });
        await page.screenshot({ path: picture(`${width}-${scheme}`) });
      }
    }
  },

  "the reader's network, locale, clock and zoom change nothing": async ({ look }) => {
    const text = ({ page }) => page.evaluate(() => document.querySelector("main").innerText);
    const usual = await look({ width: 720 });
    const { page, complaints } = await look({ width: 720, viewer: { ...VIEWER, offline: true } });
    assert.equal(await text({ page }), await text(usual));
    assert.ok(await page.evaluate(() => (1.5).toLocaleString() === "1,5"), "the locale has no commas");
    const found = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(found <= 720, `${found} px at 200 %: ${await page.evaluate(tooWide)}`);
    // What the script writes, too.
    for (const opened of [{ page }, usual]) {
      const zoom = opened.page.getByRole("button", { name: "Zoom in", exact: true }).first();
      if (await zoom.count() && (await zoom.isVisible())) await zoom.click();
    }
    assert.equal(await text({ page }), await text(usual));
    assert.deepEqual(complaints, []);
  },

  "the theme follows the system, then the button": async ({ look }) => {
    const ground = (page) =>
      page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
    const isDark = async (page) => (await ground(page)).every((part) => part < 100);
    for (const scheme of SCHEMES) {
      const { page } = await look({ scheme });
      const button = page.locator("#theme");
      assert.equal(await isDark(page), scheme === "dark", `the system's ${scheme} is not followed`);
      await button.click();
      assert.equal(await isDark(page), false, "light was chosen");
      await button.click();
      assert.equal(await isDark(page), true, "dark was chosen");
      await page.reload();
      assert.equal(await isDark(page), true, "the choice was forgotten");
      await page.emulateMedia({ media: "print" });
      await page.waitForFunction(() => matchMedia("print").matches);
      const ink = await page.evaluate(() => getComputedStyle(document.body).color);
      assert.ok(ink.match(/\d+/g).map(Number).every((part) => part < 100), "light ink on paper");
      await page.emulateMedia({ media: "screen" });
      await button.click();
      assert.equal(await isDark(page), scheme === "dark", "auto was chosen");
    }
  },

  "tooltips come by pointer and by keyboard": async ({ look }) => {
    const { page } = await look();
    const tip = page.locator("#tip");
    let seen = 0;
    for (const kind of [".detailed[data-tip]", "svg .mark[data-tip]"]) {
      // What lies below another mark is reached by keyboard only.
      const pointed = await page.evaluateHandle(uppermost, kind);
      const element = pointed.asElement();
      if (!element) continue;
      seen += 1;
      await page.evaluate(scrolled);
      const box = await element.boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      assert.equal(await tip.textContent(), await element.getAttribute("data-tip"), "on hover");
      assert.equal(await tip.isVisible(), true, "on hover");
      await page.keyboard.press("Escape");
      assert.equal(await tip.isVisible(), false, "Escape did not hide it");
      await page.mouse.move(0, 0);
      await page.keyboard.press("Tab"); // so that what follows counts as a keyboard's focus
      const stop = page.locator(`${kind}[tabindex="0"]:visible`).first();
      await stop.focus();
      assert.equal(await tip.isVisible(), true, "on focus");
      assert.equal(await tip.textContent(), await stop.getAttribute("data-tip"), "on focus");
      assert.equal(await stop.getAttribute("aria-describedby"), "tip");
      const place = await tip.boundingBox();
      assert.ok(place.x >= 0 && place.x + place.width <= 1440, "outside of the window");
    }
    // Large pages have tooltips in one drawing of a chart only, which may be that for phones.
    const mark = page.locator("svg [tabindex='0'][data-tip]:visible").first();
    if (await mark.count()) await arrows(page, mark, tip);
    return `${seen} kinds`;
  },

  "series are hidden and shown": async ({ look }) => {
    const { page } = await look();
    await page.evaluate(setDetails, true);
    const pressed = ".toggles button, .legend[role=button]";
    const figures = page.locator("figure").filter({ has: page.locator(pressed) });
    const count = await figures.count();
    for (let place = 0; place < count; place += 1) {
      const figure = figures.nth(place);
      const button = figure.locator(pressed).first();
      const name = await button.getAttribute("data-series") ?? await button.textContent();
      const shown = () => figure.evaluate((element, series) =>
        [...element.querySelectorAll("[data-series]:not([role=button])")]
          .filter((group) => group.dataset.series === series)
          .map((group) => getComputedStyle(group).display !== "none"), name);
      assert.ok((await shown()).every(Boolean));
      const twice = await figure.locator(".legend[role=button]").count()
        && await figure.locator(".toggles").count();
      assert.ok(!twice, "the legend stands twice");
      await button.click();
      assert.equal(await button.getAttribute("aria-pressed"), "false");
      assert.ok((await shown()).every((is) => !is), `${name} is still drawn`);
      await button.click();
      assert.equal(await button.getAttribute("aria-pressed"), "true");
      assert.ok((await shown()).every(Boolean), `${name} did not come back`);
    }
    return `${count} charts`;
  },

  "charts are zoomed, have another scale, and come back": async ({ look }) => {
    const { page, complaints } = await look();
    const figures = page.locator("main figure").filter({ has: page.locator("[data-x]") });
    const drawn = (figure) => figure.evaluate((element) => {
      const chart = element.querySelector("svg:not(.narrow)");
      const kinds = ".ticks-x text, .ticks-y text, .series polyline, .series circle";
      return [...chart.querySelectorAll(kinds)].map((it) =>
        `${it.textContent} ${it.getAttribute("points")} ${it.getAttribute("transform") ?? "translate(0 0)"}`);
    });
    let seen = 0;
    for (const figure of (await figures.all()).slice(0, 6)) {
      if (!(await figure.isVisible())) continue;
      seen += 1;
      const before = await drawn(figure);
      const press = (name) => figure.getByRole("button", { name, exact: true }).click();
      const differs = async (what) => assert.notDeepEqual(await drawn(figure), before, what);
      // Within a pixel: coordinates went through the scale and back.
      const numbers = (list) => list.join(" ").match(/-?\d+(\.\d+)?(e-?\d+)?/g).map(Number);
      const isBack = async (what) => {
        const [now, then] = [numbers(await drawn(figure)), numbers(before)];
        assert.equal(now.length, then.length, what);
        assert.ok(now.every((one, place) => Math.abs(one - then[place]) < 1), what);
      };
      await press("Log scale");
      await differs("the scale is the same");
      await press("Log scale");
      await isBack("the scale did not come back");
      await press("Zoom in");
      await differs("the button did not zoom");
      await press("Reset");
      await isBack("the zoom did not end");
      const chart = figure.locator("svg:not(.narrow)");
      await chart.scrollIntoViewIfNeeded();
      const area = await chart.locator("[data-x]").first().evaluate((panel) => {
        const [left, top, right] = panel.dataset.area.split(" ").map(Number);
        const { x, y, width } = panel.ownerSVGElement.getBoundingClientRect();
        const scale = width / panel.ownerSVGElement.viewBox.baseVal.width;
        return { left: x + left * scale, right: x + right * scale, top: y + (top + 8) * scale };
      });
      const across = (share) => area.left + share * (area.right - area.left);
      await page.mouse.move(across(0.2), area.top);
      await page.mouse.down();
      await page.mouse.move(across(0.4), area.top, { steps: 3 });
      await page.mouse.move(across(0.6), area.top, { steps: 3 });
      await page.mouse.up();
      await differs("dragging did not zoom");
      await press("Reset");
      await isBack("the zoom did not end");
    }
    assert.deepEqual(complaints, []);
    return `${seen} charts`;
  },

  "tables sort both ways and back": async ({ look }) => {
    const { page } = await look();
    const { wrong, sorted } = await page.evaluate(sortEverything);
    assert.deepEqual(wrong, []);
    return `${sorted} columns`;
  },

  "axe finds nothing serious": async ({ look }) => {
    for (const [scheme, width] of [["light", 1440], ["dark", 360]]) {
      const { page } = await look({ scheme, width });
      await page.evaluate(setDetails, true);
      await page.evaluate(thinOut);
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() =>
        window.axe.run({ resultTypes: ["violations"] }));
      const bad = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
      const words = bad.map(({ id, help, nodes }) =>
        `${id}: ${help}, as in ${nodes[0].html.slice(0, 200)} ${nodes[0].failureSummary}`);
      assert.deepEqual(words, [], `${scheme}, ${width} px`);
    }
  },

  "it prints light, with its folds open": async ({ look, picture }) => {
    const { page } = await look({ scheme: "dark", width: 794 });
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    await page.waitForFunction(() => matchMedia("print").matches && innerWidth === 794);
    const hidden = await page.evaluate(() =>
      [...document.querySelectorAll("main details:not(.long)")].filter((details) => {
        const inside = details.querySelector(":scope > :not(summary)");
        return inside && inside.getBoundingClientRect().height === 0;
      }).map((details) => details.textContent.slice(0, 60)));
    assert.deepEqual(hidden, [], "folds stay shut in print");
    assert.equal(await page.locator(".contents").isVisible(), false);
    const path = picture?.("print").replace(/png$/, "pdf");
    const pdf = await page.pdf({ ...(path && { path }), preferCSSPageSize: true, printBackground: true });
    const pages = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g)?.length ?? 0;
    assert.ok(pages > 0);
    return `${pages} pages`;
  },
};

function setDetails(open) {
  for (const details of document.querySelectorAll("main details")) details.open = open;
}

// Marks of one chart are alike, and so are rows of one table: the first speak for the rest.
function thinOut() {
  for (const [within, one] of [["svg", ".mark"], ["tbody", "tr"]]) {
    for (const element of document.querySelectorAll(within)) {
      [...element.querySelectorAll(one)].slice(12).forEach((extra) => extra.remove());
    }
  }
}

async function countIn(page) {
  return {
    rows: await page.locator("main tr").count(),
    charts: await page.locator("figure svg").count(),
    details: await page.locator("main details").count(),
  };
}

async function arrows(page, mark, tip) {
  const chart = mark.locator("xpath=ancestor::*[local-name()='svg']");
  if ((await chart.locator(".mark[data-tip]").count()) < 2) return;
  await mark.focus();
  const before = await page.evaluateHandle(() => document.activeElement);
  await page.keyboard.press("ArrowRight");
  const moved = await before.evaluate((element) => document.activeElement !== element);
  assert.ok(moved, "the arrow key did not go to the next mark");
  assert.equal(await tip.isVisible(), true);
}

// The event of a scroll comes with a frame, and hides what a pointer showed before it.
function scrolled() {
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}

// The first of a kind that a pointer reaches, brought into view.
function uppermost(kind) {
  return [...document.querySelectorAll(kind)].slice(0, 50).find((element) => {
    element.scrollIntoView({ block: "center", behavior: "instant" });
    const box = element.getBoundingClientRect();
    const found = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return found?.closest("[data-tip]") === element;
  });
}

// Elements and attributes that only a stranger can have brought.
function foreignElements() {
  const bad = "iframe, object, embed, form, base, img, image, foreignObject, main script, [style*=url]";
  const found = [...document.querySelectorAll(bad)].map((element) => element.outerHTML.slice(0, 120));
  for (const element of document.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      const isLink = ["href", "src", "xlink:href", "action"].includes(name);
      // Files that the page carries, or that are written beside it.
      const isFile = element.hasAttribute("download") || /^\.\/[\w.-]+$/.test(value);
      const isOurs = value.startsWith("#") || value === "data:," || (isFile && /^(data:(text\/csv|application\/json);base64,|\.\/)/.test(value));
      if (name.startsWith("on") || (isLink && !isOurs)) found.push(`${name}=${value.slice(0, 80)}`);
    }
  }
  const scripts = document.querySelectorAll("script").length;
  if (scripts !== 2) found.push(`${scripts} scripts`);
  return found;
}

// What sticks out furthest, for whoever has to mend it.
export function tooWide() {
  const boxes = [...document.querySelectorAll("body *")].filter((element) =>
    !element.closest(".scroll, .plot, .code") && element.getBoundingClientRect().right > innerWidth + 1);
  return boxes.slice(0, 3).map((element) => element.outerHTML.slice(0, 160)).join("\n");
}

function sortEverything() {
  const wrong = [];
  let sorted = 0;
  for (const table of document.querySelectorAll("main table")) {
    const rows = () => [...table.tBodies[0].rows];
    const written = rows();
    const hasNumbers = table.tBodies[0].querySelector("[data-number]") !== null;
    if (written.length < 2 || !hasNumbers) continue;
    [...table.querySelectorAll("thead th")].forEach((head, column) => {
      const numbers = () => rows().map((row) => row.cells[column]?.dataset.number)
        .filter((number) => number !== undefined).map(Number);
      const button = head.querySelector("button");
      const rises = (list) => list.every((value, place) => place === 0 || list[place - 1] <= value);
      const name = `${table.caption?.textContent ?? ""} / ${head.textContent}`.slice(0, 80);
      const expect = (order, holds) => {
        const found = head.getAttribute("aria-sort");
        if (found !== order || !holds || rows().length !== written.length) wrong.push(`${name}: ${order}`);
      };
      button.click();
      expect("ascending", rises(numbers()));
      button.click();
      expect("descending", rises(numbers().reverse()));
      button.click();
      expect(null, rows().every((row, place) => row === written[place]));
      sorted += 1;
    });
  }
  return { wrong, sorted };
}
