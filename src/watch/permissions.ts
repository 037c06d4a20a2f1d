import { readFileSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';

/** Why this user may not read a file, and what would change that. */
interface Refusal {
  readonly reason: string;
  readonly hint: string;
}

/** For a file or folder that cannot be opened for lack of permission. Its own name and mode, if they can be seen. */
export function explainPermission(path: string, asFolder = false): Refusal {
  const user = userName();
  try {
    const { mode, uid, gid } = statSync(path);
    const [owner, group] = [nameIn('/etc/passwd', uid), nameIn('/etc/group', gid)];
    const octal = (mode & 0o7777).toString(8).padStart(4, '0');
    const access = asFolder ? 'rx' : 'r';
    const shown = `'${path.replaceAll("'", "'\\''")}'`;
    const byGroup = `add ${user} to the group ${group} (usermod -aG ${group} ${user}) and restart labfeed`;
    const needsMode = (mode & 0o040) === 0;
    const hint = needsMode
      ? `run: chmod o+${access} ${shown} (or chmod g+${access}, and ${byGroup})`
      : `${byGroup}, or run: chmod o+${access} ${shown}`;
    return { reason: `the user ${user} may not read it (owner ${owner}, group ${group}, mode ${octal})`, hint };
  } catch {
    const folder = dirname(path);
    return { reason: `the user ${user} may not enter its folder ${folder}`, hint: `run: chmod o+x '${folder}'` };
  }
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run labfeed as a user without a name.
    return String(process.geteuid?.() ?? 'that runs labfeed');
  }
}

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
