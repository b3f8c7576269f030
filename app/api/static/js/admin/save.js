// Saves files. They are fetched with the API key, which a download link could not send.

/** Save the file `{name, content}` that `fetchFile` returns. Throws the errors of `fetchFile`. */
export async function saveFile(fetchFile) {
  const { name, content } = await fetchFile();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
