import { basename, dirname, extname, parse, relative, sep } from 'node:path';
import { INSTRUMENT_NAME } from '../config/schema.js';
import type { FileRecord } from '../model.js';

/** Folders whose names say nothing about the instrument. */
const ANY_FOLDER =
  /^(samples?|data|daten|te?mp|downloads?|desktop|documents?|files?|exports?|results?|runs?|tests?|examples?)$/i;

/** What the instrument may be called: after its folder, or else after the first sample. */
export function suggestName(watch: string, paths: readonly string[]): string {
  const stem = parse(paths[0] ?? '').name.replace(/[\s._-]*\d[\d\s._-]*$/, '');
  const folder = basename(watch);
  const names = (ANY_FOLDER.test(folder) ? [stem, folder] : [folder, stem]).map(cleanName);
  return names.find((name) => INSTRUMENT_NAME.test(name)) ?? 'instrument';
}

const cleanName = (name: string): string =>
  name
    .normalize('NFC')
    .replace(/[^\p{L}\p{N} ._-]+/gu, '-')
    .replace(/^[^\p{L}\p{N}]+|[ ._-]+$/gu, '')
    .slice(0, 64);

/** The folder that holds all samples. */
export function commonFolder(paths: readonly string[]): string {
  return paths
    .map((path) => dirname(path))
    .reduce((common, folder) => {
      let shared = common;
      while (relative(shared, folder).startsWith('..')) shared = dirname(shared);
      return shared;
    });
}

/** Globs for files of the samples' kinds, seen from the folder that holds them. */
export function suggestFiles(watch: string, paths: readonly string[]): string | string[] {
  const isFlat = paths.every((path) => !relative(watch, path).includes(sep));
  const endings = [...new Set(paths.map((path) => extname(path)))].sort();
  const globs = endings.map(
    (ending) => `${isFlat ? '' : '**/'}*${ending.replace(/[^\p{L}\p{N}.]/gu, '\\$&')}`,
  );
  return globs.length === 1 ? (globs[0] ?? '*') : globs;
}

/** What names a sample, the surest first. `Sample volume` or `Run date` are about it, and do not name it. */
const TITLES = [
  /^(sample|specimen|probe|[ée]chantillon|muestra|campione|サンプル|試料)([ _-]?(id|name|no\.?|nr\.?|number))?$/i,
  /^(plate|platte|plaque)([ _-]?(id|name|no\.?|nr\.?|number|barcode))?$/i,
  /^(name|title|titel|titre|id|run([ _-]?(id|name|no\.?|number))?)$/i,
];

/** A title that tells the runs apart: by a fact that names the sample in all files, else by the file's name. */
export function suggestTitle(records: readonly FileRecord[]): string {
  const isInAll = (name: string) => records.every(({ meta }) => (meta.get(name)?.text ?? '').trim() !== '');
  const names = [...(records[0]?.meta.keys() ?? [])].filter((name) => isNameable(name) && isInAll(name));
  const [sample] = TITLES.flatMap((title) => names.filter((name) => title.test(name)));
  return `${sample === undefined ? '{{ file.stem }}' : insert(sample)} ({{ instrument }})`;
}

/** Liquid has no way to write a quote, or a brace that closes, within a name. */
const isNameable = (name: string): boolean => !/["\\{}%]/.test(name);

const insert = (name: string): string =>
  /^[A-Za-z_]\w*$/.test(name) ? `{{ meta.${name} }}` : `{{ meta["${name}"] }}`;
