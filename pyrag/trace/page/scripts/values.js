// Values of unknown shape, read as text, number, list or object.

export const text = (value) =>
  typeof value === "string" ? value : value === null || value === undefined ? "" : String(value);
export const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
export const list = (value) => (Array.isArray(value) ? value : []);
export const object = (value) => (typeof value === "object" && value !== null && !Array.isArray(value) ? value : {});
export const texts = (value) => list(value).map(plain);
export const plain = (value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : text(value));
