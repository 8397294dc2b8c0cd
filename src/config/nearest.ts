/** Maximum compared characters: the work grows with them, and no key is as long. */
const COMPARED = 40;

/** The most likely word for a mistyped one: the smallest edit distance, the first of equals. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const mistyped = word.slice(0, COMPARED).toLowerCase();
  let best: string | undefined;
  let bestDistance = Infinity;
  for (const candidate of candidates) {
    // The distance is at least the difference of the lengths.
    if (Math.abs(mistyped.length - candidate.length) >= bestDistance) continue;
    const distance = editDistance(mistyped, candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Levenshtein distance of truncated words; a swap of neighbors counts once. */
export function editDistance(word: string, other: string): number {
  const [a, b] = [word.slice(0, COMPARED), other.slice(0, COMPARED)];
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let distance = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        distance = Math.min(distance, at(beforeLast, j - 2) + 1);
      row.push(distance);
    }
    [beforeLast, last] = [last, row];
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity;
}
