// Renders Markdown as DOM nodes: markdown-it parses it, and each token becomes one of the elements below.
// HTML in the text is shown as text.

import MarkdownIt from "../vendor/markdown-it/markdown-it.esm.min.mjs";
import { copyButton } from "./copy.js";
import { el, link } from "./dom.js";

// Link references are disabled, because `[1]` in an answer is always a citation.
const parser = new MarkdownIt({ html: false, linkify: true }).disable(["reference"]);
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });

const CONTAINERS = new Set([
  "p", "ul", "ol", "li", "blockquote", "em", "strong", "s",
  "table", "thead", "tbody", "tr", "th", "td",
]);

/** A document fragment. `decorate(piece, plain)` returns the nodes of each piece of text; `plain` is false
 *  in code and in links. */
export function renderMarkdown(text, decorate = (piece) => [piece]) {
  const fragment = document.createDocumentFragment();
  build(parser.parse(text, {}), fragment, decorate);
  return fragment;
}

function build(tokens, root, decorate) {
  const open = [root];
  for (const token of tokens) {
    const parent = open.at(-1);
    if (token.nesting === 1 && token.hidden) {
      open.push(parent); // the paragraph in an item of a tight list
    } else if (token.nesting === 1) {
      const [outer, inner] = container(token);
      parent.append(outer);
      open.push(inner);
    } else if (token.nesting === -1) {
      const node = open.pop();
      if (node.nodeName === "TABLE") labelCells(node);
    } else if (token.type === "inline") {
      build(token.children, parent, decorate);
    } else {
      const linked = open.some((node) => node.nodeName === "A");
      parent.append(...leaf(token, (piece, plain) => decorate(piece, plain && !linked)));
    }
  }
}

/** The outer element of an opening token, and the element for its children. */
function container(token) {
  if (token.type === "link_open") return twice(link(token.attrGet("href")));
  if (token.type === "heading_open") return twice(el("p", { class: "heading" }));
  if (token.type === "ordered_list_open") return twice(el("ol", { start: token.attrGet("start") }));
  if (token.type === "table_open") {
    const table = el("table");
    return [el("div", { class: "table", tabindex: "0" }, table), table];
  }
  return twice(el(CONTAINERS.has(token.tag) ? token.tag : "span"));
}

/** Give each cell of a table the title of its column, which narrow windows show in front of it. */
function labelCells(table) {
  const [header, ...rows] = table.rows;
  table.classList.toggle("wide", header.cells.length > 2);
  for (const row of rows) Array.from(row.cells).forEach((cell, index) => (cell.dataset.column = header.cells[index].textContent));
}

function twice(node) {
  return [node, node];
}

function codeBlock(code, decorate) {
  const pre = el("pre", { tabindex: "0" }, el("code", {}, ...decorate(code, false)));
  return el("div", { class: "code" }, pre, copyButton("copyCode", () => code));
}

function leaf(token, decorate) {
  switch (token.type) {
    case "text":
      return decorate(token.content, true);
    case "code_inline":
      return [el("code", {}, ...decorate(token.content, false))];
    case "fence":
    case "code_block":
      return [codeBlock(token.content, decorate)];
    case "softbreak":
      return ["\n"];
    case "hardbreak":
      return [el("br")];
    case "hr":
      return [el("hr")];
    case "image":
      return [link(token.attrGet("src"), token.content || token.attrGet("src"))];
    default:
      return [token.content];
  }
}
