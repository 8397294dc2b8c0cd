/** Draws a chain from the root down. */
import type { CertificateContent } from '../api/types.ts';
import { Moment } from '../ui/bits.tsx';

interface ChainProps {
  /** From the issuing CA to the root, then the certificates of rollovers. */
  readonly of: readonly CertificateContent[];
  /** The subject of the certificate below. */
  readonly leaf?: string;
}

export function Chain({ of: all, leaf }: ChainProps) {
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
function pathOf(all: readonly CertificateContent[]): CertificateContent[] {
  const path = all.slice(0, 1);
  for (let top = path[0]; top !== undefined && top.issuer !== top.subject;) {
    const issuer: string = top.issuer;
    top = all.find((certificate) => certificate.subject === issuer && !path.includes(certificate));
    if (top !== undefined) path.push(top);
  }
  return path;
}

function Link({ of }: { readonly of: CertificateContent }) {
  return (
    <li>
      <strong>{of.subject}</strong>
      <span class="fine">
        {of.key_type}, until <Moment at={of.not_after} />
      </span>
    </li>
  );
}
