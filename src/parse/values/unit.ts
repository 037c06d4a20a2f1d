import { isMeasuredIn, unitBehindQuantity } from './quantity.js';

/**
 * Units that are recognised in brackets after a name and after a number. They can be combined (`ng/uL`, `W/m2`,
 * `cm-1`). Variants of µ, Ω, ° and superscripts are equal and are written in one form here, `u` for µ.
 */

/** Symbols with the prefixes that they take. */
const PREFIXED: Readonly<Record<string, string>> = {
  ...{ m: 'fpnumcdk', g: 'fpnumk', s: 'fpnum', L: 'fpnumcd', l: 'fpnumcd', A: 'fpnumk', V: 'numkM' },
  ...{ W: 'pnumkMG', J: 'numkM', C: 'pnum', F: 'afpnum', H: 'num', T: 'num', S: 'numd', N: 'numk', K: 'm' },
  ...{ Hz: 'umkMGT', Pa: 'umhkMG', bar: 'um', eV: 'mkM', mol: 'fpnumk', M: 'fpnum', Da: 'kM', rad: 'mu' },
  ...{ Ω: 'numkMGT', ohm: 'umkMG', Ohm: 'umkMG', Ah: 'umk', Wh: 'mkM', Nm: 'num', VA: 'mk', lx: 'k' },
  ...{ Torr: 'm', torr: 'm', cd: 'm', Bq: 'kMG', Gy: 'mu', Sv: 'mun', Ci: 'pnum', cal: 'k', bp: 'kM', AU: 'm' },
  ...{
    OD: 'm',
    U: 'mk',
    IU: 'umk',
    EU: 'm',
    kat: 'num',
    Osm: 'm',
    osm: 'm',
    RU: '',
    P: 'cm',
    St: 'c',
    G: 'mk',
    Oe: 'k',
    Å: 'k',
    Sa: 'kMG',
    poise: '',
    Gal: 'um',
    Bar: 'm',
  },
};

/** Symbols without prefixes, separated by ` | `. */
const PLAIN = `
  % | ‰ | ppt | v/v | w/v | w/w | vol-% | Vol-% | vol.-% | Vol.-% | wt-% | wt.-% | mol-% | %vol | % vol
  ppmw | % w/w | % v/v | % w/v | m/z | oC | mm Hg | x g | VDC | Vpp | Vrms | mg% | NM | CM-1
  %RH | %rh | %rH | RH% | RH(%) | % RH | % rh | %T | %R | %d.b. | dB | dBm | dBc
  °C | °F | ° | min | h | hr | hour | d | day | minute | in | ft | gm
  lb | lbs | oz | atm | cmH2O | mH2O | barg | kgf | lbf
  cc | ccm | slm | gal | cps | cpm | Hz | fps | N-m | Pa-s | mPa-s | ft-lb
  count | Counts | COUNTS | counts | cts | kcps | CCD cts | a.u | a.u. | A.U. | arb | arb. u. | arb.u. | arb. units | AU | abs | Abs | RIU
  cells | cell | cp | copies | particles | PFU | pfu | MPN | pH | mEq | meq
  Pas | mPas | lxh | kDa | kb | nt | SCFM | Nl | rev | px | pixel
  °Brix | °Bx | Brix | dpm | DPM | ×g | xg
  Kcps | Mcps | vol % | %w/w | %v/v | %w/v | % sat | %sat | % Sat | %Sat | %B | % B | FAU | pH units | ° C | MΩ cm
  mln | mLn | smL | sml | SmL | NmL | Nml | sL | Nm3 | Sm3
  d.nm | d.µm | d.um | db | dbar | emu | mg KOH/g | SLM | CPM | CPS | mR | uR | Vs | V-s | Am2 | sq | div
  Ohm-cm | ohm-cm | Ohm-m | ohm-m | dBV | dBuV | dBi | dBA | dB(A) | mph | km/h | kts | gf | FTU | S.U. | pts | gph | cfs | lps
  mln | ln | smL | sL | NmL | Nml | Nm3 | Ohmcm2 | Ohm cm2 | Ω cm2 | Ωcm2 | cm3/g STP | cm3 STP/g | cm3(STP)/g | mmol/g STP`;

/** Words, and abbreviations that some write in other letters: each also in capital letters, or in part. */
const WORDS = `
  percent | pct | percent saturation | wt% | wt.% | wt % | wt. % | vol% | vol.% | vol. % | mol% | mol % | mole % | mass % | weight % | at% | at.% | at % | atomic %
  sec | secs | msec | usec | seconds | mins | minutes | hrs | hours | days | knots
  deg | mdeg | degree | degrees | deg c | deg. c | deg_c | degc | deg f | deg. f | deg_f | degf | degree c | degrees c | degree f | degrees f
  degree celsius | degrees celsius | degrees_celsius | degree_celsius | celsius | fahrenheit | degrees fahrenheit | kelvins
  angstrom | angstroms | micron | microns | inch | inches | foot | feet | mile | miles | arcmin | arcsec | mrad
  pound | pounds | mgs | gms | mcg | mls | dyne | dynes | gauss | centipoise | vickers | lux | pixels
  arbitrary units | absorbance units | relative fluorescence units | relative light units | square meter | square meters | cubic meter | cubic meters
  ppm | ppb | ppmv | psi | psia | psig | kpa | mpa | hpa | mmhg | inhg | inches hg | rpm | lpm | slpm | sccm | gpm | cfm
  ntu | fnu | psu | cfu | rfu | rlu | mmol | umol | nmol | amu | bpm | mass%
  sekunden | minuten | stunden | prozent | secondes | heures | segundos | minutos | horas | secondi | minuti`;

/** Words with a prefix, in words or a letter, and perhaps an `s`: `MilliVolts`, `kOhms`. */
const PREFIXES = ['', ...'milli micro nano pico centi deci hecto kilo mega giga m u n k'.split(' ')];
const SPELLED =
  'meter metre liter litre gram volt amp ampere watt joule newton pascal bar hertz ohm siemens mole molar farad tesla torr second poise kelvin electronvolt';

const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹⁻';
const listed = (text: string): string[] => text.trim().split(/ \| |\n */);
const plain = new Set(listed(PLAIN).map(normalise));
/** In small letters. */
const words = new Set([
  ...listed(WORDS),
  ...SPELLED.split(' ').flatMap((word) => PREFIXES.flatMap((prefix) => [prefix + word, `${prefix}${word}s`])),
]);
const prefixed = new Set(
  Object.entries(PREFIXED).flatMap(([symbol, prefixes]) =>
    ['', ...prefixes].map((prefix) => normalise(prefix + symbol)),
  ),
);

/** Replaces the variants of µ, °, Ω, Å, superscripts and minus with one form each. */
function normalise(unit: string): string {
  if (!/\P{ASCII}/u.test(unit)) return unit;
  return unit
    .replace(/[µμ]/g, 'u')
    .replace(/[º˚]/g, '°')
    .replace(/℃/g, '°C')
    .replace(/\u2126/g, 'Ω')
    .replace(/\u212b/g, 'Å')
    .replace(/(?<=10)(?=[⁰¹²³⁴⁵⁶⁷⁸⁹])/g, '^')
    .replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]/g, (digit) => '0123456789-'.charAt(SUPERSCRIPTS.indexOf(digit)))
    .replace(/−/g, '-');
}

const isSymbol = (symbol: string): boolean =>
  plain.has(symbol) || prefixed.has(symbol) || (symbol.length > 2 && words.has(symbol.toLowerCase()));

const isFactor = (factor: string): boolean => isSymbol(factor) || isPower(factor);

/** `cm2`, `cm^2`, `s-1`: a symbol with an exponent. `A1` and `V1` are names. Also two symbols: `Jg^-1`. */
function isPower(factor: string): boolean {
  const [, symbol] = /^(\D+?)(?:\^?-\d|\^?[2-9])$/.exec(factor) ?? [];
  if (symbol === undefined || isSymbol(symbol)) return symbol !== undefined;
  const isPair = (at: number) => isSymbol(symbol.slice(0, at)) && isSymbol(symbol.slice(at));
  return factor.includes('^') && symbol.length < 6 && [1, 2, 3].some(isPair);
}

/**
 * Recognises `mg`, `ng/uL`, `W/m²`, `1/s`, `cm-1`, `mol·L⁻¹`, `mS cm-1`, `J/(g K)`, `10^6/mL`, `g/100 mL`,
 * `mg/L as CaCO3`, `V vs Ag/AgCl`, and `MG/DL` of printers without small letters.
 */
export function isUnit(written: string): boolean {
  if (written.length === 0 || written.length > MAX_LENGTH) return false;
  if (/^[A-Z]{1,5}\/[DMU]?L$/.test(written) && isUnit(written.toLowerCase())) return true;
  const symbols = normalise(written);
  if (isFactor(symbols)) return true;
  // Most cells are no unit: nothing below is one without a sign or a blank.
  if (!/[/·⋅*×. ]/.test(symbols)) return false;
  const unit = symbols
    .replace(/(?<=^x?10)\*{1,2}(?=\d)/, '^')
    .replace(/(?<=\/)100 ?(?=\p{L})/u, '')
    .replace(/(?<=\S\/\S+) as \S+$/, '')
    .replace(/ (?:\/|per) /, '/')
    .replace(/(?<=\p{L}{2})\.$/u, '')
    .replace(/(?<=V) vs\.? \S+$/, '')
    .replace(/\/\((\S+[ ·⋅*]\S+)\)$/, (_, below: string) => `/${below.replace(/[ ·⋅*]/g, '/')}`);
  if (isFactor(unit)) return true;
  // Words are separated by blanks too, so a factor after a blank needs an exponent.
  const [first = '', ...rest] = unit.split(' ');
  if (rest.length > 0 && rest.length < 4 && isUnit(first) && (rest.every(isPower) || PRODUCT.test(unit))) return true;
  const factors = unit.split(/[/·⋅*×.]|(?<=\d) /);
  return factors.length > 1 && factors.length < 5 && factors.every((each, n) => isFactor(each) || isCount(each, n));
}

/** `milliSiemens per centimeter` */
const MAX_LENGTH = 28;

/** Names of things are single capital letters too, but not these: `mN m`, `kW h`. */
const PRODUCT = /^[umkM]?(?:N m|[VAWJ] s|[AW] h|Pa s)$/;

/** `1/s`, `#/cm3`, `10^6/mL`, `x10^6 cells/mL`. */
const isCount = (factor: string, n: number): boolean =>
  n === 0 && /^(?:1|#|1000|10?[eE]\d|x?10\^\d{1,2})$/.test(factor);

/** A unit without the brackets around it; undefined if it is empty, or a dash for none. */
export function bareUnit(written: string | undefined): string | undefined {
  const unit = written
    ?.trim()
    .replace(/^(?:\[(.*)\]|\((.*)\))$/, '$1$2')
    .trim();
  return unit === undefined || /^[-–—]?$/.test(unit) ? undefined : unit;
}

const BRACKETS = new Map([
  [')', '('],
  [']', '['],
  ['}', '{'],
  ['>', '<'],
]);

/**
 * Splits a known unit from the end of a name: `Weight (mg)`, `U[V]`, `Temp, °C`, `Mass /mg`, `Flow mL/min`, `RH %`. Other
 * units after a blank can be part of the name.
 */
export function unitInName(name: string): { name: string; unit: string } | undefined {
  const close = name.at(-1) ?? '';
  const open = BRACKETS.get(close);
  if (open === undefined) return unitAfterComma(name) ?? unitAfterIn(name) ?? unitAtEnd(name) ?? unitAfterDash(name);
  let depth = 0;
  for (let at = name.length - 1; at > 0; at--) {
    if (name[at] === close) depth++;
    if (name[at] === open) depth--;
    if (depth > 0) continue;
    const unit = name.slice(at + 1, -1).trim();
    const rest = name
      .slice(0, at)
      .replace(/(?<=\S)\/$/, '')
      .trim();
    if (rest === '') return undefined;
    // A remark behind the unit: `Temp, °C (S/N: 203, SEN: 4)`.
    const before = /[:,]/.test(unit) ? unitAfterComma(rest) : undefined;
    if (before) return { name: `${before.name} ${name.slice(at)}`, unit: before.unit };
    // `Peak(s)`
    if (unit === 's' && /\p{L}\(s$/u.test(name.slice(0, -1)) && !TIME_NAME.test(rest)) return undefined;
    // A scale before the unit: `Temperature [ITS-90, deg C]`.
    const [, scale, ofScale = ''] = /^([A-Z]+-?\d+), (\S.*)$/.exec(unit) ?? [];
    if (scale !== undefined && isUnit(ofScale)) return { name: `${rest} (${scale})`, unit: ofScale };
    return isUnit(unit) && !isLabel(unit, rest) && !hasOwnUnit(rest) ? { name: rest, unit } : undefined;
  }
  return undefined;
}

/** `BEAMKV -kV`, `DWELLTIME-ms`: of a name in capital letters. Units that are also words are none: `LEVEL-min`, `SAMPLE-count`. */
function unitAfterDash(written: string): { name: string; unit: string } | undefined {
  const [, name, unit] =
    /^([A-Z][A-Z\d]{2,}) *-((?:[kmuµn]|k?e)V|[pnuµm]A|[nuµ]m|[nuµm]s|mR|mrad|kPa|hPa|mbar)$/.exec(written) ?? [];
  return name !== undefined && unit !== undefined ? { name, unit } : undefined;
}

/** `Tau in Pa`, `t in s`, `Shear rate in 1/s`. Elements and other things can follow `in` too: `Fe in C`, `Change in K`. */
function unitAfterIn(written: string): { name: string; unit: string } | undefined {
  const at = written.lastIndexOf(' in ');
  const [name, unit] = [written.slice(0, at).trim(), written.slice(at + 4).trim()];
  if (at < 1 || unit.length > MAX_LENGTH || !isUnit(unit)) return undefined;
  const isSymbol = name.length < 4 && !/^\d+$/.test(name) && (!/^[A-Z]$/.test(unit) || SYMBOL.test(`${name}/${unit}`));
  const isNoWord =
    /[\d/%°µμΩ·^]/.test(unit) || /^(?:[munp]s|[munpckd]m|[munk]g|[munpk]A|[mk]V|[mkM]Hz|[hkMG]Pa)$/.test(unit);
  return isSymbol || isNoWord || isMeasuredIn(name, unit) ? { name, unit } : undefined;
}

/** Things that are marked with letters: `Plate (A)`, `channel 1 (C)`. */
const LETTERED =
  /(?:^|[^\p{L}])(?:plate|channel|chamber|cell|well|rack|row|column|position|block|lamp|group|type|class|mode|line|port|valve|pump|site|slot|tray|zone|lane|electrode|filter|sample|phase|option|version|variant|series|set|part|section|panel|side|module|step|stage|platte|kanal|gruppe|probe)(?: ?\d+)?$/iu;

/** The first letters of the alphabet are also units. */
const isLabel = (unit: string, name: string): boolean =>
  (/^[A-H]$/.test(unit) && LETTERED.test(name)) || isHemisphere(unit, name);

/** `48.1 N` of a latitude is not a force. */
export const isHemisphere = (unit: string | undefined, name: string): boolean =>
  /^[NSWE]$/.test(unit ?? '') && PLACE.test(name);

const PLACE =
  /(?<!\p{L})(?:lat(?:itude)?|lon(?:gitude)?|lng|gps|coord(?:inate)?s?|breite(?:ngrad)?|l[äa]ngengrad)(?!\p{L})/iu;

/** Analysers mark high and low results: `7.1 H`. These are units only of what is named an inductance or a volume. */
export const isFlag = (unit: string | undefined, name: string): boolean =>
  (unit === 'H' && !/induct/i.test(name)) || (unit === 'L' && !/vol|capacit|lit(?:er|re)|fill|tank/i.test(name));

export const isMark = (unit: string | undefined, name: string): boolean =>
  isHemisphere(unit, name) || isFlag(unit, name);

/** `Events/µL(V)`: what follows a unit is not the unit. A single letter can be an element: `C/N (%)`. */
const hasOwnUnit = (name: string): boolean => {
  const unit = name.slice(name.lastIndexOf('/') + 1);
  return unit.length > 1 && unit.length < name.length - 1 && isUnit(unit);
};

/** A single letter after a comma is part of the name, `Sensor, A`, unless that says what was measured: `Current, A`. */
function unitAfterComma(name: string): { name: string; unit: string } | undefined {
  const at = name.lastIndexOf(',');
  const unit = name.slice(at + 1).trim();
  const isLetter = /^[A-Za-z]?$/.test(unit) && !isMeasuredIn(name.slice(0, at), unit);
  if (at < 1 || isLetter || !isUnit(unit)) return undefined;
  return { name: name.slice(0, at).trim(), unit };
}

/**
 * `Flow rate mL/min`, `Mass /mg`, `Temp °C`, `RH %`, `Strain_%`: units that are no words. A letter before the slash is perhaps a symbol
 * with its unit (`Temperature T/K`) or an element.
 */
function unitAtEnd(name: string): { name: string; unit: string } | undefined {
  const [, rest, unit] =
    /^(.*[^\s/])(?:\s+(?:\/ ?)?|_)((?<=\/ ?)\S+|(?:[^\s/_]{2,}|(?<=_)1)\/\S+|[°%‰]\S*|[µμ]\S+|(?:nm|cm-1)(?=\.?$))\.?$/.exec(
      name,
    ) ?? [];
  if (rest === undefined || unit === undefined || !isUnit(unit)) return unitBehindQuantity(name);
  // `450 nm` says where something else was measured, and `Peak A / C` has two peaks.
  if (/^[\d.,]+$/.test(rest) || (/ \/ [A-Za-z]$/.test(name) && !isMeasuredIn(rest, unit))) return undefined;
  // `Total (x10^6) cells/mL`: the power of ten belongs to the unit.
  const [, own, power] = /^(.*\S) ?\((x ?10\^?\d{1,2})\)$/.exec(rest) ?? [];
  return own === undefined ? { name: rest, unit } : { name: own, unit: `${power?.replace(' ', '')} ${unit}` };
}

/** What is measured in seconds, at the end of a name. */
const TIME_NAME =
  /(?:time|duration|delay|interval|exposure|dwell|period|age|elapsed|retention|start|stop|end|zeit|dauer|temps|tiempo|tau|τ|(?:^|[^\p{L}])r?t)[\d_.>)\]]*$/iu;

/** `pulses/min`, `Flow mln/h`: of a number per time. `Step time/s`: of a time. */
const isRate = (name: string, unit: string): boolean =>
  /^(?:s|sec|min|h|hr|d|day)$/.test(unit) && !TIME_NAME.test(name);

/** `dE/dV`: both are differences. */
const DERIVATIVE = /^d\p{L}\w*\/d\p{L}\w*$/u;

/** `C/N`, `Na/K`: of elements, or of other things with a letter. */
const RATIO = /^[A-Z][a-z]?\/[A-Z]$/;
/** `T/K`, `Ux/V`, `I/A`, `B/T`: the symbol of what is measured in that unit. */
const SYMBOL = /^(?:T\w?\/K|[UEV]\w?\/V|I\w?\/A|F[^e]?\/N|Q\w?\/C|P\w?\/W|B\w?\/T|[EWHQ]\w?\/J)$/;

/** Splits a unit after a slash from a name: `freq/Hz`. `anyUnit` accepts unknown units too. */
export function unitAfterSlash(name: string, anyUnit: boolean): { name: string; unit: string } | undefined {
  const atEnd = unitAfterComma(name) ?? unitAfterIn(name) ?? unitAtEnd(name);
  if (atEnd) return atEnd;
  if (DERIVATIVE.test(name) || (RATIO.test(name) && !SYMBOL.test(name))) return undefined;
  for (let at = name.indexOf('/'); at > 0; at = name.indexOf('/', at + 1)) {
    const unit = bareUnit(name.slice(at + 1)) ?? '';
    // `Flow scx/min`: what is not a word is the first part of a unit.
    if (NO_WORD.test(name.slice(0, at))) return undefined;
    // The name `mg/dL` is a unit, `T/K` a symbol and its unit.
    const before = name.slice(0, at).trim();
    if (isUnit(unit))
      return (/^\p{L}{2,}$/u.test(before) && isUnit(name)) || isRate(before, unit) ? undefined : { name: before, unit };
  }
  const last = name.lastIndexOf('/');
  // `p/p0` is a ratio to a reference.
  if (!anyUnit || last < 1 || last === name.length - 1 || name.startsWith(name.slice(0, last), last + 1))
    return undefined;
  return { name: name.slice(0, last).trim(), unit: name.slice(last + 1).trim() };
}

/** The last letters of a name: small consonants, or a capital letter behind small ones. */
const NO_WORD = /\s(?:[b-df-hj-np-tv-xz]{2,4}|[a-z]{1,2}[A-Z][a-z]?)$/;

/** `-145V` of `Bias voltage`: a letter directly after a number is its unit if the name says what was measured. */
export function gluedUnit(name: string, text: string): { digits: string; unit: string } | undefined {
  const [, digits, unit] = GLUED.exec(text) ?? [];
  return digits !== undefined && unit !== undefined && isMeasuredIn(name, unit) ? { digits, unit } : undefined;
}

const GLUED = /^([-+−]?\d[\d.,]*)([A-Za-z])$/;

/**
 * The unit of a column that is named after it, perhaps in brackets: `mAU`, `counts/s`, `[mV]`. `names`: of all columns of
 * the table.
 */
export function unitAsName(name: string, names: readonly string[] = []): string | undefined {
  const unit = bareUnit(name.replace(/ \(\d+\)$/, '')) ?? '';
  const others = AMONG.get(unit);
  if (others && names.some((other) => others.test(other))) return undefined;
  if (isUnit(unit) && isSure(normalise(unit))) return unit;
  const isProven = () => names.some((other) => other !== name && unitAsName(other) !== undefined);
  return LIKELY.test(unit) && isProven() ? unit : undefined;
}

/** Not units beside such names: `min` is a minimum or a minute, `mm` a minute or a month, `mg` magnesium, `s` a deviation. */
const AMONG = new Map([
  ['s', /^(?:n|mean|x|avg|average|median|cv|rsd)$/i],
  ['V', /^(?:Na|Mg|Al|Si|P|S|Cl|K|Ca|Sc|Ti|Cr|Mn|Fe|Co|Ni|Cu|Zn|As|Sr|Zr|Nb|Mo|Ba|Pb)$/],
  ['min', /^(?:max|mean|avg|average|med|std|sd|hh?|hour|sec|ss)/i],
  ['mm', /^(?:yy|dd|hh|ss)/i],
  ['mg', /^(?:na|k|ca|fe|zn|cu|mn|p|al)$/i],
]);

const isSure = (unit: string): boolean =>
  unit.length > 2 ? !OTHER_WORD.test(unit) && !NAME_LIKE.test(unit) : SHORT.test(unit);

const SHORT =
  /^(?:%|[numck]m|[numk]g|ms|[numd]L|[num]l|[pnumk]A|[numk][VW]|[mk][JN]|[num][MST]|[nu]F|AU|Hz|Nm|Oe|eV|dB|°[CF])$/;

/** Units that are also other words, names or abbreviations. */
const OTHER_WORD =
  /^(?:days?|hour|minute|second|sec|min|cells?|counts?|cts|copies|particles|abs|bar|mol|mole|molar|rad|cal|gal|deg|degree|div|rev|meter|metre|gram|amp|siemens|poise|foot|pixels?|arb|atm|ppt|pts|psi|psu|osm|kat|pas|gauss|vickers|vdc|vpp|vrms|% ?[a-z]|.*sat.*|(?:mass|weight|atomic|mole) %)$/i;

/** Ratios of two symbols, names with a number, `Volt2`, `A-1` or `1 h`, and abbreviations with dots. */
const NAME_LIKE =
  /^(?:(?!m\/s$|g\/[Ll]$|U\/L$)[^/.]\/[^/.]|.\..|[BCFGHMPST]\/.*|.*\/(?:[A-JM-Z]|Pa)|(?!(?:a\.u|S\.U|A\.U)\.).*\.|(?![ckmn]m[23]$|(?:[cmn]m|min)-1$)[A-Za-z]+-?\d|\d+ .*)$/;

/** Units if another column is surely named after its unit. */
const LIKELY = /^(?:s|sec|min|hr|us|ns|V|Pa|bar|psi|mol|deg|counts|Counts|cts)$/;
