/**
 * Loaded before the daemon: counts SQL statements, calls of stat, abort controllers and listeners. SIGUSR2 starts the
 * count again, and the counts are written when the process ends.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { Connection } from '../../dist/journal/database.js';

const counts = { statements: 0, stats: 0, controllers: 0, listeners: 0 };

function count(object, name, kind) {
  const original = object[name];
  const counted = function (...args) {
    counts[kind] += 1;
    return original.apply(this, args);
  };
  // `promisify` looks for symbols of the function.
  Object.defineProperties(counted, Object.getOwnPropertyDescriptors(original));
  object[name] = counted;
}

for (const name of ['run', 'rows', 'row']) count(Connection.prototype, name, 'statements');
for (const name of ['stat', 'lstat', 'fstat', 'statSync', 'lstatSync', 'fstatSync']) count(fs, name, 'stats');
for (const name of ['stat', 'lstat']) count(fs.promises, name, 'stats');
syncBuiltinESMExports();
count(EventTarget.prototype, 'addEventListener', 'listeners');
globalThis.AbortController = class extends AbortController {
  constructor() {
    super();
    counts.controllers += 1;
  }
};

process.on('SIGUSR2', () => {
  for (const kind of Object.keys(counts)) counts[kind] = 0;
});
process.on('exit', () => fs.writeSync(1, `${JSON.stringify({ counts })}\n`));
