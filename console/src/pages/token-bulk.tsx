import { link } from '../shared/router.ts';
import { Heading } from '../ui/bits.tsx';
import { CsvImport } from '../ui/import.tsx';

/** Creates a token for each row of a CSV file. */
export function BulkTokens() {
  return (
    <>
      <Heading title="Import tokens" lead="One row for each device. Only the results show the tokens.">
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
        warning="The holder of a token can get a certificate. Save the results before you leave the page: they show the tokens only once."
        hidden={['token', 'id', 'uses', 'status']}
        secret
        batch={50}
      />
    </>
  );
}
