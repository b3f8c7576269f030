// Server-sent events over fetch, parsed as in the HTML standard. EventSource supports GET only.

/** Yields the `{name, data}` of each event of a response body. */
export async function* readEvents(body) {
  let name = "message";
  let data = [];
  for await (const line of lines(body)) {
    if (line === "") {
      if (data.length) yield { name, data: data.join("\n") };
      [name, data] = ["message", []];
      continue;
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // A "\r" at the end of a piece is kept, because it may be the first half of "\r\n".
      const parts = (rest + value).split(/\r\n|\n|\r(?=.)/s);
      rest = parts.pop();
      yield* parts;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
