import { promises } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/*
 * Loaded into a daemon with `--import`: kills it before or after a change to a file with a private name, as a power cut
 * would. LABFEED_KILL_AT counts these moments from 0.
 */
const killAt = Number(process.env['LABFEED_KILL_AT']);
let moments = 0;

function pass() {
  if (moments++ === killAt) process.kill(process.pid, 'SIGKILL');
}

const isChange = (name, args) =>
  args.slice(0, 2).some((path) => String(path).includes('.labfeed-')) && (name !== 'open' || args[1] === 'wx');

for (const name of ['rename', 'link', 'unlink', 'open']) {
  const real = promises[name];
  promises[name] = async (...args) => {
    if (!isChange(name, args)) return real(...args);
    pass();
    const result = await real(...args);
    pass();
    return result;
  };
}
syncBuiltinESMExports();
