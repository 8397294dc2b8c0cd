/**
 * The account of a Kerberos principal in Active Directory, which ignores case, gives a computer `x$` also tickets as `x`,
 * and knows accounts by two names.
 */
import type { Config } from '../../config/schema.ts';
import { CredentialRefused } from '../guarded-attempts.ts';
import type { Directory } from '../ldap/directory.ts';
import { escapedInFilter, inserted } from '../ldap/escaping.ts';
import { makePrincipal, type Principal } from './principal.ts';

type DirectorySettings = NonNullable<Config['gssapi']['directory']>;

const NAMES = ['sAMAccountName', 'userPrincipalName'] as const;

export class AccountLookup {
  readonly #directory: Pick<Directory, 'lookUp'>;
  readonly #settings: DirectorySettings;
  readonly #realm: string;

  /** @param realm of the service */
  constructor(directory: Pick<Directory, 'lookUp'>, settings: DirectorySettings, realm: string) {
    this.#directory = directory;
    this.#settings = settings;
    this.#realm = realm;
  }

  /**
   * The principal with the name that the directory gives to its account.
   * @throws CredentialRefused unless exactly one entry matches and has the principal's name; EstuaryError 503
   */
  async accountOf({ components, realm }: Principal): Promise<Principal> {
    const { filter, attribute, required_group } = this.#settings;
    if (!same(realm, this.#realm)) throw new CredentialRefused('the principal is of another realm than the service');
    const [primary = ''] = components;
    const isSingle = components.length === 1;
    // An enterprise principal (RFC 6806 §5) is a userPrincipalName in one component.
    const principal = isSingle && primary.includes('@') ? primary : `${components.join('/')}@${realm}`;
    const escaped = { primary: escapedInFilter(primary), principal: escapedInFilter(principal) };
    // An account whose userPrincipalName has no realm gets tickets as the account that has this name: neither counts.
    const rivals = isSingle && principal !== primary ? '(userPrincipalName={primary})' : '';
    const valuesOf = await this.#directory.lookUp({
      filter: inserted(`(|${filter.startsWith('(') ? filter : `(${filter})`}${rivals})`, escaped),
      attributes: [...NAMES, attribute],
      required_group,
    });
    const [account, upn] = NAMES.map(valuesOf);
    const isAccount = isSingle && account?.some((name) => same(name, primary));
    if (isAccount !== true && upn?.some((name) => same(name, principal)) !== true)
      throw new CredentialRefused('the entry that matches has another sAMAccountName and userPrincipalName');
    const [name, ...more] = valuesOf(attribute);
    if (name === undefined || more.length > 0)
      throw new CredentialRefused(`the entry does not have exactly one usable ${attribute}`);
    return makePrincipal([name], this.#realm);
  }
}

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
