import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { slowMountOf } from '../system/disk.js';
import { userName } from '../system/process.js';
import { shellWord } from '../text.js';

/** Why this user may not read a file, and what would change that. */
interface Refusal {
  readonly reason: string;
  readonly hint: string;
}

/** The user that labfeed runs as. */
export interface Reader {
  readonly name: string;
  readonly uid: number | undefined;
  readonly groups: readonly number[];
}

/** For a file or folder that cannot be opened for lack of permission. Its own name and mode, if they can be seen. */
export function explainPermission(path: string, asFolder = false, reader: Reader = thisUser()): Refusal {
  // A share could hang, and the modes that it shows need not be those of its server.
  if (slowMountOf(path))
    return {
      reason: `the user ${reader.name} may not read it`,
      hint: `give ${reader.name} access: on the server of the share, or in its mount options`,
    };
  try {
    const { mode, uid, gid } = statSync(path);
    const [owner, group] = [nameIn('/etc/passwd', uid), nameIn('/etc/group', gid)];
    const octal = (mode & 0o7777).toString(8).padStart(4, '0');
    const reason = `the user ${reader.name} may not read it (owner ${owner}, group ${group}, mode ${octal})`;
    const chmod = (of: 'u' | 'g' | 'o') => `chmod ${of}+${asFolder ? 'rx' : 'r'} ${shellWord(path)}`;
    // The system looks at one class of permissions only: the owner's, else the group's, else those of all others.
    if (uid === reader.uid) return { reason, hint: `run: ${chmod('u')}` };
    if (reader.groups.includes(gid)) return { reason, hint: `run: ${chmod('g')}` };
    const join = `add ${reader.name} to the group ${group} (usermod -aG ${group} ${reader.name}) and restart labfeed`;
    const mayGroup = (mode & (asFolder ? 0o050 : 0o040)) === (asFolder ? 0o050 : 0o040);
    return { reason, hint: mayGroup ? `${join}, or run: ${chmod('o')}` : `run: ${chmod('o')}` };
  } catch {
    const folder = dirname(path);
    return {
      reason: `the user ${reader.name} may not enter its folder ${folder}`,
      hint: `let ${reader.name} enter it, for example with: chmod o+x ${shellWord(folder)}`,
    };
  }
}

const thisUser = (): Reader => ({
  name: userName(),
  uid: process.geteuid?.(),
  groups: [...(process.getgroups?.() ?? []), process.getegid?.() ?? -1],
});

/** The name of a user or group, else its number. */
function nameIn(file: '/etc/passwd' | '/etc/group', id: number): string {
  try {
    const line = readFileSync(file, 'utf8')
      .split('\n')
      .find((one) => one.split(':')[2] === String(id));
    return line?.split(':')[0] ?? String(id);
  } catch {
    return String(id);
  }
}
