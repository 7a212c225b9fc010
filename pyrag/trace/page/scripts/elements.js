// Elements as plain objects, the document patched to equal them, and the base class of views.

const SVG = "http://www.w3.org/2000/svg";
const KNOWN = Symbol("what an element was last patched to");

export function h(tag, props, ...kids) {
  return { tag, props: props ?? {}, kids, key: props?.key };
}

export function patch(parent, kids) {
  const wanted = kids.flat(Infinity).filter((kid) => kid !== null && kid !== undefined && kid !== false && kid !== "");
  const keyed = new Map();
  for (const node of parent.childNodes) if (node[KNOWN]?.key !== undefined) keyed.set(node[KNOWN].key, node);
  let place = parent.firstChild;
  for (const kid of wanted) {
    const candidate = kid.key === undefined ? place : keyed.get(kid.key);
    const node = candidate && fits(candidate, kid) ? candidate : create(kid, parent);
    if (kid.tag !== undefined) update(node, kid);
    else if (node.data !== String(kid)) node.data = String(kid);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  while (place) {
    const after = place.nextSibling;
    place.remove();
    place = after;
  }
}

function fits(node, kid) {
  if (kid.tag === undefined) return node.nodeType === Node.TEXT_NODE;
  return node.nodeType === Node.ELEMENT_NODE && node.localName === kid.tag && node[KNOWN]?.key === kid.key;
}

function create(kid, parent) {
  if (kid.tag === undefined) return document.createTextNode(String(kid));
  const drawing = kid.tag === "svg" || parent.namespaceURI === SVG;
  return drawing ? document.createElementNS(SVG, kid.tag) : document.createElement(kid.tag);
}

function update(node, kid) {
  const before = node[KNOWN]?.props ?? {};
  for (const name of Object.keys(before)) if (!(name in kid.props)) assign(node, name, null);
  for (const [name, value] of Object.entries(kid.props)) if (before[name] !== value) assign(node, name, value);
  node[KNOWN] = kid;
  if (!kid.tag.includes("-")) patch(node, kid.kids); // a custom element draws its own content
}

// A name with a dot is a property, one that starts with `on` a handler, `style` an object; the rest are attributes.
function assign(node, name, value) {
  if (name === "key") return;
  if (name.startsWith(".")) node[name.slice(1)] = value;
  else if (name.startsWith("on")) node[name] = value;
  else if (name === "style") for (const [one, text] of Object.entries(value ?? {})) node.style.setProperty(one, text);
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}

// An element that draws `view()` of what it was given in `data`, at most once a frame.
export class View extends HTMLElement {
  #waits = false;

  set data(data) {
    this.given = data;
    if (this.isConnected) this.draw();
  }

  connectedCallback() {
    if (this.given !== undefined) this.draw();
  }

  draw() {
    this.#waits = false;
    patch(this, [this.view()]);
  }

  redraw() {
    if (this.#waits) return;
    this.#waits = true;
    requestAnimationFrame(() => this.#waits && this.isConnected && this.draw());
  }
}
