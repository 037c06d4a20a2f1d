import type { Call } from './records.js';

/** What a new team has on the built-in notebook: the names that experiments can be given. */
interface Named {
  readonly id: number;
  readonly title: string;
}

const list = (...titles: readonly string[]): Named[] => titles.map((title, index) => ({ id: index + 1, title }));

const CATEGORIES = list('Raw data', 'Analysis', 'Production');
const STATUSES = list('Running', 'Success', 'Need to be redone', 'Fail');
const ITEMS = list('Plate reader', 'Spectrometer', 'Balance', 'Chromatograph', 'Logger');

interface Template extends Named {
  readonly body: string;
  readonly metadata: string | null;
}

const [first = { id: 1, title: 'Measurement' }] = list('Measurement');
const TEMPLATES: readonly Template[] = [
  {
    ...first,
    body: '<p>Purpose:</p>',
    metadata: JSON.stringify({ extra_fields: { Operator: { type: 'text', value: '' } } }),
  },
];

export const templateOf = (id: number): Template | undefined => TEMPLATES.find((one) => one.id === id);

export const isItem = (id: number): boolean => ITEMS.some((item) => item.id === id);

const colour = (named: Named) => ({ ...named, color: '29aeb9', is_default: 0, state: 1, team: 1 });

/** `GET /teams/current/…`, by the last part of its path. */
export const TEAM_LISTS: Readonly<Record<string, () => object[]>> = {
  experiments_categories: () => CATEGORIES.map(colour),
  experiments_status: () => STATUSES.map(colour),
};

/** `q` is a substring of the title. */
export const searchItems = ({ query }: Pick<Call, 'query'>): object[] => {
  const wanted = String(query['q'] ?? '').toLowerCase();
  return ITEMS.filter(({ title }) => title.toLowerCase().includes(wanted));
};

export const listTemplates = (): object[] => TEMPLATES.map(({ id, title }) => ({ id, title }));
