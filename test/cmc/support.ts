/** CMC messages, as a server reads them, without their signatures. */
import { readContent, type Message } from '../../src/cmc/message.ts';
import { CmcRefusal } from '../../src/cmc/refusal.ts';
import { namedIdentity, type Role, type Sender } from '../../src/cmc/sender.ts';
import { EstuaryError } from '../../src/errors.ts';
import { buildControl, type ControlName, type ControlValue } from '../../src/pki/cmc/controls.ts';
import { buildPkiData, type PkiDataContent } from '../../src/pki/cmc/pki-data.ts';
import { OID } from '../../src/pki/der/oids.ts';

/** A control, with its number as the body part. */
export const part = <N extends ControlName>(bodyPartID: number, name: N, value: ControlValue<N>) =>
  buildControl(bodyPartID, name, value);

/** A message with these controls. */
export function messageOf(
  controlSequence: PkiDataContent['controlSequence'] = [],
  more: Partial<PkiDataContent> = {},
): Message {
  const content = buildPkiData({ controlSequence, ...more });
  const signedData = { contentType: OID.pkiData, content, certificates: [], crls: [], signerInfos: [] };
  return readContent({ kind: 'unsigned', signedData });
}

export const senderOf = (role: Role = 'subscriber', more: Partial<Sender> = {}): Sender => ({
  identity: namedIdentity('CN=sender'),
  role,
  certificate: undefined,
  issuer: undefined,
  secret: undefined,
  signingKey: undefined,
  ...more,
});

/** `ok`, or the status and the failInfo of a rejection, with the parts that it names. */
export async function outcome(work: () => unknown): Promise<string> {
  try {
    await work();
    return 'ok';
  } catch (error) {
    if (error instanceof CmcRefusal)
      return `${error.httpStatus} ${error.failInfo ?? 'noSupport'} ${JSON.stringify(error.bodyList)}`;
    if (error instanceof EstuaryError) return `${error.status} ${error.code}`;
    throw error;
  }
}
