import { expect, it } from "vitest";
import { coverBox, over, putSprite } from "./dots";
import { makeRaster } from "./raster";

const pixel = (r: number, g: number, b: number, a: number) => (r | (g << 8) | (b << 16) | (a << 24)) >>> 0;
const parts = (packed: number) => [0, 8, 16, 24].map((shift) => (packed >>> shift) & 255);

it("lays a pixel over another as Porter and Duff do, with premultiplied fractions", () => {
  const values = [0, 1, 77, 128, 254, 255];
  for (const alpha of values) {
    for (const beneath of values) {
      const [red, green] = [200, 40];
      const [a, b] = [alpha / 255, beneath / 255];
      const sum = a + b * (1 - a);
      const found = parts(over(pixel(red, 0, 255, alpha), pixel(0, green, 255, beneath)));
      expect(found[3]).toBe(Math.round(255 * sum));
      if (sum === 0) continue;
      expect(Math.abs(found[0] - (red * a) / sum)).toBeLessThanOrEqual(0.5 + 1e-9);
      expect(Math.abs(found[1] - (green * b * (1 - a)) / sum)).toBeLessThanOrEqual(0.5 + 1e-9);
      expect(found[2]).toBe(255);
    }
  }
});

it("keeps what lies beneath where a sprite is transparent, and cuts off what lies outside", () => {
  const [ink, paper] = [pixel(1, 2, 3, 255), pixel(9, 9, 9, 255)];
  const sprite = { data: Uint32Array.from([ink, 0, ink, ink]), width: 2 };
  const put = (left: number, top: number) => {
    const raster = makeRaster(3, 2, 1);
    raster.data.fill(paper);
    putSprite(raster, sprite, left, top);
    return Array.from(raster.data, (one) => (one === ink ? "#" : one === paper ? "." : "?")).join("");
  };
  expect(put(0, 0)).toBe("#..##.");
  expect(put(2, 0)).toBe("..#..#");
  expect(put(-1, 0)).toBe("...#..");
  expect(put(1, -1)).toBe(".##...");
  expect(put(1, 1)).toBe("....#.");
  expect(put(3, 0) + put(-2, 0) + put(0, 2) + put(0, -2)).toBe(".".repeat(24));
});

it("covers pixels at the edge of a box in part", () => {
  const alphas = (x: number, y: number, width: number, height: number) => {
    const raster = makeRaster(4, 3, 1);
    coverBox(raster, { x, y, width, height }, pixel(7, 8, 9, 200));
    for (const one of raster.data) if (one > 0) expect(parts(one).slice(0, 3)).toEqual([7, 8, 9]);
    return Array.from(raster.data, (one) => parts(one)[3]);
  };
  expect(alphas(1, 1, 2, 1)).toEqual([0, 0, 0, 0, 0, 200, 200, 0, 0, 0, 0, 0]);
  expect(alphas(0.5, 0.25, 2, 1)).toEqual([75, 150, 75, 0, 25, 50, 25, 0, 0, 0, 0, 0]);
  expect(alphas(1.25, 1.5, 0.5, 0.25)).toEqual([0, 0, 0, 0, 0, 25, 0, 0, 0, 0, 0, 0]);
  expect(alphas(-3, 2, 9, 9)).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 200, 200, 200, 200]);
  expect(alphas(4, 0, 2, 2)).toEqual(Array(12).fill(0));
});
