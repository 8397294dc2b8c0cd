import { link } from '../router.ts';
import { Heading } from '../ui/bits.tsx';
import { CsvImport } from '../ui/import.tsx';

/** A token for each line of a CSV. */
export function BulkTokens() {
  return (
    <>
      <Heading title="Many tokens" lead="A row for each device. Only the results show the tokens.">
        <a class="button" href={link(['tokens'])}>
          Back
        </a>
      </Heading>
      <CsvImport
        path="/admin/otp/bulk"
        thing="token"
        name="client_id"
        file="tokens.csv"
        example={'client_id,max_uses,expires_at,ca\ndevice-1,1,,'}
        hint={
          <>
            The first line has the column names <code>client_id,max_uses,expires_at,ca</code>. Only the first column is
            required. At most 10,000 rows.
          </>
        }
        warning="Each token gives a certificate to its holder. They are shown once: save the results before you leave the page."
        hidden={['token', 'id', 'uses', 'status']}
      />
    </>
  );
}
