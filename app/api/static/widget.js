// <script src="https://desk.example.com/widget.js" data-language="zh" defer></script>
// Adds a button that opens the question page in a frame of the server's own origin. The script reads only the
// language of the embedding site.
(() => {
  const { src, dataset } = document.currentScript;
  const base = new URL(".", src);
  const language = (dataset.language ?? document.documentElement.lang) || navigator.language;
  const labels = {{ labels | tojson }};
  const code = Object.keys(labels).find((each) => language.toLowerCase().startsWith(each)) ?? "en";
  const label = labels[code];

  const host = document.createElement("apidesk-widget");
  const root = host.attachShadow({ mode: "open" });
  const styles = new CSSStyleSheet();
  styles.replaceSync(`
    :host { all: initial; color-scheme: light dark; }
    button {
      position: fixed; inset: auto 20px 20px auto; z-index: 2147483000; min-height: 48px; padding: 0 20px;
      border: 0; border-radius: 24px; background: {{ accent }}; color: #fff; cursor: pointer;
      font: 600 15px/1 system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif;
      box-shadow: 0 4px 16px rgb(0 0 0 / .25);
    }
    button:focus-visible { outline: 3px solid #8fdcf2; outline-offset: 3px; }
    button[hidden], iframe[hidden] { display: none; }
    iframe {
      position: fixed; inset: auto 20px 20px auto; z-index: 2147483000; border: 0; border-radius: 14px;
      width: min(420px, calc(100vw - 40px)); height: min(680px, calc(100dvh - 40px));
      background: Canvas; box-shadow: 0 8px 40px rgb(0 0 0 / .3);
    }
    @media (max-width: 500px) {
      iframe { inset: 0; width: 100vw; height: 100dvh; border-radius: 0; }
    }
  `);
  root.adoptedStyleSheets = [styles];

  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.setAttribute("aria-haspopup", "dialog");
  const frame = document.createElement("iframe");
  frame.title = label;
  frame.allow = "clipboard-write";
  frame.hidden = true;
  root.append(button, frame);

  button.addEventListener("click", () => {
    if (!frame.src) frame.src = new URL(`embed?language=${code}`, base).href;
    frame.hidden = false;
    button.hidden = true;
    frame.focus();
  });

  function close() {
    if (frame.hidden) return;
    frame.hidden = true;
    button.hidden = false;
    button.focus();
  }

  addEventListener("message", (event) => {
    if (event.source === frame.contentWindow && event.origin === base.origin && event.data === "apidesk:close") close();
  });
  addEventListener("keydown", (event) => event.key === "Escape" && close());
  document.body.append(host);
})();
