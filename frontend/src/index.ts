/** The entry that TensorBoard's frame imports: it asks for the index while the rest of the page is still on its way. */

const index = fetch(new URL("index", import.meta.url));
// A failure is reported where the answer is awaited.
index.catch(() => undefined);
const page = import("./page");

/** Called once. */
export async function render(): Promise<void> {
  (await page).show(index);
}
