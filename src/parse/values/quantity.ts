/**
 * What is measured in which units. A unit that is a letter or a word, and that stands behind a name without brackets, is
 * certain only if the name says what was measured: `Time Sec`, `temp_C`, `-145V` of a bias voltage.
 */

/** Words in names, and units: those of more than two letters in small letters. */
const MEASURED: readonly (readonly [name: RegExp, unit: RegExp])[] = [
  [
    /time|duration|delay|interval|exposure|dwell|period|elapsed|zeit|dauer/i,
    /^(?:[munµ]?s|h|hr|(?:m|u|n|milli|micro|nano)?sec(?:ond)?s?|mins|minutes?|hrs|hours?|days?)$/,
  ],
  [
    /temp|dew ?point/i,
    /^(?:m?K|C|F|°C|°F|deg(?:ree)?s?(?:\.?[ _]?(?:c|f|celsius|fahrenheit))?|celsius|fahrenheit|kelvins?)$/,
  ],
  [/volt|potential|bias|batt|spannung|tension|\bhv\b/i, /^(?:[mukMµ]?V|VDC|(?:m|u|k|milli|micro|kilo)?volts?)$/],
  [/current|strom|courant/i, /^(?:[pnumµk]?A|(?:m|u|n|milli|micro|nano)?amp(?:ere)?s?)$/],
  [/power|leistung/i, /^(?:[munµkM]?W|dbm|(?:m|k|milli|kilo)?watts?)$/],
  [
    /press|vacuum|druck|stress|modulus/i,
    /^(?:[mhkMu]?Pa|[kmhg]pa|(?:m|u|milli)?bars?|(?:m|milli)?torr|psi[ag]?|atm|mmhg|inhg|(?:kilo)?pascals?)$/,
  ],
  [/humid|moisture|saturation|\brh|transmi|reflect|viab|purity|yield|efficien|charge/i, /^(?:%|pct|percent)$/],
  [/wavelength|wellenl/i, /^(?:nm|[uµ]m|microns?|(?:nano|micro)met(?:er|re)s?|angstroms?)$/],
  [/freq/i, /^(?:[mk]?Hz|[mkg]?hz|(?:kilo|mega|giga)?hertz)$/],
  [/weight|mass|gewicht|masse/i, /^(?:[munµk]?g|(?:milli|micro|nano|kilo)?grams?|lbs?|oz|pounds?)$/],
  [/volume|volumen/i, /^(?:[munµcd]?[Ll]|(?:milli|micro|nano)?lit(?:er|re)s?|cc|mls)$/],
  [
    /depth|length|distance|height|width|altitude|elevation|diameter|thickness|displacement|level|\bgap(?![a-z])/i,
    /^(?:[munµck]?m|(?:milli|micro|nano|centi|kilo)?met(?:er|re)s?|microns?|inch(?:es)?|ft|feet|foot|miles?)$/,
  ],
  [/angle|phase|heading|direction|tilt|rotation|latitude|longitude|winkel/i, /^(?:m?rad|°|m?deg|degrees?)$/],
  [/force|load|kraft/i, /^(?:[mkuµ]?N|(?:kilo|milli)?newtons?|lbf|kgf)$/],
  [/torque|drehmoment/i, /^(?:[munµ]?Nm|N-m|n-m)$/],
  [/speed|veloc|geschwindigkeit|drehzahl/i, /^(?:[mck]?m\/(?:s|min|h)|rpm|mph|kts|knots)$/],
  [/resist|impedance/i, /^(?:[mkMG]?Ω|[mkg]?ohms?|(?:milli|kilo|mega|giga)ohms?)$/],
  [/absorb|intensity|signal|response|detector|fluoresc/i, /^(?:m?AU|mau|rfu|rlu|counts|cps|cts|m?V|a\.u\.)$/],
  [/energy|energie/i, /^(?:[mk]?J|[mk]?eV|[mk]ev|[kmg]?wh|(?:kilo)?joules?)$/],
  [/\bfield\b|_field\b|\bfield_/i, /^(?:m?T|k?G|k?Oe|tesla|gauss)$/],
  [/conc|molarity/i, /^(?:[a-z]+\/[a-z]+|[munµ]?M|pp[mbt]|(?:milli|micro|nano)?molar)$/],
  [/capacity|charge/i, /^m?(?:ah|Ah)$/],
  [/capacitance/i, /^(?:[pnuµm]F|[pnm]?farads?)$/],
  [/viscos/i, /^(?:m?pa[.·*]s|cP|cst|(?:centi)?poise)$/],
  [/turbidity/i, /^(?:ntu|fnu)$/],
  [/salinity/i, /^(?:psu|ppt)$/],
  [/flow/i, /^(?:[um]?l\/(?:min|h|s)|sccm|slp?m|lpm|gpm|cfm)$/],
  [/illumin|light/i, /^k?lux$/],
];

/** Whether something of that name is measured in that unit. */
export function isMeasuredIn(name: string, unit: string): boolean {
  const written = unit.length > 2 ? unit.toLowerCase() : unit;
  return MEASURED.some(([names, units]) => units.test(written) && names.test(name));
}

/** Whether the name says what was measured. */
export const isOfKnownUnit = (name: string): boolean => MEASURED.some(([names]) => names.test(name));

/**
 * `Elapsed Time Seconds`, `Temperature Deg C`, `voltage_mV`: a unit behind what is measured in it. `min` and `in` are also
 * other words, and a capital letter can be one of a series, `Current A`, but not behind small letters and an underscore: `temp_C`.
 */
export function unitBehindQuantity(written: string): { name: string; unit: string } | undefined {
  const at = Math.max(written.lastIndexOf(' '), written.lastIndexOf('_'));
  if (at < 2 || written.length > MAX_LENGTH) return undefined;
  const last = written.slice(at + 1);
  const [degrees = ''] = /[ _]deg(?:ree)?s?\.?$/i.exec(written.slice(0, at)) ?? [];
  const name = written.slice(0, at - degrees.length).replace(/[ _]+$/, '');
  const unit = degrees === '' ? last : written.slice(at - degrees.length + 1);
  const isLetter = degrees === '' && /^[A-Z]$/.test(last) && !UNDERSCORE.test(written.slice(0, at + 1));
  if (isLetter || /^(?:min|in)$/i.test(unit) || NOT_MEASURED.test(name)) return undefined;
  return isMeasuredIn(name, unit) ? { name, unit } : undefined;
}

/** Before a unit only: `cell_temp_C`, `Axial force_N`. */
const UNDERSCORE = /^(?:[a-z\d_]+|[^_]+ [^_]+)_$/;

const MAX_LENGTH = 60;

/** `Time of flight`, `Absorbance 450 nm`: what is measured elsewhere, or where it is. */
const NOT_MEASURED = /(?<!\p{L})(?:at|per|of|for|to|from|by|vs|over|with|after|before)(?!\p{L})|[ _]\d+$/iu;
