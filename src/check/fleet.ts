import { systemClock } from '../clock.js';
import type { FleetConfig } from '../config/fleet.js';
import type { LoadedConfig } from '../config/load.js';
import type { Postgres } from '../fleet/database.js';
import { differentNotebooks } from '../members.js';
import type { Finding } from './folders.js';

/** Whether the database answers, and what it tells a machine that delivers about the notebook. */
export async function checkFleet({ settings: { fleet }, notebook }: LoadedConfig): Promise<Finding[]> {
  if (!fleet) return [];
  const { tryDatabase } = await import('../fleet/database.js');
  const findings: Finding[] = [{ level: 'good', text: 'the database of the fleet answers' }];
  const problem = await tryDatabase(fleet, async (postgres) => {
    if (notebook && fleet.role !== 'watch') findings.push(...(await checkDeliverers(postgres, fleet, notebook.url)));
  });
  return problem ? [{ level: 'wrong', ...problem }] : findings;
}

/** What the machines that deliver have recorded. */
async function checkDeliverers(postgres: Postgres, { name }: FleetConfig, url: string): Promise<Finding[]> {
  const { listMembers } = await import('../fleet/report.js');
  try {
    const others = (await listMembers(postgres, systemClock)).filter((member) => member.name !== name);
    const different = differentNotebooks([{ name, isAway: false, notebook: url }, ...others]);
    const sender = await postgres.row<Sender>(
      `SELECT name, notebook, session_key IS NOT NULL AS "hasKey" FROM labfeed.fleet
         JOIN labfeed.members ON members.id = sender`,
    );
    return [
      ...(different ? [{ level: 'wrong' as const, text: different.text, hint: different.hint }] : []),
      sessionFinding(sender?.notebook === url ? sender : undefined),
    ];
  } catch (error) {
    // No machine has joined yet, or only an older version.
    if (['42P01', '42703'].includes(String((error as { code?: unknown }).code))) return [];
    throw error;
  }
}

interface Sender {
  readonly name: string;
  readonly notebook: string | null;
  readonly hasKey: boolean;
}

/**
 * By what the leader has found out: a key that was created to test this would stay in the notebook if the command were
 * interrupted.
 */
function sessionFinding(sender: Sender | undefined): Finding {
  if (!sender)
    return {
      level: 'note',
      text: 'whether the notebook gives session keys is known once a machine of the fleet delivers',
      hint: 'run `labfeed check` again then',
    };
  const { name, hasKey } = sender;
  if (hasKey)
    return {
      level: 'good',
      text: `the notebook gives session keys: ${name} sends with one, which a successor deletes`,
    };
  return {
    level: 'note',
    text: `the notebook gives no session keys that can be deleted, so a successor of ${name} waits for 15 s and the grace period before it sends; a leader that was paused for longer can leave an empty experiment or a second comment`,
    hint: 'use an API key whose account may manage its keys',
  };
}
