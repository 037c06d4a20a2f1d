import type { FileRecord } from '../model.js';

/** Titles and tags for the runs of an instrument, from the facts of its samples. */

/** Liquid cannot escape a quote or a closing brace in a name. */
export const isInsertable = (name: string): boolean => !/["\\{}%]/.test(name);

/** Parts of names in the languages that instruments use. */
const NUMBER =
  '(?:id|code|name|nom|nombre|nome|label|title|bezeichnung|barcode|no\\.?|nr\\.?|number|nummer|名称?|番号|编号)';
const FILE = '(?:file|file ?name|datei|type|model|modell|typ|version|型号)';
const named = (words: string, parts: string) =>
  new RegExp(
    `^(?:${words})(?:[ _./-]?${parts})?$|^${parts}[ _-](?:de |of |da |del )?(?:the |l['’]|la )?(?:${words})$`,
    'i',
  );

/** Facts that name a sample, best first. `Sample volume` and `Run date` do not. */
const TITLE_FACTS = [
  named(
    'sample|specimen|proben?|[ée]chantillon|muestra|campione|amostra|monster|サンプル|試料|样品|樣品|시료|образец',
    NUMBER,
  ),
  named('plate|platte|plaque|placa|piastra|プレート|板', NUMBER),
  named('(?:experiment|test|measurement|messung|essai|batch|lot|charge|run)', NUMBER),
  /^(?:name|title|titel|titre|id|titolo|t[íi]tulo|タイトル)$/i,
];

const METHOD = named(
  'method|methode|méthode|método|metodo|protocol|protokoll|protocole|protocolo|assay|technique|メソッド|方法',
  `(?:${NUMBER}|${FILE})`,
);

/** Who measured, how, and with what. */
const TAG_FACTS = [
  named(
    '(?:acq\\. )?(?:operator|user|analyst|bediener|benutzer|anwender|op[ée]rateur|utilisateur|operador|usuario|operatore|utente|analista|オペレータ[ーｰ]?|測定者|操作员|操作者)',
    NUMBER,
  ),
  METHOD,
  named(
    'instrument|device|reader|gerät|messgerät|spectrometer|appareil|instrumento|strumento|機種|装置|仪器',
    `(?:${NUMBER}|${FILE})`,
  ),
];

/** What software writes where nobody entered anything. */
const PLACEHOLDER =
  /^(?:n\.?\/?a\.?|none|null|nil|unknown|undefined|untitled|(?:un|not )specified|not (?:set|applicable|available|appl\.?)|default.*|<.*>|\(.*\)|user|operator|admin(?:istrator)?|guest|sample|new|keine?|unbekannt|inconnu|x+)$/i;

const isMeaningful = (text: string): boolean => /[\p{L}\p{N}]/u.test(text) && !PLACEHOLDER.test(text.trim());

/** The facts that all files have, with a value that is not a placeholder. */
function usableFacts(records: readonly FileRecord[]): string[] {
  const isInAll = (name: string) => records.every(({ meta }) => isMeaningful(meta.get(name)?.text ?? ''));
  return [...(records[0]?.meta.keys() ?? [])].filter((name) => isInsertable(name) && isInAll(name));
}

/** A title that distinguishes the runs: by the sample and the method, or else by the file name. */
export function suggestTitle(records: readonly FileRecord[]): string {
  const names = usableFacts(records);
  const [sample] = TITLE_FACTS.flatMap((title) => names.filter((name) => title.test(name)));
  const method = names.find((name) => METHOD.test(name) && records.every((record) => isShort(record, name)));
  if (sample === undefined) return '{{ file.stem }} ({{ instrument }})';
  const title = insert(sample, ' | default: file.stem');
  return `${title}${method === undefined ? '' : addition(method)} ({{ instrument }})`;
}

/** Templates for tags from facts with a few words or a name. */
export function suggestTags(records: readonly FileRecord[]): string[] {
  const names = usableFacts(records).filter((name) => records.every((record) => isShort(record, name)));
  return TAG_FACTS.flatMap((tag) => names.filter((name) => tag.test(name)).slice(0, 1)).map((name) => insert(name));
}

/** Not a path, a serial number or a remark. */
const isShort = ({ meta }: FileRecord, name: string): boolean => {
  const { text = '', value } = meta.get(name) ?? {};
  return typeof value === 'string' && text.length <= 40 && !/[\\/]/.test(text);
};

const factOf = (name: string): string => (/^[A-Za-z_]\w*$/.test(name) ? `meta.${name}` : `meta["${name}"]`);

const insert = (name: string, filter = ''): string => `{{ ${factOf(name)}${filter} }}`;

/** Nothing for a file without the fact. */
const addition = (name: string): string => `{% if ${factOf(name)} %}, ${insert(name)}{% endif %}`;
