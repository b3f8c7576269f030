// The state of an answer while its events arrive.

export class StreamedAnswer {
  /** The sources by number. */
  sources = new Map();
  steps = [];

  /** The state after the final event of `answer`. */
  static of(answer) {
    const streamed = new StreamedAnswer();
    streamed.apply({ name: "sources", data: answer });
    streamed.steps = answer.answer.map((text, index) => ({
      text,
      unverified: answer.unverified.filter((fact) => text.includes(fact)),
      supported: !answer.unsupported.includes(index + 1),
    }));
    return streamed;
  }

  /** Update the state with the next event. The event `sources` discards the steps received so far. */
  apply({ name, data }) {
    if (name === "sources") {
      this.sources = new Map(data.sources.map((source) => [source.number, source]));
      this.steps = [];
    } else if (name === "step") {
      this.steps.push(data);
    }
  }

  /** Whether the received steps are those of `answer`. */
  matches(answer) {
    return answer.answer.join("\n") === this.steps.map(({ text }) => text).join("\n");
  }
}
