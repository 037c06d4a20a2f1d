import type { FastifyInstance } from 'fastify';
import { fullName } from '../people.js';
import { resource } from '../resource.js';
import type { Account } from './access.js';
import { TEAM } from './record.js';

/** Who the key belongs to, and which version this is. */
export function serveAccount(
  api: FastifyInstance,
  { person, administrator }: Account,
  { keepsTitle, markdown }: { readonly keepsTitle: boolean; readonly markdown: boolean },
): void {
  resource(api, '/users/me', {
    GET: (_request, reply) =>
      reply.send({
        ...person,
        fullname: fullName(person),
        orcid: null,
        team: TEAM.id,
        teams: [{ ...TEAM, is_admin: administrator ? 1 : 0, is_owner: 0 }],
        is_sysadmin: 0,
        use_markdown: markdown ? 1 : 0,
        validated: 1,
      }),
  });

  const [version, number] = keepsTitle ? ['5.6.12', 50_612] : ['5.2.8', 50_208];
  resource(api, '/info', {
    GET: (_request, reply) => reply.send({ elabftw_version: version, elabftw_version_int: number }),
  });
}
