import type { FastifyInstance } from 'fastify';
import type { Log } from '../../log.js';
import { PEOPLE } from '../people.js';
import type { Store } from '../store.js';
import { serveAccount } from './account.js';
import { serveComments } from './comments.js';
import { followElabftw } from './conventions.js';
import type { Customs } from './customs.js';
import { serveExperiments } from './experiments.js';
import { serveKeys } from './keys.js';
import { serveTags } from './tags.js';
import { serveUploads } from './uploads.js';

/** The API as eLabFTW answers it, where it differs from the contract, and where the contract is silent. */
export function serveElabftw(api: FastifyInstance, store: Store, customs: Customs, log?: Log): void {
  const account = { person: PEOPLE.owner, administrator: customs.administrator };
  followElabftw(api, { useKey: store.keys.use, badKey: customs.badKey, log });
  serveExperiments(api, store, account, customs);
  serveTags(api, store, account, customs.createsTags);
  serveComments(api, store, account);
  serveUploads(api, store, account);
  serveKeys(api, store.keys);
  serveAccount(api, account, customs);
}
