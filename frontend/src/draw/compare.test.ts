import { describe, expect, it } from "vitest";
import type { Cells } from "../data/cells";
import { listed } from "../data/fixtures";
import { BOTH, NEITHER, ONLY_A, ONLY_B } from "../data/pairdiff";
import { NO_DATA, PRUNED, REACTIVATED } from "../data/states";
import { distance, VISIONS } from "./colour";
import { drawCells } from "./heatmap";
import { drawValues, overlapStyle } from "./overlap";
import { aliveStyle, bothColor, lineColor } from "./pairdiff";
import { makeRaster } from "./raster";
import { blend, DARK, LIGHT, pack, pixelsOf, runColor, type Theme } from "./theme";

const cells = (state: number[][]): Cells => ({
  header: {} as Cells["header"],
  channels: state.length,
  records: state[0].length,
  steps: Float64Array.from(state[0], (_, t) => t),
  pastSteps: new Float64Array(state[0].length),
  learningRates: new Float32Array(state[0].length),
  wallTimes: new Float64Array(state[0].length),
  end: state[0].length,
  state: Uint8Array.from(state.flat()),
  ...listed(state.flat().map(() => 0)),
});

/** The pixels of one cell, drawn large. */
function pixelsOfCell(state: number, theme: Theme, colors: [string, string], size = 32): Uint32Array {
  const raster = makeRaster(size, size, 1);
  const box = { x: 0, y: 0, width: size, height: size };
  const scale = { from: 0, to: 1, width: size };
  drawCells(raster, box, cells([[state]]), Uint32Array.of(0), scale, aliveStyle(theme, colors));
  return raster.data;
}

describe("where channels are alive", () => {
  it("tells only A from only B also where both runs have one colour", () => {
    const pixels = pixelsOf(LIGHT);
    const at = (kind: number) => pixelsOfCell(kind, LIGHT, ["#12b5cb", "#12b5cb"]);
    const line = pack(lineColor(LIGHT, "#12b5cb"));
    expect(new Set(at(BOTH))).toEqual(new Set([pack(bothColor(LIGHT))]));
    expect(new Set(at(ONLY_A))).toEqual(new Set([pack("#12b5cb")]));
    expect(new Set(at(ONLY_B))).toEqual(new Set([pack("#12b5cb"), line]));
    expect(new Set(at(NEITHER))).toEqual(new Set([pixels.states[PRUNED], pixels.hatch]));
    expect(new Set(at(NO_DATA))).toEqual(new Set([0, pixels.dot]));
    // Its lines lean the other way than the hatch of pruned channels.
    const diagonal = (kind: number) => [0, 1, 2].map((i) => at(kind)[i * 33]);
    expect(diagonal(ONLY_B)).toEqual([line, line, line]);
    expect(diagonal(NEITHER)).toEqual([pixels.hatch, pixels.states[PRUNED], pixels.states[PRUNED]]);
  });

  it("leaves the reactivated channels of a run without lines", () => {
    const raster = makeRaster(16, 16, 1);
    const style = { mode: "state", threshold: 1e-4, pixels: pixelsOf(DARK) } as const;
    const box = { x: 0, y: 0, width: 16, height: 16 };
    const scale = { from: 0, to: 1, width: 16 };
    drawCells(raster, box, cells([[REACTIVATED]]), Uint32Array.of(0), scale, style);
    expect(new Set(raster.data)).toEqual(new Set([pack("#ffffff")]));
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
    drawValues(raster, { x: 0, y: 0, width: 4, height: 1 }, values, columns, scale, pixels);
    expect([...raster.data]).toEqual([pack("#00574b"), pack(blend(LIGHT.overlap, 128 / 255)), 0, 0]);
    drawValues(raster, { x: 0, y: 0, width: 4, height: 1 }, null, columns, scale, pixels);
    expect([...raster.data]).toEqual([pixels.dot, 0, 0, 0]);
  });
});
