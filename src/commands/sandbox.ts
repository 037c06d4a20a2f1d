import { dirname, join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { defaultJournal } from '../config/locations.js';
import { onStopRequest, stopRequested } from '../process.js';
import { DIALECTS, type Dialect } from '../sandbox/dialect.js';
import { createSandbox } from '../sandbox/server.js';
import { makeFolder, portOption } from './options.js';

interface SandboxOptions {
  readonly port: number;
  readonly data?: string;
  readonly dialect: Dialect;
  readonly json?: boolean;
}

export function addSandbox(program: Command): void {
  program
    .command('sandbox')
    .description('the built-in notebook alone, with a page to look at what it holds')
    .addOption(portOption(7781))
    .option('--data <file>', "where its content is kept (default: in the user's state folder)")
    .addOption(
      new Option('--dialect <dialect>', 'answer by the contract to the letter, or as eLabFTW does')
        .choices(DIALECTS)
        .default('v2'),
    )
    .option('--json', 'print address and key as JSON')
    .addHelpText('after', '\nExample:\n  labfeed sandbox --port 7781 --data notebook.db')
    .action(sandbox);
}

async function sandbox({ port, data, dialect, json }: SandboxOptions): Promise<void> {
  const file = data === undefined ? join(dirname(defaultJournal()), 'sandbox.db') : resolve(data);
  makeFolder(dirname(file), '--data');
  const notebook = createSandbox({ file, port, dialect });
  const stop = onStopRequest();
  const { url, key } = await notebook.start();
  if (json) console.log(JSON.stringify({ url, key, data: file }));
  else
    console.log(
      `notebook  ${url}\nkey       ${key}\ndata      ${file}\n\nCtrl-C ends it; what it holds stays in the file.`,
    );
  await stopRequested(stop);
  await notebook.stop();
}
