import { describe, expect, it } from "vitest";
import {
  formatBytes,
  formatCount,
  formatNumber,
  formatPower,
  formatShape,
  formatShare,
  formatShort,
  plural,
  wholeShare,
} from "./format";

describe("formatShare", () => {
  it.each([
    [0, 100, "0%"],
    [100, 100, "100%"],
    [1, 100_000, "<0.1%"],
    [99_999, 100_000, ">99.9%"],
    [65, 1000, "6.5%"],
    [93, 100, "93%"],
    [995, 1000, "99.5%"],
    [0, 0, "–"],
  ])("%d of %d reads %s", (part, whole, text) => {
    expect(formatShare(part, whole)).toBe(text);
  });

  it("never reads 0% or 100% where it isn't exactly that", () => {
    for (let part = 1; part < 5000; part++) expect(["0%", "100%"]).not.toContain(formatShare(part, 5000));
  });
});

it.each([
  [0, "0 B"],
  [999, "999 B"],
  [1000, "1.0 kB"],
  [2315, "2.3 kB"],
  [9949, "9.9 kB"],
  [9950, "10 kB"],
  [999_499, "999 kB"],
  [999_500, "1.0 MB"],
  [1_234_567, "1.2 MB"],
  [45_600_000, "46 MB"],
  [7.5e12, "7,500 GB"],
])("%d bytes read %s", (value, text) => {
  expect(formatBytes(value)).toBe(text);
});

it.each([
  [0.3386, 9, 1 / 3],
  [0.01, 9, 0],
  [1, 9, 1],
  [0.3386, 144, 0.3386],
  [0.5, 0, 0.5],
])("a recorded share of %d of %d elements stands for %d", (share, elements, whole) => {
  expect(wholeShare(share, elements, 0.022)).toBe(whole);
});

describe("formatNumber", () => {
  it.each([
    [0, "0"],
    [null, "–"],
    [Number.NaN, "–"],
    [Number.POSITIVE_INFINITY, "∞"],
    [0.0021, "2.1×10⁻³"],
    [1e-4, "10⁻⁴"],
    [1.013, "1.01"],
    [-0.5, "−0.5"],
    [25_375, "2.5×10⁴"],
    [9.97e-5, "10⁻⁴"],
  ])("%s reads %s", (value, text) => {
    expect(formatNumber(value)).toBe(text);
  });

  it("writes powers with their own sign", () => {
    expect(formatPower(1)).toBe("1");
    expect(formatPower(1e-7)).toBe("10⁻⁷");
    expect(formatPower(2.5e6)).toBe("2.5×10⁶");
  });
});

it("groups thousands, shortens ticks and names shapes", () => {
  expect(formatCount(21000)).toBe("21,000");
  expect([0, 999, 1000, 1500, 1250, 10_000, 2_500_000].map(formatShort)).toEqual([
    "0",
    "999",
    "1k",
    "1.5k",
    "1,250",
    "10k",
    "2.5M",
  ]);
  const close = [20_019, 20_020, 20_050, 20_100, 1_250_000, 999_999_999, 1_000_000_000, 1_000_000_100, 1_000_001_000];
  expect([...close, -1_500].map(formatShort)).toEqual([
    "20,019",
    "20,020",
    "20,050",
    "20.1k",
    "1.25M",
    "999,999,999",
    "1G",
    "1,000,000,100",
    "1,000,001,000",
    "-1.5k",
  ]);
  expect(formatShape([3, 3, 1, 32])).toBe("3×3×1×32");
  expect(formatShape([])).toBe("scalar");
  expect([plural(1, "channel"), plural(2000, "channel")]).toEqual(["1 channel", "2,000 channels"]);
});
