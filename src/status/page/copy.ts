/** Puts text on the clipboard. False where the browser does not let us: then it is marked, ready to be copied. */
export async function copy(text: string, shown: HTMLElement): Promise<boolean> {
  try {
    // Browsers have it on this machine's own addresses and over TLS only.
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(shown);
    return false;
  }
}
