// The lists of a stream. An item keeps its element while it is listed, so that a click during an update is not lost.
const LISTED = 100;
const SCORE = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Show an item for each of `wanted`, in this order. `make(each)` creates an item, `update(item, each)` updates it.
function keep(list, wanted, name, make, update) {
  const there = new Map([...list.children].map((item) => [item.dataset.name, item]));
  const items = wanted.map((each) => {
    const item = there.get(`${name(each)}`) ?? make(each);
    item.dataset.name = name(each);
    update(item, each);
    return item;
  });
  const names = new Set(items.map((item) => item.dataset.name));
  for (const [old, item] of there) if (!names.has(old)) item.remove();
  items.forEach((item, place) => { if (list.children[place] !== item) list.insertBefore(item, list.children[place] ?? null); });
}

export const at = (alarm) => alarm.when?.replace("T", " ") ?? `row ${alarm.row.toLocaleString("en")}`;

export function listAlarms(list, alarms, chosen, { show, acknowledge }) {
  const make = (alarm) => {
    const button = (text, onclick) => {
      const made = element("button", { type: "button", textContent: text, onclick });
      made.setAttribute("aria-label", `${text}: alarm at ${at(alarm)}`);
      return made;
    };
    const jump = button("Show", () => show(alarm));
    jump.dataset.row = `${alarm.row}`;
    const what = element("div", { className: "what", textContent: [alarm.key, alarm.cause].filter(Boolean).join(": ") || "alarm" });
    what.append(element("small", { textContent: at(alarm) }), element("small", { textContent: `severity ${alarm.severity.toPrecision(2)}` }));
    const why = element("p", { className: "why", textContent: `${alarm.why}.` });
    return element("li", {}, what, why, jump, button("OK", () => acknowledge(alarm)));
  };
  const update = (item, alarm) => {
    item.classList.toggle("done", alarm.acknowledged);
    item.classList.toggle("chosen", alarm.row === chosen);
    const button = item.lastElementChild;
    button.disabled = alarm.acknowledged;
    if (alarm.acknowledged && button.textContent === "OK") {
      button.textContent = "✓";
      button.setAttribute("aria-label", `✓ Acknowledged: alarm at ${at(alarm)}`);
    }
  };
  const listed = alarms.slice(0, LISTED);
  keep(list, listed, (alarm) => alarm.row, make, update);
  return listed.length;
}

export function listKeys(list, { keys, key: shown }, choose) {
  const make = ({ key }) => {
    const button = element("button", { type: "button", className: "key", onclick: () => choose(key) }, element("span", { textContent: key }), element("small", {}));
    return element("li", {}, button, element("span", { className: "badge", title: "open alarms" }));
  };
  const update = (item, { key, alarms, highest, rows }) => {
    const [button, badge] = item.children;
    button.setAttribute("aria-pressed", key === shown);
    button.lastElementChild.textContent = `${rows.toLocaleString("en")} rows, score ${SCORE.format(highest ?? 0)}`;
    button.setAttribute("aria-label", `${key}, ${alarms === 1 ? "1 open alarm" : `${alarms} open alarms`}, ${button.lastElementChild.textContent}`);
    badge.hidden = !alarms;
    badge.textContent = alarms;
  };
  // items keep their positions while the pointer is over the list
  const order = list.matches(":hover, :focus-within") ? new Map([...list.children].map((item, place) => [item.dataset.name, place])) : new Map();
  const place = ({ key }) => order.get(key) ?? Infinity;
  keep(list, order.size ? [...keys].sort((a, b) => (place(a) === place(b) ? 0 : place(a) - place(b))) : keys, ({ key }) => key, make, update);
}
