// Files that the reader keeps. They are fetched, because a link could not send the key.

/** Save what `fetched` gives as `{name, content}`. Throws what it throws. */
export async function saveFile(fetched) {
  const { name, content } = await fetched();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
