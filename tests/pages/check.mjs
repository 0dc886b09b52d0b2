// SPDX-License-Identifier: Apache-2.0
// check.mjs SITE SCREENSHOTS: every page of a site in headless Chromium. Status 1, with a line for
// each, when a page has what axe-core calls a violation, an error of a script, a request to
// elsewhere, text that became markup, or is wider than a phone; or when sorting, filtering, refresh
// or a page without JavaScript does not do what it should.
import { createServer } from "node:http";
import { mkdir, readFile, readdir } from "node:fs/promises";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const [site, screenshots] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const kTypes = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".csv": "text/csv; charset=utf-8" };
const kViews = [
  { name: "light", width: 1200, height: 900, scheme: "light" },
  { name: "dark", width: 1200, height: 900, scheme: "dark" },
  { name: "phone", width: 360, height: 740, scheme: "light" },
  { name: "phone-dark", width: 360, height: 740, scheme: "dark" },
];

let problems = 0;
function problem(where, what) {
  problems += 1;
  console.log(`${where}: ${what}`);
}
function expect(condition, where, what) {
  if (!condition) problem(where, what);
}

const replaced = new Map(); // address: text served instead of the file
const counted = []; // what pages posted
const server = createServer(async (request, response) => {
  const address = decodeURIComponent(new URL(request.url, "http://localhost").pathname).slice(1);
  if (request.method === "POST" && address === "api/metrics") {
    counted.push(JSON.parse(Buffer.concat(await request.toArray()).toString()));
    return response.writeHead(204).end();
  }
  try {
    const bytes = replaced.get(address) ?? (await readFile(join(site, address)));
    response.writeHead(200, { "Content-Type": kTypes[extname(address)] ?? "application/octet-stream" });
    response.end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const origin = `http://127.0.0.1:${server.address().port}`;

const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

async function open(address, view, { script = true, base = origin } = {}) {
  const page = await browser.newPage();
  const where = `${address} (${view.name}${script ? "" : ", no script"})`;
  page.on("pageerror", (error) => problem(where, `script error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && problem(where, `console: ${message.text()}`));
  page.on("requestfailed", (request) => problem(where, `failed: ${request.url()}`));
  page.on("request", (request) => request.url().startsWith(base) || problem(where, `asks for ${request.url()}`));
  await page.setJavaScriptEnabled(script);
  await page.setViewport({ width: view.width, height: view.height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: view.scheme }]);
  await page.goto(`${base}/${address}`, { waitUntil: "load" });
  return { page, where };
}

async function checkPage(address, view) {
  const { page, where } = await open(address, view);
  const found = await page.evaluate(() => ({
    title: document.title,
    markup: document.querySelectorAll("script").length !== 1 || document.images.length > 0 || document.querySelector("[onerror],[style]") !== null,
    width: document.documentElement.scrollWidth,
    links: [...document.querySelectorAll("a[href]")].map((a) => a.href),
  }));
  expect(found.title !== "taken" && !found.markup, where, "text became markup");
  expect(found.width <= view.width, where, `is ${found.width} wide`);
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  for (const { id, nodes } of violations) problem(where, `axe: ${id}: ${nodes[0].target} ${nodes[0].failureSummary}`);
  await page.screenshot({ path: join(screenshots, `${address.replaceAll("/", "_")}.${view.name}.png`), fullPage: true });
  await page.close();
  return found.links;
}

async function checkSorting(address) {
  const { page, where } = await open(address, kViews[0]);
  const column = () => page.$eval("table[data-sortable]", (table) => [...table.tBodies[0].rows].map((row) => Number(row.cells[2].dataset.key)));
  const heading = await page.$("table[data-sortable] th:nth-child(3) button");
  await heading.click();
  const up = await column();
  expect(up.length > 2 && up.every((value, i) => i === 0 || up[i - 1] <= value), where, `not ascending: ${up}`);
  await heading.click();
  const down = await column();
  expect(down.every((value, i) => i === 0 || down[i - 1] >= value), where, `not descending: ${down}`);
  expect((await page.$$("th[aria-sort=descending]")).length === 1, where, "the order is not said");
  await page.close();
}

// Of the shapes, one is not timed.
async function checkSortingWithoutNumber(address) {
  const { page, where } = await open(address, kViews[0]);
  const heading = await page.$("table[data-sortable] th:nth-child(3) button");
  for (const way of ["up", "down"]) {
    await heading.click();
    const last = await page.$eval("table[data-sortable]", (table) => [...table.tBodies[0].rows].pop().cells[2].textContent);
    expect(last === "not timed", where, `sorted ${way}, ${last} is last`);
  }
  await page.close();
}

async function checkFilter(address) {
  const { page, where } = await open(address, kViews[0]);
  await page.type("input[type=search]", "SUM dram");
  const shown = await page.$$eval("table[data-filterable] tbody tr", (rows) => rows.filter((row) => row.offsetParent !== null).map((row) => row.textContent));
  expect(shown.length === 2 && shown.every((text) => text.includes("dram__bytes.sum")), where, `filter shows ${shown.length}`);
  expect((await page.$eval("output", (output) => output.textContent)).startsWith("2 of "), where, "no count");
  await page.close();
}

// The page of a submission that waits becomes that of its evaluation without being left.
async function checkRefresh(waiting, finished) {
  const { page, where } = await open(waiting, kViews[0]);
  await page.evaluate(() => (window.stayed = true));
  expect((await page.$eval("main", (main) => main.textContent)).includes("queued"), where, "does not wait");
  const text = await readFile(join(site, waiting), "utf8");
  replaced.set(waiting, text.replace("next to be judged", "3 before it"));
  await page.waitForFunction(() => document.body.textContent.includes("3 before it"), { timeout: 15000 });
  await page.click("input[type=checkbox]");
  replaced.set(waiting, await readFile(join(site, finished), "utf8"));
  await new Promise((done) => setTimeout(done, 7000));
  expect((await page.$("svg.chart")) === null, where, "refreshes though it was told not to");
  await page.click("input[type=checkbox]");
  await page.waitForFunction(() => document.querySelector("svg.chart") !== null, { timeout: 15000 });
  expect(await page.evaluate(() => window.stayed === true), where, "was left");
  expect((await page.$("main[data-refresh]")) === null, where, "goes on refreshing");
  expect((await page.$$("button.sort")).length > 0, where, "new tables cannot be sorted");
  replaced.delete(waiting);
  await page.close();
}

// As kjudge serve --count-metrics has it: opened once, however often, and rested on for a second.
async function checkCounting(address) {
  const counting = await readFile(new URL("../../lib/web/count.js", import.meta.url), "utf8");
  replaced.set("kjudge.js", (await readFile(join(site, "kjudge.js"), "utf8")) + counting);
  await checkPage(address, kViews[2]);
  const { page, where } = await open(address, kViews[0]);
  expect((await page.$eval("main", (main) => main.textContent)).includes("The organizer counts"), where, "does not say that it counts");
  const [first, second, third] = await page.$$("details.metric > summary");
  for (let i = 0; i < 3; ++i) await first.click();
  await second.hover();
  await new Promise((done) => setTimeout(done, 1500));
  await third.hover();
  const names = await page.$$eval("details.metric > summary code", (codes) => codes.slice(0, 3).map((code) => code.textContent));
  await page.goto("about:blank");
  await page.close();
  for (let i = 0; i < 100 && counted.length === 0; ++i) await new Promise((done) => setTimeout(done, 50));
  const [{ opened, rested } = { opened: [], rested: [] }, ...more] = counted;
  expect(more.length === 0 && opened.join() === names[0] && rested.includes(names[1]) && !rested.includes(names[2]), where,
         `counts ${JSON.stringify(counted)}`);
  replaced.delete("kjudge.js");
}

async function checkWithoutScript(address) {
  const { page, where } = await open(address, kViews[0], { script: false });
  // Chromium runs what a test asks even so.
  expect((await page.$$("tbody tr")).length > 5, where, "no table");
  expect((await page.$$("button")).length === 0, where, "the script ran");
  await page.close();
}

async function checkFromFile(address) {
  const { page, where } = await open(address, kViews[0], { base: pathToFileURL(site).href });
  expect((await page.$$("button.sort")).length > 0, where, "the script did not run");
  expect((await page.$eval("h1", (h1) => getComputedStyle(h1).fontSize)) === "28px", where, "no stylesheet");
  await page.close();
}

await mkdir(screenshots, { recursive: true });
const addresses = (await readdir(site, { recursive: true })).filter((name) => name.endsWith(".html")).sort();
const links = new Set();
for (const address of addresses) {
  for (const view of kViews) {
    for (const link of await checkPage(address, view)) links.add(link.split("#")[0]);
  }
}
for (const link of links) {
  const answer = await fetch(link);
  expect(answer.ok, link, "leads nowhere");
}
await checkSorting(addresses.find((name) => name.startsWith("leaderboard/") && name.includes("sm_90")));
await checkSortingWithoutNumber("evaluation/1.html");
await checkFilter("profile/3.4096x1000.html");
await checkRefresh("evaluation/10.html", "evaluation/1.html");
await checkCounting("profile/3.4096x1000.html");
await checkWithoutScript("profile/3.4096x1000.html");
await checkFromFile("evaluation/1.html");
await browser.close();
server.close();
console.log(`${addresses.length} pages in ${kViews.length} views, ${links.size} links: ${problems} problems`);
process.exit(problems > 0 ? 1 : 0);
