// What the browser remembers: for this tab (session) or for good (local). Where storage is refused,
// as to frames of other sites, it is remembered until the page is left.

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
      // nothing was kept there
    }
  }
}

export const tab = new Store(() => sessionStorage);
export const browser = new Store(() => localStorage);
