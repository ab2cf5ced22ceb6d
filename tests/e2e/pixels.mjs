// Pixels of what the page shows, read back in the browser: Python has no decoder of pictures at hand.

/** A PNG as {width, height, rgba: base64}. */
export const decoded = (page, png) =>
  page.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const bytes = context.getImageData(0, 0, image.width, image.height).data;
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return { width: image.width, height: image.height, rgba: btoa(text) };
  }, png.toString("base64"));
