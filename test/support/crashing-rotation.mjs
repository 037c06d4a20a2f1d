import { renameSync } from 'node:fs';
import { loadConfig } from '../../dist/config/load.js';
import { readKey } from '../../dist/config/secrets.js';
import { keyName, openKeyApis, openKeyFile, openRotation, rotate } from '../../dist/keys/rotate.js';

/*
 * A rotation that kills its own process after STEPS steps, as a power cut would. It prints each step, and ends normally
 * if it has fewer steps.
 *
 *   node crashing-rotation.mjs CONFIG STEPS
 */
const [file, steps] = process.argv.slice(2);
const config = loadConfig(file);
let done = 0;

function step(name) {
  process.stdout.write(`${name}\n`);
  done += 1;
  if (done === Number(steps)) process.kill(process.pid, 'SIGKILL');
}

const keyFile = openKeyFile(config.notebook.key.file, (from, to) => {
  step('new key on disk');
  renameSync(from, to);
  step('new key in place');
});
const rotation = openRotation(keyFile.path, config.notebook.url);
const apis = openKeyApis(config);
const stepping = (name, act) => async (argument) => {
  const result = await act(argument);
  step(name);
  return result;
};

await rotate({
  name: keyName(),
  current: readKey(config.notebook.key, config.placeOf(['notebook', 'key'])),
  rotation: {
    read: rotation.read,
    write(state) {
      rotation.write(state);
      step('recorded');
    },
  },
  as(key) {
    const { listKeys, createKey, deleteKey } = apis.as(key);
    return {
      listKeys: stepping('listed', listKeys),
      createKey: stepping('created', createKey),
      deleteKey: stepping('deleted', deleteKey),
    };
  },
  write: keyFile.write,
});
await apis.close();
rotation.close();
