import { useEffect, useState } from 'preact/hooks';
import { toApiError, type ApiError } from '../api/client.ts';
import { verifyChain, type ChainState } from '../shared/audit-chain.ts';
import { link } from '../shared/router.ts';
import { counted } from '../shared/words.ts';
import { Badge, Facts, Heading, Panel } from '../ui/bits.tsx';
import { Problem } from '../ui/states.tsx';

/** Hashes every record of the store again in this browser. */
export function ChainCheck() {
  const [state, setState] = useState<ChainState>({ checked: 0, isDone: false });
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    const abort = new AbortController();
    verifyChain(setState, abort.signal).catch((thrown: unknown) => {
      if (!abort.signal.aborted) setError(toApiError(thrown));
    });
    return () => abort.abort();
  }, []);
  const { checked, first, last, problem, isDone } = state;
  return (
    <>
      <Heading
        title="Audit chain"
        lead="Your browser hashes each record again and compares it with the previous record."
      >
        <a class="button" href={link(['audit'])}>
          Back
        </a>
      </Heading>
      {error !== undefined && <Problem error={error} />}
      <Panel
        title={isDone ? 'Result' : 'Checking …'}
        actions={isDone && <Badge of={problem === undefined ? 'ok' : 'failed'} />}
      >
        <div aria-live="polite">
          {isDone && <p>{problem ?? 'The chain is complete: no record was changed, removed or added.'}</p>}
        </div>
        <Facts
          of={[
            ['Checked', counted(checked, 'record')],
            ['First record', first === undefined ? '' : String(first)],
            ['Last record', last === undefined ? '' : String(last)],
          ]}
        />
        <p class="fine">
          Archived records are not in the store. <code>estuary audit verify</code> checks the files and the signed
          checkpoints.
        </p>
      </Panel>
    </>
  );
}
