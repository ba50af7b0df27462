// Opens reports in Chromium and checks what a reader relies on: node check.mjs FILE.html…
// CHROMIUM names the browser, PICTURES a folder for screenshots.

import { mkdirSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { checks } from "./checks.mjs";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

// A context of its own for each look at a page, with all that the page complains of or asks for.
async function open(browser, file, options = {}) {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1440, height: 900 },
    colorScheme: options.scheme ?? "light",
    reducedMotion: "reduce",
    javaScriptEnabled: options.script ?? true,
    ...options.viewer,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const address = pathToFileURL(file).href;
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url().split("#")[0];
    // Data is in the page already.
    if (url !== address && !url.startsWith("data:")) complaints.push(`request: ${url}`);
  });
  await page.addInitScript(() => {
    window.refusals = [];
    document.addEventListener("securitypolicyviolation", (event) => {
      window.refusals.push(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  await page.goto(address, { waitUntil: "load" });
  return { page, complaints, close: () => context.close() };
}

async function checkFile(browser, file) {
  const name = join(basename(dirname(file)), basename(file));
  const failures = [];
  for (const [title, check] of Object.entries(checks)) {
    const looks = [];
    const look = async (options) => {
      looks.push(await open(browser, file, options));
      return looks.at(-1);
    };
    try {
      const said = await check({ look, file, size: statSync(file).size, picture: picture(file) });
      console.log(`ok      ${name}: ${title}${said ? ` (${said})` : ""}`);
    } catch (error) {
      failures.push(title);
      console.log(`FAILED  ${name}: ${title}\n        ${error.message.replaceAll("\n", "\n        ")}`);
    } finally {
      await Promise.all(looks.map((opened) => opened.close()));
    }
  }
  return failures.length;
}

function picture(file) {
  const folder = process.env.PICTURES;
  if (!folder) return null;
  mkdirSync(folder, { recursive: true });
  return (name) => join(folder, `${basename(dirname(resolve(file)))}-${name}.png`);
}

const files = process.argv.slice(2).map((file) => resolve(file));
if (files.length === 0) {
  console.error("say which pages: node check.mjs FILE.html…");
  process.exit(2);
}
// It starts with a profile that is empty, and thrown away with it.
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: FLAGS,
});
let failed = 0;
try {
  for (const file of files) failed += await checkFile(browser, file);
} finally {
  await browser.close();
}
console.log(failed ? `${failed} checks failed` : `all checks hold for ${files.length} pages`);
process.exit(failed ? 1 : 0);
