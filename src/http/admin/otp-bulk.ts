/** `POST /admin/otp/bulk`: creates a token per row and returns each at once, in the format of the rows. */
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { accessEvent } from './access.ts';
import { answerBulk, bulkFailure, dryRun, readBulk, type BulkAnswer, type BulkRow } from './bulk/bulk.ts';
import type { Columns } from './bulk/columns.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { checkOtpEnabled, NewOtp, otpRecord, readOrder } from './otp.ts';
import { route } from './route.ts';
import { formatTimestamp } from '../../timestamp.ts';
import { validator } from './validation.ts';

const COLUMNS: Columns = { named: { client_id: 'text', max_uses: 'integer', expires_at: 'text', ca: 'text' } };
const ANSWERED = ['id', 'client_id', 'ca', 'created_at', 'expires_at', 'max_uses', 'uses', 'status', 'token'];
const ORDERED = ['client_id', 'ca', 'expires_at', 'max_uses'];

/** Concurrent rows, which share commits. OtpService limits the concurrent hashes. */
const IN_HAND = 16;

const checkNew = validator(NewOtp);

export function registerOtpBulk(app: AdminApp, deps: AdminDependencies): void {
  route(app, {
    call: 'POST /admin/otp/bulk',
    access: ['ra'],
    labels: 'records',
    bulk: 'only',
    summary: 'Create many one-time passwords',
    description:
      'NDJSON or CSV (`client_id,max_uses,expires_at,ca`), at most 10,000 rows and 16 MiB. The response has one result per row in the same format: the token’s record with its token, or `{row, code, message}`. Rows are independent. A dry run measures the configured hash, and the header `Estimated-Seconds` says how long the call would take.',
    query: { dry_run: dryRun },
    body: {
      content: {
        'application/x-ndjson': { schema: Type.Any({ description: 'The body of POST /admin/otp, one per line.' }) },
        'text/csv': { schema: Type.Any({ description: 'RFC 4180, with a header line.' }) },
      },
    },
    response: {
      200: {
        description: 'One result per row. No other response shows the tokens.',
        content: { 'application/x-ndjson': { schema: Type.Any() }, 'text/csv': { schema: Type.Any() } },
      },
    },
    errors: [409],
    handler: async (request, reply) => {
      checkOtpEnabled(deps);
      const { format, rows } = readBulk(request.body, COLUMNS);
      if (request.query.dry_run === 'true') {
        reply.header('estimated-seconds', Math.ceil((await deps.otp.estimate(rows.length)) / 1000));
        return answerBulk(reply, format, ORDERED, checkAll(deps, request, rows));
      }
      return answerBulk(reply, format, ANSWERED, makeAll(deps, request, rows));
    },
  });
}

/** The orders of the rows, without tokens. */
async function* checkAll(
  deps: AdminDependencies,
  request: FastifyRequest,
  rows: readonly BulkRow[],
): AsyncGenerator<BulkAnswer> {
  for (const row of rows) {
    // The stream sends results as they come.
    await Promise.resolve();
    try {
      const { expires_at, ...order } = readRow(deps, request, row);
      yield { ...order, expires_at: formatTimestamp(expires_at) };
    } catch (error) {
      yield bulkFailure(row, 'client_id', error);
    }
  }
}

function readRow(deps: AdminDependencies, request: FastifyRequest, row: BulkRow) {
  if ('problem' in row) throw row.problem;
  return readOrder(request, checkNew(row.record), deps);
}

async function* makeAll(
  deps: AdminDependencies,
  request: FastifyRequest,
  rows: readonly BulkRow[],
): AsyncGenerator<BulkAnswer> {
  const activeRequests: Promise<BulkAnswer>[] = [];
  for (const row of rows) {
    const first = activeRequests.length < IN_HAND ? undefined : activeRequests.shift();
    if (first !== undefined) yield await first;
    activeRequests.push(make(deps, request, row));
  }
  for (const answer of activeRequests) yield await answer;
}

/** Never rejects. */
async function make(deps: AdminDependencies, request: FastifyRequest, row: BulkRow): Promise<BulkAnswer> {
  try {
    const order = readRow(deps, request, row);
    const made = await deps.otp.create(order, [accessEvent(request, 'success', `token for ${order.client_id}`)]);
    return { ...otpRecord(made.row, deps.now()), token: made.token };
  } catch (error) {
    return bulkFailure(row, 'client_id', error);
  }
}
