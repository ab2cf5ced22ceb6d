// Makes small PNGs of screenshots: at most 256 colours, the best compression.
import { deflateSync } from "node:zlib";

const SIGNATURE = [137, 80, 78, 71, 13, 10, 26, 10];
const CRCS = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name), data]);
  const crc = body.reduce((sum, byte) => CRCS[(sum ^ byte) & 255] ^ (sum >>> 8), 0xffffffff);
  const ends = Buffer.alloc(8);
  ends.writeUInt32BE(data.length);
  ends.writeUInt32BE((crc ^ 0xffffffff) >>> 0, 4);
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
}

/** Runs in a browser: the palette of a PNG, and the place in it of each pixel. */
async function indexed(png) {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const { width, height } = image;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const bytes = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  const apart = (a, b) => a.reduce((sum, value, i) => sum + (value - b[i]) ** 2, 0);
  const palette = [];
  // The most frequent colours, each at some distance from those before it: of every hue there is one.
  for (const near of [60, 20, 0]) {
    for (const [pixel] of [...counts].sort((a, b) => b[1] - a[1])) {
      if (palette.length < 256 && palette.every((other) => apart(other, bytes(pixel)) > near))
        palette.push(bytes(pixel));
    }
  }
  const nearest = new Map();
  for (const pixel of counts.keys()) {
    const own = bytes(pixel);
    nearest.set(
      pixel,
      palette.reduce((best, other, i) => (apart(other, own) < apart(palette[best], own) ? i : best), 0),
    );
  }
  return { width, height, palette: palette.flat(), places: [...pixels].map((pixel) => nearest.get(pixel)) };
}

/** A screenshot as a PNG with a palette. */
export async function shrink(page, png) {
  const { width, height, palette, places } = await page.evaluate(indexed, png.toString("base64"));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) rows.set(places.slice(y * width, (y + 1) * width), y * (width + 1) + 1);
  const chunks = [
    ["IHDR", head],
    ["PLTE", Buffer.from(palette)],
    ["IDAT", deflateSync(rows, { level: 9 })],
    ["IEND", Buffer.alloc(0)],
  ];
  return Buffer.concat([Buffer.from(SIGNATURE), ...chunks.map(([name, data]) => chunk(name, data))]);
}
