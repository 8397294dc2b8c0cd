/**
 * A process that enrolls until it is killed, or COUNT times: `node writer-process.ts DATABASE AUDIT_FILE NAME [COUNT]`.
 *
 * Each enrollment has a separate single-use OTP. What the store acknowledged goes to stdout, a line each, written
 * synchronously: `otp ID`, `reserved ID`, `recorded SERIAL`, `failed CODE`.
 */
import { randomBytes } from 'node:crypto';
import { writeSync } from 'node:fs';
import { EstuaryError } from '../../src/errors.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import { certificateRow, event, otpRow, reservation } from './rows.ts';

const [path = '', auditFile = '', name = '', limit = 'Infinity'] = process.argv.slice(2);
const LANES = 8;

const say = (line: string): void => {
  writeSync(1, `${line}\n`);
};

const store = await openStore({ path, auditFile });
say('ready');

async function enroll(): Promise<void> {
  const otp = otpRow();
  await store.insertOtp(otp, [event('otp.created', { subject: otp.client_id })]);
  say(`otp ${otp.id}`);
  const intent = reservation({ instance: name, otp_id: otp.id });
  const result = await store.reserve(intent, [event('otp.used'), event('request.received')]);
  if (result !== 'reserved') throw new Error(result);
  say(`reserved ${otp.id}`);
  const row = certificateRow(intent, { der: randomBytes(700) });
  await store.recordCertificate(row, [event('certificate.issued', { serial: row.serial })]);
  say(`recorded ${row.serial}`);
}

let left = Number(limit);
async function lane(): Promise<void> {
  while (left-- > 0) {
    try {
      await enroll();
    } catch (error) {
      if (!(error instanceof EstuaryError)) throw error;
      say(`failed ${error.code}`);
    }
  }
}
await Promise.all(Array.from({ length: LANES }, lane));
await store.close();
