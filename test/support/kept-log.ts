import type { IsolatedLog } from '../../src/process/isolated-process.ts';

/** A log that keeps what it was told. */
export class KeptLog implements IsolatedLog {
  readonly lines: { level: string; message: string; fields: object }[] = [];

  info(fields: object, message: string): void {
    this.lines.push({ level: 'info', message, fields });
  }

  warn(fields: object, message: string): void {
    this.lines.push({ level: 'warn', message, fields });
  }

  error(fields: object, message: string): void {
    this.lines.push({ level: 'error', message, fields });
  }
}
