/**
 * The states of a queued request, and the ways from one to the next: the one table that the store's guards, the queue, remote CAs and
 * docs/guides/approval.md follow.
 */

export const REQUEST_STATUSES = ['pending', 'approved', 'issued', 'rejected', 'failed', 'expired'] as const;
export type RequestStatus = (typeof REQUEST_STATUSES)[number];

/** A status; distinguishes pending requests that a remote CA decides. */
export type RequestState = RequestStatus | 'pending at the CA';

export function stateOf({ status, decider }: { status: RequestStatus; decider: 'admin' | 'ca' }): RequestState {
  return status === 'pending' && decider === 'ca' ? 'pending at the CA' : status;
}

export interface Transition {
  /** Empty: a new request. */
  readonly from: readonly RequestState[];
  readonly to: RequestState | null;
  /** Only while no process is working on it, as its open reservation shows. */
  readonly idle?: true;
  /** Effect on the one-time password use that it holds. */
  readonly use: 'is taken' | 'stays taken' | 'goes back' | 'goes back, unless the CA decided';
  readonly when: string;
}

export const TRANSITIONS = {
  queue: { from: [], to: 'pending', use: 'is taken', when: 'a request passes every check' },
  submit: {
    from: [],
    to: 'pending at the CA',
    use: 'is taken',
    when: 'the same, before it is submitted to a CA elsewhere',
  },
  approve: { from: ['pending'], to: 'approved', use: 'stays taken', when: 'an administrator approves' },
  reject: { from: ['pending'], to: 'rejected', use: 'stays taken', when: 'an administrator rejects' },
  handOver: {
    from: ['approved'],
    to: 'pending at the CA',
    idle: true,
    use: 'stays taken',
    when: 'a poll finds it approved, and the CA is elsewhere',
  },
  issue: {
    from: ['approved', 'pending at the CA'],
    to: 'issued',
    use: 'stays taken',
    when: 'a poll finds it approved, or issued at the CA; its reservation is open then',
  },
  refuse: {
    from: ['approved'],
    to: 'failed',
    idle: true,
    use: 'goes back',
    when: 'the CA’s policy has changed since the approval',
  },
  withdraw: {
    from: ['pending at the CA'],
    to: null,
    use: 'goes back',
    when: 'the CA elsewhere certainly did not take it',
  },
  takeBack: {
    from: ['pending at the CA'],
    to: 'approved',
    use: 'stays taken',
    when: 'the same, of what an administrator has approved',
  },
  rejectAtCa: {
    from: ['pending at the CA'],
    to: 'rejected',
    idle: true,
    use: 'stays taken',
    when: 'the people of the CA reject it',
  },
  failAtCa: {
    from: ['pending at the CA'],
    to: 'failed',
    idle: true,
    use: 'goes back, unless the CA decided',
    when: 'they cancel it, the CA has lost it, or has issued something else',
  },
  expire: {
    from: ['pending', 'pending at the CA', 'approved'],
    to: 'expired',
    idle: true,
    use: 'stays taken',
    when: '`requests.pending_ttl` has passed',
  },
} as const satisfies Readonly<Record<string, Transition>>;

/** Final states, until `requests.retention` ends. */
export const ENDED = REQUEST_STATUSES.filter(
  (status) => !Object.values<Transition>(TRANSITIONS).some(({ from }) => from.includes(status)),
);

/** States in which a repeated request gets an answer; also `failed`, if permanent. */
export const ANSWERED: readonly RequestStatus[] = ['pending', 'approved', 'issued', 'rejected'];

const NOBODY_AT_WORK = 'NOT EXISTS (SELECT 1 FROM reservation WHERE request_id = request.id)';

const list = (values: readonly string[]): string => `(${values.map((value) => `'${value}'`).join(', ')})`;

/** SQL condition: the row has one of these statuses. */
export const inStatus = (statuses: readonly RequestStatus[]): string => `status IN ${list(statuses)}`;

function inState(state: RequestState): string {
  if (state === 'pending at the CA') return "(status = 'pending' AND decider = 'ca')";
  return state === 'pending' ? "(status = 'pending' AND decider = 'admin')" : `status = '${state}'`;
}

/** SQL condition: the row of table `request` may make this transition. */
export function mayGo(name: keyof typeof TRANSITIONS): string {
  const { from, idle }: Transition = TRANSITIONS[name];
  const states = `(${from.map(inState).join(' OR ')})`;
  return idle === true ? `${states} AND ${NOBODY_AT_WORK}` : states;
}

/** SQL assignments that make a row's transition. */
export function goes(name: Exclude<keyof typeof TRANSITIONS, 'withdraw'>): string {
  const { to } = TRANSITIONS[name];
  if (to === 'pending at the CA') return "status = 'pending', decider = 'ca'";
  return to === 'approved' ? `status = '${to}', decider = 'admin'` : `status = '${to}'`;
}

/** SQL condition: the row has this state and no process is working on it. */
export const restsIn = (...states: readonly RequestState[]): string =>
  `(${states.map(inState).join(' OR ')}) AND ${NOBODY_AT_WORK}`;
