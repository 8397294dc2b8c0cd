/** Draws a chain from the root down. */
import { Moment } from '../ui/bits.tsx';
import { readCertificate, type ReadCertificate } from '../x509/certificate.ts';

interface ChainProps {
  /** From the issuing CA to the root, then the certificates of rollovers. */
  readonly pems: readonly string[];
  /** The subject of the certificate below. */
  readonly leaf?: string;
}

export function Chain({ pems, leaf }: ChainProps) {
  const all = pems.flatMap((pem) => readCertificate(pem) ?? []);
  const path = pathOf(all);
  const others = all.filter((certificate) => !path.includes(certificate));
  return (
    <>
      <ol class="chain">
        {path.toReversed().map((certificate) => (
          <Link key={certificate.serial} of={certificate} />
        ))}
        {leaf !== undefined && (
          <li>
            <strong>{leaf}</strong>
          </li>
        )}
      </ol>
      {others.length > 0 && (
        <>
          <p class="fine">Also in the cacerts response, for a rollover:</p>
          <ul class="chain flat">
            {others.map((certificate) => (
              <Link key={certificate.serial} of={certificate} />
            ))}
          </ul>
        </>
      )}
    </>
  );
}

/** From the first certificate to the self-signed one. */
function pathOf(all: readonly ReadCertificate[]): ReadCertificate[] {
  const path = all.slice(0, 1);
  for (let top = path[0]; top !== undefined && top.issuer !== top.subject;) {
    const issuer: string = top.issuer;
    top = all.find((certificate) => certificate.subject === issuer && !path.includes(certificate));
    if (top !== undefined) path.push(top);
  }
  return path;
}

function Link({ of }: { readonly of: ReadCertificate }) {
  return (
    <li>
      <strong>{of.subject}</strong>
      <span class="fine">
        {of.key}, until <Moment at={of.notAfter} />
      </span>
    </li>
  );
}
