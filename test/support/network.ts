import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { onTestFinished } from 'vitest';

/** The way of one member to a server, which can be cut. */
export interface Link {
  /** `drop`: nothing passes, and neither end notices. `reset`: connections end, and new ones do too. */
  cut(how: 'drop' | 'reset'): void;
  /** What was held back passes now. */
  heal(): void;
}

const SERVERS = ['database', 'notebook'] as const;

type Server = (typeof SERVERS)[number];

/** Members in network namespaces of their own, each with a cable to the database and one to the notebook. */
export interface Network {
  /** The addresses of this machine, where the servers listen. */
  readonly addresses: Readonly<Record<Server, string>>;
  /** The namespace of a member. */
  namespaceOf(member: string): string;
  /** Of a member that has a namespace. */
  linksOf(member: string): Readonly<Record<Server, Link>>;
}

/** Names of interfaces have at most 15 characters. The id of the process tells whether its test still runs. */
const nameOf = (member: string): string => `labfeed-${process.pid}-${member}`;
const ofProcess = (pid: number, server: Server, n: number | '' = ''): string => `lf${pid}${server[0]}${n}`;
const OWN_LINK = /^lf(\d+)[dn]\d*$/;
const OWN_NAMESPACE = /^labfeed-(\d+)-/;

function call(program: string, ...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr?.trim() || error?.message}`);
  return stdout;
}

function attempt(program: string, ...args: string[]): string {
  return spawnSync(program, args, { encoding: 'utf8' }).stdout ?? '';
}

/** Why members cannot have namespaces here; undefined if they can. The first call creates one and removes it. */
export function whyNoNamespaces(): string | undefined {
  reason ??= { text: tryNamespace() };
  return reason.text;
}
let reason: { readonly text: string | undefined } | undefined;

function tryNamespace(): string | undefined {
  try {
    removeOld();
    const addresses = build(['probe']);
    for (const server of SERVERS)
      openLink(nameOf('probe'), ofProcess(process.pid, server, 0), addresses[server]).cut('drop');
    return undefined;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    console.warn(`members of a fleet share one network, so packets that vanish in the kernel are not tested. ${text}`);
    return text;
  } finally {
    remove(process.pid);
  }
}

/** Removed after the test. Earlier runs that were killed may have left theirs. */
export function openNetwork(members: readonly string[]): Network {
  removeOld();
  onTestFinished(() => remove(process.pid), 60_000);
  const addresses = build(members);
  return {
    addresses,
    namespaceOf: nameOf,
    linksOf(member) {
      const n = members.indexOf(member);
      const link = (server: Server) => openLink(nameOf(member), ofProcess(process.pid, server, n), addresses[server]);
      return { database: link('database'), notebook: link('notebook') };
    },
  };
}

/** Of a port of a bridge. The kernel changes others, such as blocking, by itself. */
const STATES = { disabled: '0', forwarding: '3' } as const;

function openLink(namespace: string, cable: string, address: string): Link {
  const refuse = ['-n', namespace, 'route', 'add', 'unreachable', `${address}/32`];
  const setPort = (state: keyof typeof STATES) => call('bridge', 'link', 'set', 'dev', cable, 'state', STATES[state]);
  return {
    cut(how) {
      // The bridge stops forwarding, but the cable still has a carrier: neither end of a connection notices.
      if (how === 'drop') return void setPort('disabled');
      // First, so that the server receives the resets.
      attempt('ip', 'netns', 'exec', namespace, 'ss', '-K', 'dst', address);
      attempt('ip', ...refuse);
    },
    heal() {
      setPort('forwarding');
      attempt('ip', ...refuse.map((word) => (word === 'add' ? 'del' : word)));
    },
  };
}

/** A bridge for each server, and a namespace with a cable to both for each member. */
function build(members: readonly string[]): Network['addresses'] {
  const used = attempt('ip', '-o', '-4', 'address');
  const [first, second] = Array.from({ length: 250 }, (_, n) => `10.213.${1 + ((process.pid + n) % 250)}`).filter(
    (net) => !used.includes(`${net}.`),
  );
  const nets = { database: first ?? '', notebook: second ?? '' };
  for (const server of SERVERS) {
    const bridge = ofProcess(process.pid, server);
    call('ip', 'link', 'add', bridge, 'type', 'bridge');
    call('ip', 'address', 'add', `${nets[server]}.1/24`, 'dev', bridge);
    call('ip', 'link', 'set', bridge, 'up');
  }
  for (const [n, member] of members.entries()) {
    const namespace = nameOf(member);
    call('ip', 'netns', 'add', namespace);
    call('ip', '-n', namespace, 'link', 'set', 'lo', 'up');
    for (const server of SERVERS) {
      const cable = ofProcess(process.pid, server, n);
      call('ip', 'link', 'add', cable, 'type', 'veth', 'peer', 'name', server, 'netns', namespace);
      call('ip', 'link', 'set', cable, 'master', ofProcess(process.pid, server), 'up');
      call('ip', '-n', namespace, 'address', 'add', `${nets[server]}.${10 + n}/24`, 'dev', server);
      call('ip', '-n', namespace, 'link', 'set', server, 'up');
    }
  }
  return { database: `${nets.database}.1`, notebook: `${nets.notebook}.1` };
}

const namespaces = (): string[] =>
  attempt('ip', 'netns', 'list')
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '');

const links = (): string[] =>
  [...attempt('ip', '-o', 'link').matchAll(/^\d+: ([^:@]+)/gm)].map(([, name]) => name ?? '');

function removeOld(): void {
  const owners = [
    ...namespaces().map((name) => OWN_NAMESPACE.exec(name)),
    ...links().map((name) => OWN_LINK.exec(name)),
  ];
  for (const pid of new Set(owners.flatMap((found) => (found ? [Number(found[1])] : []))))
    if (pid === process.pid || !existsSync(`/proc/${pid}`)) remove(pid);
}

/** Everything of the test that this process runs or ran, also the daemons that are left of it. */
function remove(pid: number): void {
  for (const name of namespaces().filter((one) => Number(OWN_NAMESPACE.exec(one)?.[1]) === pid)) {
    for (const left of attempt('ip', 'netns', 'pids', name).split('\n').filter(Boolean)) kill(Number(left));
    attempt('ip', 'netns', 'delete', name);
  }
  for (const name of links().filter((one) => Number(OWN_LINK.exec(one)?.[1]) === pid))
    attempt('ip', 'link', 'delete', name);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
