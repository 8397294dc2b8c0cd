import { link } from '../router.ts';
import { Heading } from '../ui/bits.tsx';
import { CsvImport } from '../ui/import.tsx';

/** A token for each line of a CSV. */
export function BulkTokens() {
  return (
    <>
      <Heading
        title="Many tokens"
        lead="A line for each device. The answer holds the tokens, and is the only one that does."
      >
        <a class="button" href={link(['tokens'])}>
          Back
        </a>
      </Heading>
      <CsvImport
        path="/admin/otp/bulk"
        things="tokens"
        file="tokens.csv"
        example={'client_id,max_uses,expires_at,ca\ndevice-1,1,,'}
        hint={
          <>
            With a first line of column names: <code>client_id,max_uses,expires_at,ca</code>; all but the first may be
            left out. At most 10,000 lines.
          </>
        }
        warning="Whoever holds one of these tokens gets a certificate with it. They are shown once: save the answer before you leave the page."
        hidden={['token', 'id', 'uses', 'status']}
      />
    </>
  );
}
