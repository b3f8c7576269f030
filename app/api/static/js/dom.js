// Elements. Text goes in as text nodes: nothing is ever parsed as HTML.

/** An element with attributes, `on…` listeners and children; attributes that are null or false are left out. */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** The same for SVG, whose `style` attributes the policy forbids: looks come from classes. */
export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.flat());
  return node;
}

/** The address, if it is one of the web; else null. */
export function webAddress(text) {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}

/** A link that opens beside the page; its children alone where the address is none of the web. */
export function link(address, ...children) {
  const href = webAddress(address);
  if (href === null) return el("span", {}, ...children);
  return el("a", { href, target: "_blank", rel: "noopener noreferrer" }, ...children);
}
