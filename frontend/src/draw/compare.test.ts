import { describe, expect, it } from "vitest";
import type { Cells } from "../data/cells";
import { BOTH, NEITHER, ONLY_A, ONLY_B } from "../data/difference";
import { listed } from "../data/fixtures";
import { NO_DATA, PRUNED, REACTIVATED } from "../data/states";
import type { Container } from "../server/container";
import type { OverlapLayersHeader } from "../server/types";
import { distance, VISIONS } from "./colour.fixtures";
import { aliveStyle, bothColor, lineColor, overlapStyle, readOverlapColumns } from "./difference";
import { drawCells } from "./heatmap";
import { makeRaster } from "./raster";
import { blend, DARK, LIGHT, pack, pixelsOf, runColor, type Theme } from "./theme";
import { drawValues } from "./valuerow";

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
  drawCells({ raster, ...box }, cells([[state]]), Uint32Array.of(0), scale, aliveStyle(theme, colors));
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
    drawCells({ raster, ...box }, cells([[REACTIVATED]]), Uint32Array.of(0), scale, style);
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
    drawValues({ raster, x: 0, y: 0, width: 4, height: 1 }, values, columns, scale, pixels);
    expect([...raster.data]).toEqual([pack("#00574b"), pack(blend(LIGHT.overlap, 128 / 255)), 0, 0]);
    drawValues({ raster, x: 0, y: 0, width: 4, height: 1 }, null, columns, scale, pixels);
    expect([...raster.data]).toEqual([pixels.dot, 0, 0, 0]);
  });

  it("draws a row of an answer: the overlap, or what share of the layer one keeps", () => {
    const container: Container<OverlapLayersHeader> = {
      header: { layers: ["a", "b"], elements: [10, 40] } as OverlapLayersHeader,
      sections: new Map<string, Float64Array>([
        ["first_steps", Float64Array.of(0, 10)],
        ["steps", Float64Array.of(9, 19)],
        ["overlap", Float64Array.of(1, 0, 0.5, 0.25)],
        ["kept", Float64Array.of(10, 5, 40, 10)],
        ["other_kept", Float64Array.of(Number.NaN, 1, 20, 0)],
      ]),
    };
    const columns = readOverlapColumns(container);
    expect(columns.size).toBe(4);
    const pixels = pixelsOf(LIGHT);
    // The last column is as far from the axis' end as from the one before: 19 + 1.
    const drawn = (row: number, which: "overlap" | "kept" | "other_kept") => {
      const raster = makeRaster(3, 1, 1);
      columns.draw({ raster, x: 0, y: 0, width: 3, height: 1 }, row, which, { from: 0, to: 30, width: 3 }, pixels);
      return [...raster.data];
    };
    const tint = (value: number) => pack(blend(LIGHT.overlap, Math.round(value * 255) / 255));
    expect(drawn(0, "overlap")).toEqual([tint(1), tint(0), 0]);
    expect(drawn(1, "overlap")).toEqual([tint(0.5), tint(0.25), 0]);
    expect(drawn(0, "kept")).toEqual([tint(1), tint(0.5), 0]);
    expect(drawn(1, "kept")).toEqual([tint(1), tint(0.25), 0]);
    expect(drawn(0, "other_kept")).toEqual([pixels.dot, tint(0.1), 0]);
    expect(drawn(-1, "overlap")).toEqual([pixels.dot, 0, 0]);
  });
});
