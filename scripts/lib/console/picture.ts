/** Pictures for the documentation: PNG with a palette, a fifth of what a browser writes. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, deflateSync, inflateSync } from 'node:zlib';
import type { Page } from 'playwright-core';

/** @param folder undefined: none is taken; @param name likewise */
export async function takePicture(page: Page, folder: string | undefined, name: string | undefined): Promise<void> {
  if (folder === undefined || name === undefined) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.png`), withPalette(await page.screenshot({ animations: 'disabled' })));
}

interface Pixels {
  readonly width: number;
  readonly height: number;
  /** 8 bits each of red, green and blue, and of opacity where there are four to a pixel. */
  readonly bytes: Buffer;
  readonly perPixel: number;
}

function chunks(png: Buffer): { readonly type: string; readonly data: Buffer }[] {
  const all: { type: string; data: Buffer }[] = [];
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    all.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += 12 + length;
  }
  return all;
}

/** Undoes the filters of RFC 2083 §6. */
function read(png: Buffer): Pixels {
  const parts = chunks(png);
  const head = parts.find(({ type }) => type === 'IHDR')?.data ?? Buffer.alloc(13);
  const [width, height, perPixel] = [head.readUInt32BE(0), head.readUInt32BE(4), head[9] === 6 ? 4 : 3];
  const raw = inflateSync(Buffer.concat(parts.filter(({ type }) => type === 'IDAT').map(({ data }) => data)));
  const line = width * perPixel;
  const bytes = Buffer.alloc(line * height);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (line + 1)] ?? 0;
    for (let x = 0; x < line; x++) {
      const at = y * line + x;
      const left = x < perPixel ? 0 : (bytes[at - perPixel] ?? 0);
      const up = y === 0 ? 0 : (bytes[at - line] ?? 0);
      const corner = x < perPixel || y === 0 ? 0 : (bytes[at - line - perPixel] ?? 0);
      const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0;
      bytes[at] = (raw[y * (line + 1) + 1 + x] ?? 0) + predicted;
    }
  }
  return { width, height, bytes, perPixel };
}

function paeth(left: number, up: number, corner: number): number {
  const [a, b, c] = [up - corner, left - corner, left + up - 2 * corner].map(Math.abs);
  if (a === undefined || b === undefined || c === undefined) return 0;
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

/** The commonest 256 colors; what is rarer, the shades of letters, becomes the nearest of them. */
function withPalette(png: Buffer): Buffer {
  const { width, height, bytes, perPixel } = read(png);
  const count = new Map<number, number>();
  const colors = new Uint32Array(width * height);
  for (let n = 0; n < colors.length; n++) {
    const color = bytes.readUIntBE(n * perPixel, 3) & 0xfcfcfc;
    colors[n] = color;
    count.set(color, (count.get(color) ?? 0) + 1);
  }
  const palette = [...count]
    .sort(([, a], [, b]) => b - a)
    .slice(0, 128)
    .map(([color]) => color);
  const index = new Map(palette.map((color, n) => [color, n]));
  for (const color of count.keys()) if (!index.has(color)) index.set(color, nearest(color, palette));
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) lines[y * (width + 1) + 1 + x] = index.get(colors[y * width + x] ?? 0) ?? 0;
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const table = Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]));
  const parts = [
    chunk('IHDR', head),
    chunk('PLTE', table),
    chunk('IDAT', deflateSync(lines, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ];
  return Buffer.concat([png.subarray(0, 8), ...parts]);
}

function nearest(color: number, palette: readonly number[]): number {
  const distance = (other: number): number =>
    [16, 8, 0].reduce((sum, shift) => sum + (((color >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);
  let best = 0;
  for (let n = 1; n < palette.length; n++) if (distance(palette[n] ?? 0) < distance(palette[best] ?? 0)) best = n;
  return best;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(4);
  frame.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([frame, body, check]);
}
