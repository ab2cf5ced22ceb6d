import { describe, expect, it } from "vitest";
import { type Mark, toSvg } from "./figure";

const font = { weight: "400", size: 12, family: '"A", b' };
const box = { x: 1.234, y: 2, width: 30, height: 10 };
const svg = (...marks: Mark[]) => toSvg({ box: { x: 0, y: 0, width: 100, height: 50 }, marks });

describe("toSvg", () => {
  it("writes texts as texts, escaped", () => {
    const told = svg({ kind: "text", x: 3, y: 4, text: "a<b> & \u0007c", font, fill: "#123456" });
    expect(told).toContain('<text x="3" y="4" dominant-baseline="central"');
    expect(told).toContain(">a&lt;b&gt; &amp; \ufffdc</text>");
    expect(told).toContain('font-family="&quot;A&quot;, b"');
    expect(told).toContain('viewBox="0 0 100 50"');
  });

  it("writes from right to left up to the left end", () => {
    const text = svg({ kind: "text", x: 3, y: 4, text: "אב", font, fill: "red", rightToLeft: true });
    expect(text).toContain('<text x="3" y="4"');
    expect(text).toContain('direction="rtl" text-anchor="end"');
  });

  it("gives each clip and gradient a name of its own", () => {
    const gradient: Mark = { kind: "gradient", box, colors: ["red", "white", "blue"], down: false };
    const told = svg(
      { kind: "clip", box, marks: [gradient, gradient] },
      { kind: "hatch", box, fill: "red", line: "blue" },
    );
    const names = [...told.matchAll(/ id="(\w+)"/g)].map(([, name]) => name);
    expect(new Set(names).size).toBe(4);
    for (const name of names) expect(told).toContain(`url(#${name})`);
    expect(told).toContain('<stop offset="0.5" stop-color="white"/>');
    expect(told).toContain('x="1.23" y="2" width="30" height="10"');
  });

  it("hatches the whole box", () => {
    const told = svg({ kind: "hatch", box: { x: 0, y: 0, width: 12, height: 10 }, fill: "red", line: "blue" });
    // From ten left of the box on, each five, up to its right end.
    expect(told).toContain('d="M-10,10l10,-10M-5,10l10,-10M0,10l10,-10M5,10l10,-10M10,10l10,-10"');
  });
});
