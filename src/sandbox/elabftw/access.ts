import { type Entries, type Entry, STATE } from '../entries.js';
import { fullName, type Person, personOf } from '../people.js';
import { forbidden, improper, missing, unprocessable } from './failure.js';

/** The user whose key is used. */
export interface Account {
  readonly person: Person;
  readonly administrator: boolean;
}

/** Others' entries can be read by the team unless they are private; an administrator reads all. */
export const mayRead = (entry: Entry, { person, administrator }: Account) =>
  administrator || entry.userid === person.userid || entry.private === 0;

/** A locked one nobody writes to but an administrator, not even its owner. */
function mayWrite(entry: Entry, { person, administrator }: Account): boolean {
  return administrator || (entry.userid === person.userid && entry.lockedby === null);
}

export function readable(entries: Entries, id: number, account: Account): Entry {
  if (id <= 0) throw forbidden();
  const entry = entries.read(id);
  if (!entry) throw missing();
  if (!mayRead(entry, account)) throw forbidden();
  return entry;
}

export function refuseUnwritable(entry: Entry, account: Account): void {
  if (!mayWrite(entry, account)) throw forbidden();
}

/** The order of the reasons is the server's: a deleted one that is locked is refused for being deleted. */
export function refuseChange(entry: Entry, account: Account): void {
  if (entry.state === STATE.deleted) {
    throw unprocessable('Only the Restore action is allowed on a deleted entity.');
  }
  if (entry.state === STATE.archived) {
    throw unprocessable('Only the Unarchive action is allowed on an archived entity.');
  }
  refuseUnwritable(entry, account);
  // Who has it open in a second window is let in all the same.
  if (entry.editedby !== null && entry.editedby !== account.person.userid) {
    throw improper(`This entry is being edited by ${fullName(personOf(entry.editedby))}.`);
  }
}
