// Pixels of what the page shows, read back in the browser: Python has no decoder of pictures at hand.

/** The mean colours of a PNG's square blocks, as a picture of one pixel a block; those at the edges may be narrower. */
export const blocksOf = (page, png, size) =>
  page.evaluate(
    async ([data, side]) => {
      const image = new Image();
      image.src = `data:image/png;base64,${data}`;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.drawImage(image, 0, 0);
      const bytes = context.getImageData(0, 0, image.width, image.height).data;
      const [width, height] = [Math.ceil(image.width / side), Math.ceil(image.height / side)];
      const sums = new Float64Array(width * height * 4);
      const counts = new Float64Array(width * height);
      for (let y = 0, at = 0; y < image.height; y++) {
        for (let x = 0; x < image.width; x++, at += 4) {
          const block = Math.floor(y / side) * width + Math.floor(x / side);
          counts[block]++;
          for (let channel = 0; channel < 4; channel++) sums[4 * block + channel] += bytes[at + channel];
        }
      }
      const means = Uint8Array.from(sums, (sum, at) => Math.round(sum / counts[at >> 2]));
      return { width, height, rgba: btoa(String.fromCharCode(...means)) };
    },
    [png.toString("base64"), size],
  );

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
