import { promises } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/*
 * Loaded into a process with `--import`: kills it before or after a change to a file with a private name, as a power cut
 * would. LABFEED_KILL_AT counts these moments from 0. With LABFEED_KILL_AT_QUERY, the moments are before and after each
 * query of a fleet's database; if it is no number, it is the beginning of the query before which the process is killed.
 */
const atQuery = process.env['LABFEED_KILL_AT_QUERY'];
const killAt = Number(process.env['LABFEED_KILL_AT'] ?? Number.NaN);
let moments = 0;

function pass(at = killAt) {
  if (moments++ === at) process.kill(process.pid, 'SIGKILL');
}

if (atQuery !== undefined) {
  const { Client } = (await import('pg')).default;
  const { query } = Client.prototype;
  Client.prototype.query = function (...args) {
    pass(Number(atQuery));
    if (String(args[0]?.text ?? args[0]).startsWith(atQuery)) process.kill(process.pid, 'SIGKILL');
    const callback = args.at(-1);
    // The pool passes a callback.
    if (typeof callback === 'function')
      args[args.length - 1] = (...results) => {
        pass(Number(atQuery));
        callback(...results);
      };
    const result = query.apply(this, args);
    if (typeof callback !== 'function')
      result?.then?.(
        () => pass(Number(atQuery)),
        () => undefined,
      );
    return result;
  };
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
