import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Message } from '../../src/alarms/alarms.js';
import { makeSite, type Site } from '../support/daemon-process.js';
import { type RunningSandbox, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

export interface AlarmScene {
  readonly folder: string;
  readonly site: Site;
  readonly sandbox: RunningSandbox;
  readonly webhook: Webhook;
  /** The state and kind that the alarm command received, one line each. */
  commanded(): string[];
}

interface Webhook {
  readonly messages: Message[];
  /** State, kind and instrument of each message. */
  received(): string[];
  stop(): Promise<void>;
  /** On the same port as before. */
  start(): Promise<void>;
}

/** A site whose alarms go to a real webhook and to a real program. */
export async function alarmScene(instruments?: string): Promise<AlarmScene> {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const webhook = await createReceiver();
  const site = makeSite(folder, {
    url: sandbox.url,
    key: sandbox.key,
    ...(instruments === undefined ? {} : { instruments }),
  });
  const script = join(folder, 'page-me');
  writeFileSync(script, '#!/bin/sh\necho "$LABFEED_ALARM_STATE $LABFEED_ALARM_KIND" >> "$1"\n');
  chmodSync(script, 0o755);
  const alarms = `alarms: { webhook: "${webhook.url}", command: "./page-me '${folder}/paged'" }\n`;
  writeFileSync(site.config, alarms + readFileSync(site.config, 'utf8'));
  return {
    folder,
    site,
    sandbox,
    webhook,
    commanded: () =>
      existsSync(join(folder, 'paged')) ? readFileSync(join(folder, 'paged'), 'utf8').trim().split('\n') : [],
  };
}

async function createReceiver(): Promise<Webhook & { url: string }> {
  const messages: Message[] = [];
  let server: Server | undefined;
  let port = 0;
  async function start(): Promise<void> {
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      messages.push(JSON.parse(Buffer.concat(chunks).toString()) as Message);
      response.writeHead(200).end();
    });
    await new Promise<void>((resolve) => server?.listen(port, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  }
  async function stop(): Promise<void> {
    server?.closeAllConnections();
    await new Promise<void>((resolve) => void server?.close(() => resolve()));
  }
  await start();
  onTestFinished(stop);
  return {
    messages,
    url: `http://127.0.0.1:${port}/hook/TOPSECRET`,
    received: () => messages.map(({ state, kind, instrument }) => [state, kind, instrument ?? '-'].join(' ')),
    start,
    stop,
  };
}
