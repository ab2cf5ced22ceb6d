import { expect, it } from "vitest";
import { carryRows, makeRaster } from "./raster";

/** A raster of one column whose pixels are their places in the whole picture. */
const part = (from: number, height: number) => {
  const raster = makeRaster(1, height, 1);
  raster.data.set(Uint32Array.from({ length: height }, (_, y) => from + y));
  return raster;
};

it("carries the pixels that two parts of a picture share, whichever is further down", () => {
  const carried = (from: number, height: number, last: number, lastHeight: number) => {
    const raster = makeRaster(1, height, 1);
    carryRows(raster, part(last, lastHeight), from - last);
    return Array.from(raster.data);
  };
  expect(carried(103, 4, 100, 5)).toEqual([103, 104, 0, 0]);
  expect(carried(100, 4, 102, 5)).toEqual([0, 0, 102, 103]);
  expect(carried(100, 3, 100, 3)).toEqual([100, 101, 102]);
  expect(carried(100, 3, 200, 3)).toEqual([0, 0, 0]);
  expect(carried(200, 3, 100, 3)).toEqual([0, 0, 0]);
});
