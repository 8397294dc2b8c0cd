/**
 * Loaded with `node --import`: shifts the wall clock of a process by `CLOCK_SHIFT` milliseconds, as on a machine with a wrong clock. With
 * `CLOCK_STEP=1` the clock is right until SIGUSR2.
 */
const wrong = Number(process.env['CLOCK_SHIFT'] ?? 0);
let shift = process.env['CLOCK_STEP'] === '1' ? 0 : wrong;
process.on('SIGUSR2', () => (shift = wrong));

const RealDate = Date;
class ShiftedDate extends RealDate {
  constructor(...values: [] | [value: number | string | Date]) {
    super(values.length === 0 ? RealDate.now() + shift : values[0]);
  }

  static override now(): number {
    return RealDate.now() + shift;
  }
}

Object.assign(globalThis, { Date: ShiftedDate });
