/** One certificate: its content, its requester, its chain, and its revocation. */
import { useState } from 'preact/hooks';
import { adminPath } from '../api/client.ts';
import type { CertificateChain, CertificateContent, CertificatePage } from '../api/types.ts';
import { link, route } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { Badge, Facts, Heading, Moment, Names, Panel, saveFile } from '../ui/bits.tsx';
import { useRecord } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';
import { Chain } from './chain.tsx';
import { History } from './history.tsx';
import { EndRescue } from './rescue.tsx';
import { ReleaseCertificate, RevokeCertificate } from './revoke.tsx';

export function CertificateDetails({ serial }: { readonly serial: string }) {
  const { ca } = route.value.query;
  const events = ['certificate.revoked', 'certificate.held', 'certificate.released', 'certificate.rescue*'];
  const { loaded, again } = useRecord<CertificatePage>(adminPath('certificates', serial), events, { ca });
  return (
    <>
      {loaded.state !== 'ready' && <Heading title="Certificate" />}
      <Show of={loaded} again={again}>
        {(certificate) => <Details certificate={certificate} changed={again} />}
      </Show>
    </>
  );
}

function Details({ certificate, changed }: { readonly certificate: CertificatePage; readonly changed: () => void }) {
  const [isRevoking, setRevoking] = useState(false);
  const [isReleasing, setReleasing] = useState(false);
  const [isEnding, setEnding] = useState(false);
  const { serial, subject, sans, pem, content } = certificate;
  return (
    <>
      <Heading title={subject || 'No subject'} lead={<Badge of={certificate.status} />}>
        {pem !== '' && <Downloads name={serial} pem={pem} />}
        {certificate.rescue_until !== null && may('ra') && (
          <button type="button" onClick={() => setEnding(true)}>
            End the pass …
          </button>
        )}
        {certificate.reason === 'certificateHold' && may('ra') && (
          <button type="button" onClick={() => setReleasing(true)}>
            Release …
          </button>
        )}
        {(certificate.status !== 'revoked' || certificate.reason === 'certificateHold') && may('ra') && (
          <button type="button" onClick={() => setRevoking(true)}>
            Revoke …
          </button>
        )}
      </Heading>
      <div class="columns">
        <Panel title="Certificate">
          <Facts
            of={[
              ['Subject', subject],
              ['Other names', <Names of={sans} />],
              ['Issuer', content?.issuer ?? ''],
              ['Serial number', <code>{serial}</code>],
              ['Valid from', <Moment at={certificate.not_before} />],
              ['Valid until', <Moment at={certificate.not_after} />],
              certificate.rescue_until !== null && ['One more renewal until', <Moment at={certificate.rescue_until} />],
              ['Key', content?.key_type ?? ''],
              ['Signature', content?.signature_algorithm ?? ''],
              ['SHA-256', <code>{certificate.fingerprint_sha256}</code>],
              certificate.revoked_at !== null && ['Revoked', <Moment at={certificate.revoked_at} />],
              certificate.revoked_at !== null && ['Reason', certificate.reason],
            ]}
          />
        </Panel>
        <Panel title="Requester">
          <Facts
            of={[
              ['Requester', certificate.requester],
              ['Authenticated by', certificate.method],
              [
                'Device',
                certificate.device !== null && (
                  <a href={link(['devices', 'id', certificate.device])}>{certificate.device}</a>
                ),
              ],
              ['CA', certificate.label === undefined ? certificate.ca : `${certificate.label} (${certificate.ca})`],
              ['Request', <code>{certificate.request_id}</code>],
              certificate.archived_key_id !== null && ['Archived key', <code>{certificate.archived_key_id}</code>],
              [
                'More',
                <a href={link(['certificates'], { requester: certificate.requester })}>
                  All certificates of this requester
                </a>,
              ],
            ]}
          />
        </Panel>
      </div>
      {content !== null && <Extensions of={content} />}
      <IssuerChain certificate={certificate} />
      <History request={certificate.request_id} />
      {isRevoking && <RevokeCertificate certificate={certificate} onClose={() => setRevoking(false)} done={changed} />}
      {isEnding && <EndRescue certificate={certificate} onClose={() => setEnding(false)} done={changed} />}
      {isReleasing && (
        <ReleaseCertificate certificate={certificate} onClose={() => setReleasing(false)} done={changed} />
      )}
    </>
  );
}

function Downloads({ name, pem }: { readonly name: string; readonly pem: string }) {
  const der = () => Uint8Array.from(atob(pem.replace(/-----[^-]+-----/g, '')), (octet) => octet.charCodeAt(0));
  return (
    <>
      <button type="button" onClick={() => saveFile(`${name}.pem`, 'application/x-pem-file', pem)}>
        PEM
      </button>
      <button type="button" onClick={() => saveFile(`${name}.cer`, 'application/pkix-cert', der())}>
        DER
      </button>
    </>
  );
}

export function Extensions({ of: { extensions } }: { readonly of: CertificateContent }) {
  return (
    <Panel title="Extensions">
      <Facts
        of={extensions.map(({ name, critical, values }) => [
          critical ? `${name} (critical)` : name,
          <Names of={values} />,
        ])}
      />
    </Panel>
  );
}

function IssuerChain({ certificate: { serial, ca, subject } }: { readonly certificate: CertificatePage }) {
  const { loaded, again } = useRecord<CertificateChain>(adminPath('certificates', serial, 'chain'), [], { ca });
  return (
    <Panel
      title="Chain"
      actions={
        loaded.state === 'ready' &&
        loaded.value.chain.length > 0 && (
          <button
            type="button"
            class="quiet"
            onClick={() => saveFile(`${serial}-chain.pem`, 'application/x-pem-file', loaded.value.chain.join(''))}
          >
            Download
          </button>
        )
      }
    >
      <Show of={loaded} again={again} lines={2}>
        {({ contents }) =>
          contents.length === 0 ? (
            <p class="fine">Unknown: the CA is no longer configured, or a backup was restored.</p>
          ) : (
            <Chain of={contents} leaf={subject || 'No subject'} />
          )
        }
      </Show>
    </Panel>
  );
}
