import { describe, expect, it } from "vitest";
import { BOTH, type Grid, NEITHER, NO_DIFFERENCE, ONLY_A, ONLY_B, UNKNOWN } from "../model/difference";
import { distance, VISIONS } from "./colour";
import { bothColor, drawGrid, lineColor, paintClasses, paintSigned } from "./difference";
import { drawValues, overlapStyle } from "./overlap";
import { blend, DARK, LIGHT, pack, pixelsOf, runColor } from "./palette";
import { makeRaster } from "./raster";

const grid = (rows: number[][]): Grid => ({
  steps: Float64Array.from(rows[0], (_, t) => t),
  end: rows[0].length,
  channels: rows.length,
  values: Int8Array.from(rows.flat()),
});

/** The values that were painted, a row a list. */
function painted(data: Grid, width: number, height: number, signed = false, order = data.values.map((_, c) => c)) {
  const raster = makeRaster(width, height, 1);
  const rows = Uint32Array.from(order.slice(0, data.channels));
  const scale = { from: 0, to: data.end, width };
  drawGrid(raster, { x: 0, y: 0, width, height }, data, rows, scale, signed, (value) => value + 200);
  return Array.from({ length: height }, (_, y) =>
    Array.from(raster.data.subarray(y * width, (y + 1) * width), (pixel) => pixel - 200),
  );
}

describe("difference", () => {
  it("draws each cell, in the order of the rows", () => {
    const two = grid([
      [BOTH, ONLY_A],
      [ONLY_B, NEITHER],
    ]);
    expect(painted(two, 2, 2)).toEqual([
      [BOTH, ONLY_A],
      [ONLY_B, NEITHER],
    ]);
    expect(painted(two, 2, 4, false, Int8Array.of(1, 0))).toEqual([
      [ONLY_B, NEITHER],
      [ONLY_B, NEITHER],
      [BOTH, ONLY_A],
      [BOTH, ONLY_A],
    ]);
  });

  it("pools classes by majority, and of a tie takes the latest", () => {
    expect(painted(grid([[BOTH], [BOTH], [ONLY_B]]), 1, 1)).toEqual([[BOTH]]);
    expect(painted(grid([[ONLY_A, BOTH]]), 1, 1)).toEqual([[BOTH]]);
    expect(painted(grid([[ONLY_A], [BOTH], [NEITHER]]), 1, 1)).toEqual([[NEITHER]]);
  });

  it("pools differences by the largest either way", () => {
    expect(
      painted(
        grid([
          [3, -90],
          [40, NO_DIFFERENCE],
        ]),
        1,
        1,
        true,
      ),
    ).toEqual([[-90]]);
    expect(painted(grid([[NO_DIFFERENCE], [NO_DIFFERENCE]]), 1, 1, true)).toEqual([[NO_DIFFERENCE]]);
  });

  it("tells only A from only B also where both runs have one colour", () => {
    const pixels = pixelsOf(LIGHT);
    const paint = paintClasses(LIGHT, pixels, ["#12b5cb", "#12b5cb"], 1);
    const at = (value: number) =>
      new Set(Array.from({ length: 256 }, (_, i) => paint(value, i % 16, Math.floor(i / 16))));
    expect([...at(BOTH)]).toEqual([pack(bothColor(LIGHT))]);
    expect([...at(ONLY_A)]).toEqual([pack("#12b5cb")]);
    expect(at(ONLY_B)).toEqual(new Set([pack("#12b5cb"), pack(lineColor(LIGHT, "#12b5cb"))]));
    expect(at(NEITHER)).toEqual(new Set([pixels.states[5], pixels.hatch]));
    expect(at(UNKNOWN)).toEqual(new Set([0, pixels.dot]));
    // Its lines lean the other way than the hatch of pruned channels.
    const line = pack(lineColor(LIGHT, "#12b5cb"));
    expect([0, 1, 2].map((i) => paint(ONLY_B, i, i))).toEqual([line, line, line]);
    expect([0, 1, 2].map((i) => paint(NEITHER, i, i) === pixels.hatch)).toEqual([true, false, false]);
  });

  it("has lines on each run's colour, and a grey apart from it, for every kind of sight", () => {
    for (const theme of [LIGHT, DARK]) {
      for (let i = 0; i < 7; i++) {
        const color = runColor(i, theme.dark);
        for (const vision of VISIONS) {
          expect(distance(color, lineColor(theme, color), vision)).toBeGreaterThan(10);
          expect(distance(color, bothColor(theme), vision)).toBeGreaterThan(10);
        }
      }
    }
  });

  it("draws signed differences on the diverging scale", () => {
    const paint = paintSigned(LIGHT, pixelsOf(LIGHT), 1);
    expect([-127, 0, 127].map((value) => paint(value, 1, 1))).toEqual(LIGHT.diverging.map(pack));
    expect(paint(NO_DIFFERENCE, 1, 1)).toBe(0);
  });
});

describe("overlap", () => {
  const luminance = (hex: string) => {
    const [r, g, b] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };

  it("has a number that is read at 4.5:1 on each value", () => {
    for (const theme of [LIGHT, DARK]) {
      for (let i = 0; i <= 100; i++) {
        const { background, color } = overlapStyle(theme, i / 100);
        const [low, high] = [luminance(background), luminance(color)].sort((a, b) => a - b);
        expect((high + 0.05) / (low + 0.05)).toBeGreaterThanOrEqual(4.5);
        expect(background).toBe(blend(theme.overlap, i / 100));
      }
    }
  });

  it("draws values over steps, of several under a pixel the last that is known", () => {
    const raster = makeRaster(4, 1, 1);
    const columns = { starts: Float64Array.of(0, 1, 2, 3, 4, 5), end: 6 };
    const values = [0, 1, 0.5, Number.NaN, Number.NaN, Number.NaN];
    const scale = { from: 0, to: 8, width: 4 };
    const pixels = pixelsOf(LIGHT);
    drawValues(raster, { x: 0, y: 0, width: 4, height: 1 }, values, columns, scale, LIGHT, pixels);
    expect([...raster.data]).toEqual([pack("#00574b"), pack(blend(LIGHT.overlap, 128 / 255)), 0, 0]);
    drawValues(raster, { x: 0, y: 0, width: 4, height: 1 }, null, columns, scale, LIGHT, pixels);
    expect([...raster.data]).toEqual([pixels.dot, 0, 0, 0]);
  });
});
