// SPDX-License-Identifier: PostgreSQL
//
// page.js OUT: a headless Chromium, led by lines on stdin, one command each; one line of JSON back.
//
//   open URL         loads it; at once if it is open already
//   read             what the page shows: {state, advice, numbers: {id: n}, dead: [[cell…]…], …}
//   point ID PLACE   what a plot says of a step, from 0 the oldest: {lines: [line…]}
//   shoot NAME       OUT/NAME-light.png, -dark.png and -phone.png; {overflow: pixels too wide,
//                    colors: {light: [behind, text], …}}
'use strict';

const readline = require('node:readline');
const { chromium } = require('playwright-core');

const [, , out] = process.argv;
const looks = {
  light: { colorScheme: 'light', width: 1180, height: 900 },
  dark: { colorScheme: 'dark', width: 1180, height: 900 },
  phone: { colorScheme: 'dark', width: 390, height: 844 },
};
const errors = [];
let page;

// Runs in the page.
function look() {
  const rows = id => [...document.querySelectorAll(`#${id} tbody tr`)].map(
    row => [...row.cells].map(cell => cell.textContent));
  const numbers = {};
  for (const node of document.querySelectorAll('[data-value]')) {
    numbers[node.id] = Number(node.dataset.value);
  }
  return {
    now: Number(document.body.dataset.now || 0),
    state: document.getElementById('state').dataset.state,
    stateText: document.getElementById('state').textContent,
    advice: document.getElementById('advice').hidden ? null
      : document.getElementById('advice').textContent,
    flow: document.getElementById('flow').textContent,
    numbers,
    dead: rows('dead'),
    deadText: document.getElementById('dead').textContent,
    errors: rows('errors'),
    blocked: rows('blocked'),
    leases: Object.fromEntries([...document.querySelectorAll('#leases dt')].map(
      node => [node.textContent, node.nextElementSibling.textContent])),
    workers: rows('workers'),
    checks: Object.fromEntries([...document.querySelectorAll('[data-check]')].map(
      node => [node.dataset.check, node.dataset.ok === 'true'])),
    steps: Object.fromEntries(['rate', 'age'].map(
      name => [name, Number(document.querySelector(`#plot-${name} svg`)?.dataset.steps ?? -1)])),
    markup: document.querySelectorAll('main img, main script, main b, main iframe').length,
    leaked: document.documentElement.textContent.includes('for your eyes only'),
  };
}

// Runs in the page: points at a step of a plot, and reads what it says, before it is drawn anew.
function pointAt([id, place]) {
  const root = document.querySelector(`#${id} svg`);
  const box = root.getBoundingClientRect();
  const count = Number(root.dataset.steps);
  const shown = (SPANS.find(span => span * 6 >= count) || SPANS[SPANS.length - 1]) * 6;
  root.dispatchEvent(new PointerEvent('pointermove', { clientY: box.top + 20,
    clientX: box.left + LEFT + (box.width - LEFT - 6) * (shown - count + Number(place) + 1) / shown }));
  return [...document.querySelectorAll(`#${id} .tip.shown div`)].map(node => node.textContent);
}

// Runs in the page: what it is written on, and what with.
function colors() {
  const style = getComputedStyle(document.body);
  return [style.backgroundColor, style.color];
}

const commands = {
  async open(url) {
    await page.goto(url);
    return {};
  },
  async read() {
    return { ...(await page.evaluate(look)), scriptErrors: errors };
  },
  async point(what) {
    return { lines: await page.evaluate(pointAt, what.split(' ')) };
  },
  async shoot(name) {
    const seen = { overflow: 0, colors: {} };
    for (const [kind, { colorScheme, width, height }] of Object.entries(looks)) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height });
      // The plots are drawn anew for the width with the next answer.
      const drawn = await page.evaluate(() => Number(document.body.dataset.now || 0));
      await page.waitForFunction(before => document.body.className === 'stale' ||
        Number(document.body.dataset.now) > before, drawn);
      await page.screenshot({ path: `${out}/${name}-${kind}.png`, fullPage: true });
      seen.colors[kind] = await page.evaluate(colors);
      seen.overflow = Math.max(seen.overflow, await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth));
    }
    return seen;
  },
};

async function main() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  page = await browser.newPage();
  page.on('pageerror', error => errors.push(String(error)));
  page.on('console', message => {
    // That the puller does not answer is a state of the page, and the browser's own message.
    if (message.type() === 'error' && !/ERR_|Failed to load resource/.test(message.text())) {
      errors.push(message.text());
    }
  });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, ...rest] = line.split(' ');
    try {
      console.log(JSON.stringify(await commands[command](rest.join(' '))));
    } catch (error) {
      console.log(JSON.stringify({ failed: String(error.stack) }));
    }
  }
  await browser.close();
}

main();
