import { expect, it } from "vitest";
import { carryColumns, carryRows, makeRaster } from "./raster";

/** A raster of three columns whose pixels are their places in the whole picture. */
const part = (from: number, height: number) => {
  const raster = makeRaster(3, height, 1);
  raster.data.set(Uint32Array.from({ length: 3 * height }, (_, at) => 10 * (from + Math.floor(at / 3)) + (at % 3)));
  return raster;
};

it("carries the pixels that two parts of a picture share, whichever is further down", () => {
  const carried = (from: number, height: number, last: number, lastHeight: number) => {
    const raster = makeRaster(1, height, 1);
    carryColumns(raster, 0, 1, part(last, lastHeight), 0, from - last);
    return Array.from(raster.data);
  };
  expect(carried(103, 4, 100, 5)).toEqual([1030, 1040, 0, 0]);
  expect(carried(100, 4, 102, 5)).toEqual([0, 0, 1020, 1030]);
  expect(carried(100, 3, 100, 3)).toEqual([1000, 1010, 1020]);
  expect(carried(100, 3, 200, 3)).toEqual([0, 0, 0]);
  expect(carried(200, 3, 100, 3)).toEqual([0, 0, 0]);
});

it("carries columns to another place, and leaves those beside them", () => {
  const raster = makeRaster(4, 2, 1);
  raster.data.fill(7);
  carryColumns(raster, 1, 2, part(0, 3), 1, 1);
  expect(Array.from(raster.data)).toEqual([7, 11, 12, 7, 7, 21, 22, 7]);
});

it("carries whole rows as it carries all of their columns, and leaves the other rows", () => {
  for (const [from, height, last, lastHeight] of [
    [103, 4, 100, 5],
    [100, 4, 102, 5],
    [100, 3, 100, 3],
    [100, 3, 200, 3],
    [200, 3, 100, 3],
  ]) {
    const [rows, columns] = [makeRaster(3, height, 1), makeRaster(3, height, 1)];
    for (const one of [rows, columns]) one.data.fill(7);
    carryRows(rows, part(last, lastHeight), from - last);
    carryColumns(columns, 0, 3, part(last, lastHeight), 0, from - last);
    expect(rows.data, `from ${from} of ${last}`).toEqual(columns.data);
  }
});
