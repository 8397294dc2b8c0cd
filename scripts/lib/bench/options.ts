/** Values of options of the benchmarks. A wrong one ends the program. */

export function wholeNumber(text: string, limit: number, option: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= limit) return value;
  return refuse(`--${option}: "${text}" is not a whole number from 1 to ${limit}`);
}

function refuse(problem: string): never {
  console.error(problem);
  process.exit(2);
}

export function oneOf<T extends string>(all: readonly T[], text: string, option: string): T {
  return all.find((choice) => choice === text) ?? refuse(`--${option}: "${text}" is not one of ${all.join(', ')}`);
}
