'use strict';
(() => {
  // A switch of the page: a button that goes through words, one after the other.
  const bar = document.getElementById('switches');
  const button = (label, press) => {
    const made = document.createElement('button');
    made.type = 'button';
    made.textContent = label;
    made.addEventListener('click', () => press(made));
    return made;
  };
  const themes = ['auto', 'light', 'dark'];
  let theme = 0;
  bar.append(button('Colours: auto', (made) => {
    theme = (theme + 1) % themes.length;
    made.textContent = 'Colours: ' + themes[theme];
    if (theme === 0) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = themes[theme];
  }));

  // GB/s and GiB/s: columns that say the first, with the number as it was kept.
  const giga = 1e9 / 2 ** 30;
  const columns = [];
  for (const head of document.querySelectorAll('table.data thead th')) {
    if (/\bgb per s\b/.test(head.textContent)) columns.push(head);
  }
  let binary = false;
  const units = (made) => {
    binary = !binary;
    made.textContent = 'Bandwidth: ' + (binary ? 'GiB/s' : 'GB/s');
    for (const head of columns) {
      const at = head.cellIndex;
      const name = head.querySelector('button') || head;
      name.textContent = name.textContent.replace(binary ? 'gb per s' : 'gib per s', binary ? 'gib per s' : 'gb per s');
      for (const row of head.closest('table').tBodies[0].rows) {
        const cell = row.cells[at];
        if (!cell || cell.textContent === '') continue;
        if (cell.dataset.value === undefined) cell.dataset.value = cell.textContent;
        const value = Number(cell.dataset.value);
        cell.textContent = binary ? (value * giga).toFixed(3) : cell.dataset.value;
      }
    }
  };
  if (columns.length > 0) bar.append(button('Bandwidth: GB/s', units));

  const folded = document.querySelectorAll('main details');
  if (folded.length > 0) {
    let open = false;
    bar.append(button('Open all tables', (made) => {
      open = !open;
      made.textContent = open ? 'Close all tables' : 'Open all tables';
      for (const details of folded) details.open = open;
    }));
  }
  bar.hidden = false;

  // What is printed is open.
  let closed = [];
  addEventListener('beforeprint', () => {
    closed = [...document.querySelectorAll('details:not([open])')];
    for (const details of closed) details.open = true;
  });
  addEventListener('afterprint', () => {
    for (const details of closed) details.open = false;
  });

  // Rows by a column: numbers as numbers, empty fields last.
  const order = (a, b) => {
    if (a === '' || b === '') return (a === '') - (b === '');
    const difference = Number(a) - Number(b);
    return Number.isNaN(difference) ? a.localeCompare(b, 'en', { numeric: true }) : difference;
  };
  for (const table of document.querySelectorAll('table.data')) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    for (const head of table.tHead.rows[0].cells) {
      const at = head.cellIndex;
      const label = head.textContent;
      head.textContent = '';
      head.append(button(label, () => {
        const before = head.getAttribute('aria-sort');
        const now = before === 'ascending' ? 'descending' : before === 'descending' ? 'none' : 'ascending';
        for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', now);
        const field = (row) => (row.cells[at] ? row.cells[at].textContent : '');
        const rows = [...original];
        if (now !== 'none') {
          const sign = now === 'ascending' ? 1 : -1;
          rows.sort((a, b) => {
            const [x, y] = [field(a), field(b)];
            return x === '' || y === '' ? order(x, y) : sign * order(x, y);
          });
        }
        body.append(...rows);
      }));
    }
    if (table.dataset.long === undefined) continue;
    const input = document.createElement('input');
    input.type = 'search';
    input.placeholder = 'Rows that contain…';
    input.setAttribute('aria-label', 'Rows that contain these words');
    input.addEventListener('input', () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of original) {
        const fields = [...row.cells].map((cell) => cell.textContent.toLowerCase());
        row.hidden = !words.every((word) => fields.some((field) => field.includes(word)));
      }
    });
    table.closest('.scroll').before(input);
  }
})();
