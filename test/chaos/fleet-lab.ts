import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server, Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Dialect } from '../../src/model.js';
import { type DaemonProcess, weighing } from '../support/daemon-process.js';
import { type FleetSite, type Member, makeFleet } from '../support/fleet-site.js';
import { type Link, type Network, openNetwork, whyNoNamespaces } from '../support/network.js';
import { connectTo, type Replica } from '../support/postgres.js';
import type { Random } from '../support/random.js';

const OTHER_PORTS = fileURLToPath(new URL('../support/other-ports.mjs', import.meta.url));

/** A member of the fleet as a process. */
export class FleetPc {
  readonly name: string;
  readonly isDeliverer: boolean;
  readonly links: Readonly<Record<'database' | 'notebook', Link>>;
  readonly #member: Member;
  readonly #namespace: string | undefined;
  readonly #addresses: string;
  daemon: DaemonProcess | undefined;
  /** What its earlier processes wrote. */
  output = '';

  constructor(member: Member, isDeliverer: boolean, links: FleetPc['links'], namespace: string | undefined) {
    this.name = member.name;
    this.isDeliverer = isDeliverer;
    this.links = links;
    this.#member = member;
    this.#namespace = namespace;
    this.#addresses = join(member.folder, 'addresses.json');
  }

  /** Where it reaches the servers on these ports from now on. */
  find(addresses: Readonly<Record<number, Address>>): void {
    writeFileSync(this.#addresses, JSON.stringify(addresses));
  }

  start(): DaemonProcess {
    const env = { NODE_OPTIONS: `--import=${OTHER_PORTS}`, LABFEED_TEST_ADDRESSES: this.#addresses };
    this.daemon ??= this.#member.start(env, this.#namespace);
    return this.daemon;
  }

  async kill(): Promise<void> {
    await this.daemon?.kill();
    this.output += this.daemon?.output() ?? '';
    this.daemon = undefined;
  }

  drop(stem: string, n: number): void {
    this.#member.drop(`${stem}.csv`, weighing(n));
  }

  async stop(): Promise<void> {
    const { daemon } = this;
    this.daemon = undefined;
    if (daemon && (await daemon.stop()) !== 0)
      throw new Error(`${this.name} did not stop cleanly:\n${daemon.output()}`);
  }
}

interface Address {
  readonly host: string;
  readonly port: number;
}

export interface FleetLab {
  readonly site: FleetSite;
  readonly random: Random;
  readonly pcs: readonly FleetPc[];
  readonly titles: string[];
  readonly story: string[];
  /** What ends later. */
  readonly pending: Promise<unknown>[];
  /** The member that leads, or else any deliverer. */
  leader(): Promise<FleetPc>;
  /** A file arrives at a PC, or the same file at two. */
  drop(): void;
  /** Kills the database, and lets the replica take over. Once. */
  failOver(): Promise<void>;
  restartDatabase(downMs: number): Promise<void>;
}

const INSTRUMENTS =
  '  balance: { watch: data/balance, ready: { quiet: 150ms }, existing: ingest, experiment: { plot: never } }';

/**
 * Members whose ways to the servers can be cut: each in a network namespace of its own, or behind proxies where this machine
 * does not allow that. `moveDatabase`: they find the database at another port of this machine.
 */
export async function openCuttable(dialect: Dialect, roles: Readonly<Record<string, 'watch' | 'deliver'>>) {
  const names = Object.keys(roles);
  const network = whyNoNamespaces() === undefined ? openNetwork(names) : undefined;
  const site = await makeFleet(dialect, '1s', network?.addresses);
  let port = site.cluster.port;
  const memberOf = (name: string, role: 'watch' | 'deliver') => site.member(name, { role, instruments: INSTRUMENTS });
  const makePc = network ? inNamespace : behindProxies;
  const pcs: FleetPc[] = [];
  const moves: (() => void)[] = [];
  for (const name of names) pcs.push(await makePc(name, roles[name] ?? 'watch'));

  async function inNamespace(name: string, role: 'watch' | 'deliver'): Promise<FleetPc> {
    const { addresses, linksOf, namespaceOf } = network as Network;
    const pc = new FleetPc(memberOf(name, role), role === 'deliver', linksOf(name), namespaceOf(name));
    const find = () =>
      pc.find({
        [site.cluster.port]: { host: addresses.database, port },
        [site.port]: { host: addresses.notebook, port: site.port },
      });
    find();
    moves.push(find);
    return pc;
  }

  async function behindProxies(name: string, role: 'watch' | 'deliver'): Promise<FleetPc> {
    const [database, notebook] = [await openProxy(() => port), await openProxy(() => site.port)];
    const pc = new FleetPc(memberOf(name, role), role === 'deliver', { database, notebook }, undefined);
    const host = '127.0.0.1';
    pc.find({ [site.cluster.port]: { host, port: database.port }, [site.port]: { host, port: notebook.port } });
    return pc;
  }

  return {
    site,
    network,
    pcs,
    moveDatabase(to: number): void {
      port = to;
      for (const move of moves) move();
    },
  };
}

export async function openFleetLab(dialect: Dialect, random: Random): Promise<FleetLab> {
  const [deliver, watch] = ['deliver', 'watch'] as const;
  const roles = { s1: deliver, s2: deliver, s3: deliver, pc1: watch, pc2: watch, pc3: watch };
  const { site, pcs, moveDatabase } = await openCuttable(dialect, roles);
  let replica: Replica | undefined = await site.cluster.addReplica();
  let current: Pick<Replica, 'port' | 'start' | 'kill'> = site.cluster;
  const [deliverers, watchers] = [pcs.filter((pc) => pc.isDeliverer), pcs.filter((pc) => !pc.isDeliverer)];
  const any = <T>(items: readonly T[]): T => items[random.below(items.length)] as T;
  const titles: string[] = [];
  return {
    ...{ site, random, pcs, titles, story: [], pending: [] },
    async leader() {
      const postgres = connectTo(site.url.replace(/:\d+\//, `:${current.port}/`));
      try {
        const row = await postgres.row<{ name: string }>(
          'SELECT name FROM labfeed.members JOIN labfeed.fleet ON leader = members.id',
        );
        return deliverers.find(({ name }) => name === row?.name) ?? any(deliverers);
      } catch {
        return any(deliverers);
      } finally {
        await postgres.close();
      }
    },
    drop() {
      const n = titles.length;
      const first = any(watchers);
      for (const pc of new Set(random.chance(0.3) ? [first, any(watchers)] : [first])) pc.drop(`run${n}`, n);
      titles.push(`run${n} (balance)`);
    },
    async failOver() {
      if (!replica) return;
      await current.kill();
      await replica.promote();
      current = replica;
      replica = undefined;
      moveDatabase(current.port);
    },
    async restartDatabase(downMs) {
      await current.kill();
      await new Promise((resolve) => setTimeout(resolve, downMs));
      await current.start();
    },
  };
}

/** Where the bytes of one direction are held back while the link is cut. */
function pass(from: Socket, to: Socket, isDropping: () => boolean, held: (() => void)[]): void {
  from.on('data', (bytes) => {
    if (isDropping()) held.push(() => to.write(bytes));
    else to.write(bytes);
  });
  from.on('close', () => {
    if (isDropping()) held.push(() => to.destroy());
    else to.destroy();
  });
  from.on('error', () => undefined);
}

async function openProxy(port: () => number): Promise<Link & { readonly port: number }> {
  let how: 'drop' | 'reset' | undefined;
  const sockets = new Set<Socket>();
  const held: (() => void)[] = [];
  const isDropping = (): boolean => how === 'drop';
  const server: Server = createServer((socket) => {
    if (how === 'reset') return void socket.on('error', () => undefined).destroy();
    const target = new Socket();
    for (const one of [socket, target]) {
      sockets.add(one);
      one.on('close', () => sockets.delete(one));
    }
    pass(socket, target, isDropping, held);
    pass(target, socket, isDropping, held);
    const connect = (): void => void target.connect(port(), '127.0.0.1');
    if (isDropping()) held.push(connect);
    else connect();
    return undefined;
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const end = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    server.close();
    end();
  });
  return {
    port: (server.address() as { port: number }).port,
    cut(next) {
      how = next;
      if (next === 'reset') end();
    },
    heal() {
      how = undefined;
      for (const act of held.splice(0)) act();
    },
  };
}
