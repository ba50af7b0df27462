// Opens the pages of `inferometer ui` in Chromium and uses them as a reader would: node ui.mjs PROGRAM
// CHROMIUM names the browser, PICTURES a folder for screenshots.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { AXE, VIEWER, tooWide } from "./checks.mjs";

const [program] = process.argv.slice(2);
const WIDTHS = [360, 768, 1440];
const HOSTILE = "</title><img src=x onerror=alert(1)><script>alert(2)</script>";
const folder = mkdtempSync(join(tmpdir(), "inferometer-ui-"));
const pictures = process.env.PICTURES;
if (pictures) mkdirSync(pictures, { recursive: true });
const children = [];

function inferometer(...words) {
  try {
    execFileSync(program, words, { cwd: folder, stdio: "pipe" });
  } catch (error) {
    // A degraded run is a run.
    if (error.status !== 4) throw new Error(`${words.join(" ")}: ${error.stderr}`);
  }
}

// A server of ours, with the line that it prints first.
async function start(...words) {
  const child = spawn(program, words, { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) return { child, line };
  throw new Error(`${words.join(" ")} ended`);
}

async function makeRuns() {
  const simulate = ["simulate", "--quiet", "--requests", "200"];
  for (const concurrency of [1, 4, 16, 64]) inferometer(...simulate, "--concurrency", concurrency);
  inferometer("sweep", "--quiet", "--virtual", "--requests", "100", "--concurrencies", "1,2,4,8,16,32,64");
  inferometer("matrix", "r3", "--virtual", "--quiet", "--only", "preset=H100X1,model=Llama-8B");
  const engine = await start("engine", "--mode", "paced", "--port", "0", "--until-stdin-closes", "--model", HOSTILE);
  const server = engine.line.trim().split(" ").at(-1);
  inferometer("run", server, "--quiet", "--requests", "60", "--concurrency", "4", "--output-tokens", "16");
  return server;
}

async function open(browser, address, options = {}) {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1440, height: 900 },
    colorScheme: options.scheme ?? "light",
    reducedMotion: "reduce",
    javaScriptEnabled: options.script ?? true,
    ...options.viewer,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  const origin = new URL(address).origin;
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !/^(data|blob):/.test(url)) complaints.push(`request: ${url}`);
  });
  await page.goto(address, { waitUntil: "load" });
  return { page, complaints, close: () => context.close() };
}

// A run that goes on until it is stopped.
function goOn(server) {
  const words = ["run", server, "--quiet", "--requests", "100000", "--concurrency", "4", "--output-tokens", "16"];
  const child = spawn(program, words, { cwd: folder, stdio: "ignore" });
  children.push(child);
  return child;
}

// All pages, with that of a run that goes on and that of a job of the form.
async function allPages({ pages, look, home, server }) {
  const child = goOn(server);
  const { page } = await look(home);
  await page.locator("tr", { hasText: "running" }).locator("th a").click();
  await page.waitForSelector(".live .card");
  const live = page.url();
  await page.goto(`${home}start`);
  await page.getByLabel("What").selectOption("simulate");
  await page.getByLabel("More arguments").fill("--requests 50 --seed 7");
  await page.getByRole("button", { name: "Start" }).click();
  await page.waitForURL(/\/job/);
  // Later checks compare lists: the run has its results when it has ended.
  const stop = () => {
    const ended = once(child, "exit");
    child.kill("SIGINT");
    return ended;
  };
  return { pages: { ...pages, live, job: page.url() }, stop };
}

async function isDrawn(page, name) {
  if (["overlay", "sweep", "request"].includes(name)) await page.waitForSelector(".explorer svg");
  if (name === "live") await page.waitForSelector(".live .card");
}

// A script's change of the address reaches us later than what else it did: `waitForURL` and not `page.url()`.
const rows = (page) => page.locator("#results tbody tr");
const names = (page) => page.locator("#results tbody th a").allTextContents();

const checks = {
  "the list filters while one types, and the address keeps it": async ({ look, home }) => {
    const { page, complaints } = await look(home);
    assert.equal(await rows(page).count(), 7);
    await page.fill("input[type=search]", "sweep");
    await page.waitForFunction(() => document.querySelectorAll("#results tbody tr").length === 1);
    await page.waitForURL(/q=sweep/);
    await page.reload();
    assert.equal(await rows(page).count(), 1, "the filter was forgotten");
    await page.fill("input[type=search]", "");
    await page.waitForFunction(() => document.querySelectorAll("#results tbody tr").length === 7);
    await page.selectOption("select[name=kind]", "run");
    await page.waitForFunction(() => document.querySelectorAll("#results tbody tr").length === 5);
    assert.deepEqual(complaints, []);
  },

  "columns sort both ways": async ({ look, home }) => {
    const { page } = await look(`${home}?kind=run`);
    const before = await names(page);
    const head = page.locator("th", { hasText: "tok/s" });
    await head.getByRole("button").click();
    await page.waitForSelector("th[aria-sort=ascending]");
    const up = await names(page);
    await head.getByRole("button").click();
    await page.waitForSelector("th[aria-sort=descending]");
    assert.deepEqual(await names(page), [...up].reverse());
    assert.notDeepEqual(up, before.reverse().concat("x"));
  },

  "all works without a script": async ({ look, home }) => {
    const { page } = await look(home, { script: false });
    await page.fill("input[type=search]", "sweep");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=sweep/);
    assert.equal(await rows(page).count(), 1);
    await page.locator("input[type=checkbox]").check();
    await page.getByRole("button", { name: "Overlay the selected" }).click();
    await page.waitForURL(/overlay/);
    assert.match(await page.locator("main").textContent(), /needs a script/);
  },

  "runs are chosen by keyboard and laid over each other": async ({ look, home }) => {
    const { page, complaints } = await look(`${home}?kind=run&sort=id`);
    for (const place of [0, 1, 2]) {
      await page.locator("tbody input[type=checkbox]").nth(place).focus();
      await page.keyboard.press("Space");
    }
    await page.waitForURL((url) => url.searchParams.getAll("pick").length === 3);
    await page.getByRole("button", { name: "Overlay the selected" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/overlay/);
    await page.waitForSelector(".explorer svg");
    assert.equal(await page.locator(".explorer .toggles button").count(), 3);
    assert.equal(await page.locator("#side-by-side thead th").count(), 4);
    await page.locator(".explorer select").first().selectOption("course");
    await page.waitForURL(/view=course/);
    await page.locator(".explorer .toggles button").first().click();
    await page.waitForURL(/off=0/);
    assert.equal(await page.locator(".explorer g[data-series]").count(), 2);
    const drawn = await page.locator(".explorer polyline").first().getAttribute("points");
    await page.reload();
    await page.waitForSelector(".explorer svg");
    assert.equal(await page.locator(".explorer polyline").first().getAttribute("points"), drawn, "a link shows the same");
    assert.deepEqual(complaints, []);
  },

  "a sweep is explored: axes, zoom, values and pictures": async ({ look, home, sweep }) => {
    const { page, complaints } = await look(`${home}overlay?pick=${sweep}`);
    await page.waitForSelector(".explorer svg");
    await page.getByLabel("Vertical").selectOption("ttft.p99");
    await page.waitForURL(/y=ttft.p99/);
    const mark = page.locator(".explorer .mark").nth(2);
    await mark.hover();
    const tip = await page.locator("#tip").textContent();
    assert.match(tip, /TTFT p99 [\d.,]+ ms/);
    await page.locator(".explorer .mark[tabindex='0']").focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator("#tip").isVisible(), true, "by keyboard");
    await page.keyboard.press("Escape");
    await page.locator(".explorer svg").scrollIntoViewIfNeeded();
    const box = await page.locator(".explorer svg").boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + box.height * 0.2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.7, box.y + box.height * 0.7, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/zoom=/);
    await page.getByRole("button", { name: "Reset" }).click();
    await page.waitForURL((url) => !url.searchParams.has("zoom"));
    for (const [name, begin] of [["Save as SVG", "<svg"], ["Save as PNG", "\x89PNG"]]) {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name }).click(),
      ]);
      const text = readFileSync(await download.path(), "latin1");
      assert.ok(text.startsWith(begin) && text.length > 1_000, `${name}: ${text.slice(0, 40)}`);
      assert.doesNotMatch(text, /var\(--/);
    }
    assert.deepEqual(complaints, []);
  },

  "a request is shown token by token": async ({ look, home, run }) => {
    const { page, complaints } = await look(`${home}view?id=${run}`);
    await page.getByRole("link", { name: "Requests", exact: true }).click();
    await page.locator("tbody th a").first().click();
    await page.waitForSelector(".explorer svg");
    const arrivals = await page.locator("#arrivals tbody tr").count();
    assert.ok(arrivals > 10, `${arrivals} arrivals`);
    await page.getByRole("link", { name: "Next request" }).click();
    assert.match(await page.locator("h1").textContent(), /Request 1 of/);
    assert.deepEqual(complaints, []);
  },

  "a report is the one that is written, with its links and pictures": async ({ look, home, run }) => {
    const { page, complaints } = await look(`${home}view?id=${run}`);
    assert.ok(await page.locator("figure.figure svg").count() > 2);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save as PNG" }).first().click(),
    ]);
    assert.ok(readFileSync(await download.path(), "latin1").startsWith("\x89PNG"));
    await page.locator("nav.site summary").click();
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "summary.json" }).click(),
    ]);
    JSON.parse(readFileSync(await file.path(), "utf8"));
    assert.deepEqual(complaints, []);
  },

  "a run that goes on moves, and then is a report": async ({ look, home, picture }) => {
    // A server with a queue and a cache, which the page shows.
    const engine = await start("engine", "--port", "0", "--until-stdin-closes");
    const child = goOn(engine.line.trim().split(" ").at(-1));
    const { page, complaints } = await look(home);
    const link = page.locator("tr", { hasText: "running" }).locator("th a");
    await link.click();
    await page.waitForSelector(".live .card");
    const ok = () => page.locator(".live .value").first().textContent();
    const first = await ok();
    await page.waitForFunction((text) => document.querySelector(".live .value").textContent !== text, first);
    await page.waitForTimeout(3_000); // so that the picture has a curve
    const cards = await page.locator(".live dt").allTextContents();
    for (const card of ["Server queue", "KV use", "Client send lag"]) assert.ok(cards.includes(card), `${card} in ${cards}`);
    if (picture) await page.screenshot({ path: picture("live") });
    child.kill("SIGINT");
    await page.getByRole("link", { name: "Open the results" }).click();
    await page.waitForSelector("figure.figure svg");
    assert.deepEqual(complaints, []);
  },

  "a form starts a run and shows how it goes": async ({ look, home }) => {
    const { page, complaints } = await look(`${home}start`);
    await page.getByLabel("What").selectOption("simulate");
    await page.getByLabel("More arguments").fill("--requests 50 --seed 7");
    await page.getByRole("button", { name: "Start" }).click();
    await page.waitForURL(/\/job/);
    await page.getByRole("link", { name: "Open the results" }).click();
    await page.waitForSelector("figure.figure svg");
    assert.deepEqual(complaints, []);
  },

  "words are only words": async ({ look, home }) => {
    const { page, complaints } = await look(`${home}?q=onerror`);
    assert.match(await page.locator("tbody").textContent(), /onerror=alert/);
    await page.locator("tbody input[type=checkbox]").first().check();
    await page.getByRole("button", { name: "Overlay the selected" }).click();
    await page.waitForSelector(".explorer svg");
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.deepEqual(complaints, []);
  },

  "pages fit every width, in both themes": async ({ picture, ...context }) => {
    const { pages, stop } = await allPages(context);
    for (const [name, address] of Object.entries(pages)) {
      for (const scheme of ["light", "dark"]) {
        const { page } = await context.look(address, { scheme });
        await isDrawn(page, name);
        const ground = await page.evaluate(() =>
          getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
        assert.equal(ground.every((part) => part < 100), scheme === "dark", `${name} in ${scheme}`);
        for (const width of WIDTHS) {
          await page.setViewportSize({ width, height: 900 });
          const found = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(found <= width, `${name}: ${found} px in ${width}: ${await page.evaluate(tooWide)}`);
          if (picture) await page.screenshot({ path: picture(`${name}-${width}-${scheme}`) });
        }
      }
    }
    await stop();
  },

  "locale, clock and zoom of the reader change nothing": async ({ pages, look }) => {
    for (const [name, address] of Object.entries(pages)) {
      const texts = [];
      for (const viewer of [{}, VIEWER]) {
        const { page, complaints } = await look(address, { width: 720, viewer });
        await isDrawn(page, name);
        const found = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(found <= 720, `${name}: ${found} px: ${await page.evaluate(tooWide)}`);
        texts.push(await page.evaluate(() => document.querySelector("main").innerText));
        assert.deepEqual(complaints, []);
      }
      assert.equal(texts[1], texts[0], name);
    }
  },

  "axe finds nothing serious": async (context) => {
    const { pages, stop } = await allPages(context);
    for (const [name, address] of Object.entries(pages)) {
      for (const [scheme, width] of [["light", 1440], ["dark", 360]]) {
        const { page } = await context.look(address, { scheme, width });
        await isDrawn(page, name);
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
        const bad = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
        const words = bad.map(({ id, help, nodes }) =>
          `${id}: ${help}, as in ${nodes[0].html.slice(0, 200)} ${nodes[0].failureSummary}`);
        assert.deepEqual(words, [], `${name}, ${scheme}, ${width} px`);
      }
    }
    await stop();
  },
};

async function checkAll(browser) {
  const server = await makeRuns();
  const ui = await start("ui", "runs", "--port", "0", "--allow-run");
  const home = ui.line.trim();
  const wait = async (query) => {
    for (;;) {
      const list = await (await fetch(`${home}api/list?${query}`)).json();
      if (!list.is_partial) return list.entries.map((entry) => entry.id);
    }
  };
  const [runs, [sweep], [matrix]] = [await wait("kind=run&sort=id"), await wait("kind=sweep"), await wait("kind=matrix")];
  const picks = runs.slice(0, 4).map((id) => `pick=${id}`).join("&");
  const pages = {
    list: home,
    overlay: `${home}overlay?${picks}`,
    sweep: `${home}overlay?pick=${sweep}&y=ttft.p99`,
    report: `${home}view?id=${runs[2]}`,
    matrix: `${home}view?id=${matrix}`,
    requests: `${home}requests?id=${runs[2]}`,
    request: `${home}request?id=${runs[2]}&request=3`,
    start: `${home}start`,
  };
  const picture = pictures ? (name) => join(pictures, `ui-${name}.png`) : null;
  let failed = 0;
  for (const [title, check] of Object.entries(checks)) {
    const looks = [];
    const look = async (address, options) => {
      looks.push(await open(browser, address, options));
      return looks.at(-1);
    };
    try {
      await check({ look, home, server, run: runs[1], sweep, pages, picture });
      console.log(`ok      ui: ${title}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ui: ${title}\n        ${error.message.replaceAll("\n", "\n        ")}`);
    } finally {
      await Promise.all(looks.map((opened) => opened.close()));
    }
  }
  return failed;
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"],
});
let failed = 1;
try {
  failed = await checkAll(browser);
} finally {
  await browser.close();
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}
console.log(failed ? `${failed} checks failed` : "all checks hold for the web page");
process.exit(failed ? 1 : 0);
