// A font whose every letter is the same box, so that pictures of the page don't depend on the fonts of the machine.

const EM = 1000;
const ADVANCE = 500;
const [BOX, SPACE] = [1, 2]; // 0 is what a font lacks

/** Big-endian bytes of [size in bytes, number] pairs. */
function bytes(...fields) {
  const out = Buffer.alloc(fields.reduce((sum, [size]) => sum + size, 0));
  let at = 0;
  for (const [size, value] of fields) {
    if (value < 0) out.writeIntBE(value, at, size);
    else out.writeUIntBE(value, at, size);
    at += size;
  }
  return out;
}

const shorts = (...values) => values.map((value) => [2, value]);
const longs = (...values) => values.map((value) => [4, value]);
const zeros = (count) => Array.from({ length: count }, () => [1, 0]);

const box = bytes(
  ...shorts(1, 50, 0, 450, 700, /* last point */ 3, /* instructions */ 0),
  ...[1, 1, 1, 1].map((onCurve) => [1, onCurve]),
  ...shorts(50, 0, 400, 0, /* y */ 0, 700, 0, -700),
);

/** Code points from, to, glyph: many-to-one. */
const groups = [
  [0x20, 0x20, SPACE],
  [0x21, 0x9f, BOX],
  [0xa0, 0xa0, SPACE],
  [0xa1, 0xd7ff, BOX],
  [0xe000, 0x10ffff, BOX],
];

const tables = {
  "OS/2": bytes(
    ...shorts(4, ADVANCE, 400, 5, 0, 650, 600, 0, 75, 650, 600, 0, 350, 50, 250, 0),
    ...zeros(10 + 16 + 4),
    ...shorts(0x40, 0x20, 0xffff, 800, -200, 0, 800, 200),
    ...zeros(8),
    ...shorts(500, 700, 0, 0x20, 1),
  ),
  cmap: bytes(
    ...shorts(0, 1, 3, 10),
    ...longs(12),
    ...shorts(13, 0),
    ...longs(16 + 12 * groups.length, 0, groups.length, ...groups.flat()),
  ),
  glyf: box,
  head: bytes(
    ...longs(0x10000, 0x10000, 0, 0x5f0f3cf5),
    ...shorts(0, EM),
    ...zeros(16),
    ...shorts(50, 0, 450, 700, 0, 8, 2, 0, 0),
  ),
  hhea: bytes(...longs(0x10000), ...shorts(800, -200, 0, ADVANCE, 0, 50, 450, 1, 0, 0, 0, 0, 0, 0, 0, 1)),
  hmtx: bytes(...shorts(ADVANCE, 0, 50, 0)),
  loca: bytes(...shorts(0, 0, box.length / 2, box.length / 2)),
  maxp: bytes(...longs(0x10000), ...shorts(3, 4, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0)),
  name: bytes(...shorts(0, 0, 6)),
  post: bytes(...longs(0x30000, 0), ...shorts(-75, 50), ...longs(1, 0, 0, 0, 0)),
};

function font() {
  const names = Object.keys(tables);
  const power = 2 ** Math.floor(Math.log2(names.length));
  const head = [...longs(0x10000), ...shorts(names.length, 16 * power, Math.log2(power), 16 * (names.length - power))];
  let offset = 12 + 16 * names.length;
  const bodies = [];
  for (const name of names) {
    const body = tables[name];
    head.push(...[...name].map((letter) => [1, letter.charCodeAt(0)]), ...longs(0, offset, body.length));
    const padded = Buffer.alloc(Math.ceil(body.length / 4) * 4);
    body.copy(padded);
    bodies.push(padded);
    offset += padded.length;
  }
  return Buffer.concat([bytes(...head), ...bodies]);
}

/** Puts boxes in place of all letters of a frame. */
export async function useBoxes(frame) {
  const source = `url(data:font/ttf;base64,${font().toString("base64")})`;
  await frame.addStyleTag({
    content: `@font-face { font-family: Boxes; font-weight: 1 1000; src: ${source} } * { font-family: Boxes !important }`,
  });
  const loaded = await frame.evaluate(async () => (await document.fonts.load("12px Boxes")).length);
  if (loaded !== 1) throw new Error("the font of boxes wasn't taken");
}
