// Helpers to create elements. Text is inserted as text nodes and never parsed as HTML.

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

/** An SVG element. It is styled by classes, because the Content-Security-Policy forbids `style` attributes. */
export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.flat());
  return node;
}

/** The normalised URL if it is an HTTP URL, otherwise null. */
export function httpUrl(text) {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}

/** A link that opens in a new tab, or a span with its children if the URL is not an HTTP URL. */
export function link(target, ...children) {
  const href = httpUrl(target);
  if (href === null) return el("span", {}, ...children);
  return el("a", { href, target: "_blank", rel: "noopener noreferrer" }, ...children);
}
