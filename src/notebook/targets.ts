import { NotebookError } from '../errors.js';
import type { Subject } from './errors.js';
import { isId } from './responses.js';

/** Where a request goes, and whom its refusal concerns. */
export interface Target {
  /** Below `/api/v2`. */
  readonly path: string;
  readonly on: Subject;
}

/** What comments belong to. A bare number is an experiment, the one type that the contract names. */
export type Entity = number | { readonly type: string; readonly id: number };

export const EXPERIMENTS: Target = { path: '/experiments', on: 'experiments' };

export const KEYS: Target = { path: '/apikeys', on: 'keys' };

export const experiment = (id: number): Target => entry(`/experiments/${checked(id, 'an experiment')}`);

/** eLabFTW's own: the contract has tags in the PATCH. */
export const tags = (id: number): Target => entry(`${experiment(id).path}/tags`);

export const tag = (id: number, tagId: number): Target =>
  entry(`${tags(id).path}/${checked(tagId, 'a tag')}`);

/** So many of the last changed ones are enough to know. */
const MOST_FOUND = 10;

/** eLabFTW's own: its search, also of what is archived or deleted. Texts are without quotes. */
export function holding(texts: readonly string[]): Target {
  const extended = texts.map((text) => `body:"${text}"`).join(' AND ');
  const query = new URLSearchParams({ extended, state: '1,2,3', limit: String(MOST_FOUND) });
  return { path: `${EXPERIMENTS.path}?${query}`, on: 'experiments' };
}

export const comments = (entity: Entity): Target => entry(`${addressOf(entity)}/comments`);

export const comment = (entity: Entity, id: number): Target =>
  entry(`${addressOf(entity)}/comments/${checked(id, 'a comment')}`);

export const key = (id: number): Target => ({ path: `/apikeys/${checked(id, 'an API key')}`, on: 'keys' });

const entry = (path: string): Target => ({ path, on: 'entry' });

function addressOf(entity: Entity): string {
  if (typeof entity === 'number') return experiment(entity).path;
  const { type, id } = entity;
  if (!/^[a-z][a-z_]*$/.test(type)) throw refusal(`${JSON.stringify(type)} is not a type of entity`);
  return `/${type}/${checked(id, 'an entity')}`;
}

/** A wrong id must not become a URL: eLabFTW answers `/experiments/0` with the list of all, and 200. */
function checked(id: number, what: string): number {
  if (!isId(id)) throw refusal(`${String(id)} is not the id of ${what}`);
  return id;
}

const refusal = (message: string): NotebookError =>
  new NotebookError('request', message, { lost: false, hint: 'ids are whole numbers from 1 on' });
