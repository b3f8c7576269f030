// Storage per browser tab (session) or per browser (local). If storage is blocked, as in frames on other
// sites, values are kept in memory until the page is closed.

const PREFIX = "apidesk.";

class Store {
  #area;
  #memory = new Map();

  constructor(area) {
    this.#area = area;
  }

  get(name) {
    try {
      return this.#area().getItem(PREFIX + name);
    } catch {
      return this.#memory.get(name) ?? null;
    }
  }

  set(name, value) {
    try {
      this.#area().setItem(PREFIX + name, value);
    } catch {
      this.#memory.set(name, value);
    }
  }

  remove(name) {
    this.#memory.delete(name);
    try {
      this.#area().removeItem(PREFIX + name);
    } catch {
      // storage is blocked
    }
  }
}

export const tab = new Store(() => sessionStorage);
export const browser = new Store(() => localStorage);
