// Looks at reports, and at diagrams in Mermaid's words, in a browser that reaches nothing but files.
//
// node check.js JOB.json: the job names the browser, pages and diagrams; the answer on standard output has what was
// looked at, and every problem in a sentence.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const puppeteer = require('puppeteer-core');

const WIDTHS = [1400, 900, 390];
const SCHEMES = ['light', 'dark'];
// A picture of a longer page is more than a browser paints at once.
const HIGHEST = 12000;

const job = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const problems = [];
const file = (name) => path.resolve(path.dirname(process.argv[2]), name);
const shot = (name) => file(path.join('shots', name));
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

// Everything that a page does besides being shown.
const watch = (page, note) => {
  page.on('console', (message) => note(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => note(`error: ${error.message}`));
  page.on('popup', () => note('a window was opened'));
  page.on('dialog', async (dialog) => {
    note(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!/^(file|data|blob|about):/.test(request.url())) note(`request: ${request.url()}`);
  });
  page.on('requestfailed', (request) => note(`failed request: ${request.url()}`));
};

const opened = async (browser, name, { width, scheme, scripts }) => {
  const page = await browser.newPage();
  watch(page, (what) => problems.push(`${name}, ${width} px, ${scheme}, scripts ${scripts ? 'on' : 'off'}: ${what}`));
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.setJavaScriptEnabled(scripts);
  const start = performance.now();
  await page.goto(`file://${file(`${name}.html`)}`, { waitUntil: 'load', timeout: 120000 });
  const took = performance.now() - start;
  await wait(200);
  return { page, took };
};

// The layout of a page: what is wider than the window, and sections without a height.
const layout = (page) =>
  page.evaluate(() => {
    const root = document.documentElement;
    const found = [];
    if (root.scrollWidth > root.clientWidth) {
      const wide = [...document.querySelectorAll('body *')].filter((element) => {
        const scrolls = element.closest('.scroll, .picture, pre');
        return element.getBoundingClientRect().right > root.clientWidth + 1 && (!scrolls || scrolls === element);
      });
      const names = wide.slice(0, 3).map((element) => `${element.tagName.toLowerCase()}.${element.className}`);
      found.push(`scrolls sideways by ${root.scrollWidth - root.clientWidth} px: ${names.join(', ')}`);
    }
    const sections = [...document.querySelectorAll('main > section')];
    if (sections.length === 0) found.push('has no section');
    for (const section of sections) {
      if (section.getBoundingClientRect().height < 40) found.push(`section ${section.id} is empty`);
    }
    return { found, height: root.scrollHeight, text: document.querySelector('main').innerText.replace(/\s+/g, '').length };
  });

// Elements and attributes that only a name from the machine could have brought in.
const strangers = (page) =>
  page.evaluate(() => {
    const found = [];
    const allowed = new Set(('html head meta title style body header h1 h2 h3 dl div dt dd nav a main section p small span ' +
      'article table caption thead tbody tr th td pre code details summary ul li footer button input svg desc g rect path ' +
      'text polyline circle line script').split(' '));
    for (const element of document.querySelectorAll('*')) {
      const name = element.tagName.toLowerCase();
      if (!allowed.has(name)) found.push(`element ${name}`);
      for (const attribute of element.attributes) {
        if (/^on|^srcdoc$|^src$/.test(attribute.name)) found.push(`attribute ${attribute.name} of ${name}`);
      }
    }
    const running = [...document.scripts].filter((script) => !/json/.test(script.type));
    if (running.length !== 1) found.push(`${running.length} scripts`);
    if (window.pwned !== undefined) found.push('a script from a name has run');
    return found;
  });

// Presses every switch, sorts by every column of small tables, and filters.
const use = async (page) => {
  for (const button of await page.$$('#switches button')) {
    for (let turn = 0; turn < 3; turn += 1) await button.click();
  }
  return page.evaluate(() => {
    for (const details of document.querySelectorAll('details')) details.open = true;
    const found = [];
    for (const table of document.querySelectorAll('table.data')) {
      const rows = table.tBodies[0].rows.length;
      if (rows > 1000) continue;
      for (const button of table.querySelectorAll('thead button')) {
        for (let turn = 0; turn < 3; turn += 1) button.click();
      }
      if (table.tBodies[0].rows.length !== rows) found.push('sorting has lost rows');
      const input = table.closest('.scroll').previousElementSibling;
      if (!input || input.tagName !== 'INPUT') continue;
      const filtered = (words) => {
        input.value = words;
        input.dispatchEvent(new Event('input'));
        return [...table.tBodies[0].rows].filter((row) => !row.hidden).length;
      };
      if (filtered('no row has these words') !== 0) found.push('a filter keeps rows without its words');
      if (filtered('') !== rows) found.push('an empty filter hides rows');
    }
    return found;
  });
};

// What the policy of the page refuses: the network, and texts as programs.
const refused = async (browser, name) => {
  const page = await browser.newPage();
  await page.goto(`file://${file(`${name}.html`)}`, { waitUntil: 'load' });
  const ran = await page.evaluate(async () => {
    const seen = [];
    const violations = [];
    document.addEventListener('securitypolicyviolation', (event) => violations.push(event.effectiveDirective));
    const script = document.createElement('script');
    // Later, because a page may evaluate anything while the debugger evaluates something in it.
    script.textContent =
      "setTimeout(() => { try { eval('1'); window.evaluated = true; } catch (error) { window.evaluated = false; } }, 50);";
    document.head.append(script);
    await fetch('https://example.org/').then(() => seen.push('fetch'), () => {});
    for (const [tag, key] of [['img', 'src'], ['iframe', 'src'], ['script', 'src']]) {
      const element = document.createElement(tag);
      element[key] = 'https://example.org/x';
      document.body.append(element);
    }
    await new Promise((done) => setTimeout(done, 500));
    if (window.evaluated !== false) seen.push('eval');
    for (const directive of ['connect-src', 'img-src', 'frame-src', 'script-src-elem']) {
      if (!violations.includes(directive)) seen.push(directive);
    }
    return seen;
  });
  await page.close();
  for (const what of ran) problems.push(`${name}: the policy of the page does not refuse ${what}`);
};

const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const accessible = async (page, name) => {
  await page.evaluate(axe);
  const start = performance.now();
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  for (const violation of result.violations) {
    const nodes = violation.nodes.slice(0, 3).map((node) => node.target.join(' ')).join('; ');
    const text = `${name}: axe ${violation.impact}: ${violation.id} at ${violation.nodes.length} places (${nodes})`;
    if (['serious', 'critical'].includes(violation.impact)) problems.push(text);
  }
  return {
    passes: result.passes.length,
    lesser: result.violations.filter((violation) => !['serious', 'critical'].includes(violation.impact)).map((v) => v.id),
    ms: performance.now() - start,
  };
};

const report = async (browser, { name, axe: examine }) => {
  const answer = { name, looks: 0, slowest_ms: 0, height: 0, axe: [] };
  const texts = new Set();
  for (const width of WIDTHS) {
    for (const scheme of SCHEMES) {
      for (const scripts of [true, false]) {
        const { page, took } = await opened(browser, name, { width, scheme, scripts });
        const where = `${name}, ${width} px, ${scheme}, scripts ${scripts ? 'on' : 'off'}`;
        const seen = await layout(page);
        for (const what of seen.found) problems.push(`${where}: ${what}`);
        answer.looks += 1;
        answer.slowest_ms = Math.max(answer.slowest_ms, took);
        answer.height = Math.max(answer.height, seen.height);
        if (width === WIDTHS[0]) texts.add(seen.text);
        if (scripts || width === WIDTHS[0]) {
          const clip = { x: 0, y: 0, width, height: Math.min(seen.height, HIGHEST) };
          await page.screenshot({ path: shot(`${name}-${width}-${scheme}${scripts ? '' : '-plain'}.png`), clip, captureBeyondViewport: true });
        }
        if (scripts) {
          for (const what of await strangers(page)) problems.push(`${where}: ${what}`);
        }
        if (scripts && width === WIDTHS[0]) {
          for (const what of await use(page)) problems.push(`${where}: ${what}`);
          if (examine) answer.axe.push(await accessible(page, `${name}, ${scheme}`));
        }
        await page.close();
      }
    }
  }
  if (texts.size !== 1) problems.push(`${name}: texts differ with and without scripts: ${[...texts].join(', ')} letters`);
  const { page } = await opened(browser, name, { width: WIDTHS[0], scheme: 'light', scripts: true });
  // Closed tables are opened for print: the longest report has hundreds of pages.
  await page.pdf({ path: shot(`${name}.pdf`), format: 'A4', timeout: 300000 });
  await page.close();
  return answer;
};

const diagrams = async (browser) => {
  if (job.diagrams.length === 0) return [];
  const page = await browser.newPage();
  let current = 'mermaid';
  watch(page, (what) => problems.push(`${current}: ${what}`));
  await page.setViewport({ width: 1400, height: 900 });
  await page.goto('about:blank');
  await page.addScriptTag({ path: require.resolve('mermaid/dist/mermaid.min.js') });
  await page.evaluate(() => window.mermaid.initialize({ startOnLoad: false }));
  const answers = [];
  for (const { name, file: source } of job.diagrams) {
    current = name;
    const text = fs.readFileSync(file(source), 'utf8');
    const start = performance.now();
    const drawn = await page.evaluate(async (words) => {
      try {
        await window.mermaid.parse(words);
        const { svg } = await window.mermaid.render('drawn', words);
        document.body.innerHTML = svg;
        return { nodes: document.querySelectorAll('g.node').length };
      } catch (error) {
        return { error: String(error.message || error) };
      }
    }, text);
    if (drawn.error) problems.push(`${name}: mermaid: ${drawn.error.split('\n').slice(0, 4).join(' / ')}`);
    else await page.screenshot({ path: shot(`${name}.mermaid.png`) });
    answers.push({ name, nodes: drawn.nodes || 0, ms: performance.now() - start, size: text.length });
  }
  await page.close();
  return answers;
};

(async () => {
  const browser = await puppeteer.launch({
    executablePath: job.chromium,
    headless: true,
    protocolTimeout: 600000,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--host-resolver-rules=MAP * ~NOTFOUND'],
  });
  fs.mkdirSync(file('shots'), { recursive: true });
  const answer = { browser: await browser.version(), pages: [], problems };
  try {
    for (const page of job.pages) answer.pages.push(await report(browser, page));
    if (job.pages.length > 0) await refused(browser, job.pages[0].name);
    answer.diagrams = await diagrams(browser);
  } finally {
    await browser.close();
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
})().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
});
