import { renameSync } from 'node:fs';
import { systemClock } from '../../dist/clock.js';
import { loadConfig } from '../../dist/config/load.js';
import { readKey } from '../../dist/config/secrets.js';
import { openKeyFile } from '../../dist/keys/key-file.js';
import { openMemory } from '../../dist/keys/memory.js';
import { keyName, openRings, rotate } from '../../dist/keys/rotate.js';

/*
 * A rotation as it is built, which kills its own process after so many of its steps, as a power cut would. It names each
 * step on its way. Where it has fewer steps, it ends.
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

const keyFile = openKeyFile(config.notebook.key.file, {
  rename(from, to) {
    step('new key on disk');
    renameSync(from, to);
    step('new key in its place');
  },
});
const memory = openMemory(keyFile.path, config.notebook.url);
const rings = openRings(config, { clock: systemClock, signal: new AbortController().signal });
const stepping = (name, act) => async (argument) => {
  const result = await act(argument);
  step(name);
  return result;
};

await rotate({
  name: keyName(),
  current: readKey(config.notebook.key, config.placeOf(['notebook', 'key'])),
  memory: {
    read: memory.read,
    write(remembered) {
      memory.write(remembered);
      step('remembered');
    },
  },
  as(key) {
    const { listKeys, createKey, deleteKey } = rings.as(key);
    return {
      listKeys: stepping('listed', listKeys),
      createKey: stepping('made', createKey),
      deleteKey: stepping('deleted', deleteKey),
    };
  },
  write: keyFile.write,
});
await rings.close();
memory.close();
