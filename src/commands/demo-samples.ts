/**
 * The sample instruments of the demo: their mappings, as a scientist would write them, and their files.
 * Dates are of today, since a run from the future, or a date after the file's own, would rightly be refused.
 */
export interface SampleFile {
  readonly instrument: string;
  readonly name: string;
  readonly content: string;
}

/** The part of the demo's configuration that describes the instruments. */
export const SAMPLE_MAPPINGS = `instruments:
  balance:
    watch: instruments/balance
    files: "*.csv"
    ready: { quiet: 500ms }
    parse:
      delimiter: ","
      meta: { until: blank, separator: "," }
      table: { after: blank }
    experiment:
      title: "{{ meta.Sample }}, weighed by {{ meta.Operator }}"
      date: "{{ meta.Date }}"
      tags: [balance, "{{ meta.Operator }}"]

  spectrometer:
    watch: instruments/spectrometer
    files: "*.tsv"
    ready: { quiet: 500ms }
    parse:
      delimiter: tab
      dates: { format: "dd/MM/yyyy HH:mm" }
      meta: { until: Wavelength, separator: tab }
      facts: { date: Measured }
      table: { header: Wavelength }
    experiment:
      title: "UV/Vis of {{ meta.Sample }}"
      body: |
        <p>{{ meta.Sample }} in {{ meta.Solvent }}, path length {{ meta["Path length"] }}</p>
        {{ readings | table }}
      tags: [uv-vis, "{{ meta.Solvent }}"]

  plate-reader:
    watch: instruments/plate-reader
    files: "*.txt"
    ready: { quiet: 500ms }
    parse:
      delimiter: ";"
      decimal: ","
      missing: [OVRFLW]
      dates: { format: dd.MM.yyyy }
      meta: { until: Well, separator: ":" }
      facts: { date: Datum, plate: Platte }
      table: { header: Well, units: nextRow }
    experiment:
      title: "Plate {{ meta.plate }}"
      tags: [plate-reader]

  logger:                       # only a folder: everything else has a default
    watch: instruments/logger
    ready: { quiet: 500ms }
`;

export function sampleFiles(today: Date): SampleFile[] {
  const day = (separator: string, order: 'ymd' | 'dmy'): string => {
    const ymd = [today.getFullYear(), today.getMonth() + 1, today.getDate()].map((part) =>
      String(part).padStart(2, '0'),
    );
    return (order === 'ymd' ? ymd : ymd.reverse()).join(separator);
  };
  const iso = day('-', 'ymd');
  return [
    balance('weighing-0041.csv', 'Caffeine', 'Ada', iso, [12.403, 12.401, 12.404]),
    balance('weighing-0042.csv', 'Sodium chloride', 'Grace', iso, [250.12, 250.09]),
    spectrum('scan-17.tsv', 'Methylene blue', 'water', `${day('/', 'dmy')} 09:14`, 664, 0.74),
    spectrum('scan-18.tsv', 'Rhodamine B', 'ethanol', `${day('/', 'dmy')} 09:31`, 554, 1.12),
    plate('plate-7.txt', 'P-0007', day('.', 'dmy'), ['0,113', '0,118', '0,871', 'OVRFLW']),
    plate('plate-8.txt', 'P-0008', day('.', 'dmy'), ['0,109', '0,112', '0,905', '1,204']),
    logger('fridge-3.csv', iso, [4.1, 4.3, 4.0, 5.2]),
    logger('incubator.csv', iso, [36.9, 37.0, 37.1, 37.0]),
  ];
}

function balance(
  name: string,
  sample: string,
  operator: string,
  date: string,
  weights: readonly number[],
): SampleFile {
  const rows = weights.map((weight, index) => `${index + 1},${weight.toFixed(3)},yes`);
  const content = [
    `Sample,${sample}`,
    `Operator,${operator}`,
    `Date,${date}`,
    '',
    'No,Weight (mg),Stable',
    ...rows,
    '',
  ];
  return { instrument: 'balance', name, content: content.join('\r\n') };
}

function spectrum(
  name: string,
  sample: string,
  solvent: string,
  measured: string,
  peakNm: number,
  height: number,
): SampleFile {
  const rows = Array.from({ length: 41 }, (_, index) => {
    const nm = peakNm - 100 + 5 * index;
    return `${nm.toFixed(1)}\t${(height * Math.exp(-(((nm - peakNm) / 30) ** 2))).toFixed(4)}`;
  });
  const head = [`Sample\t${sample}`, `Solvent\t${solvent}`, 'Path length\t10 mm', `Measured\t${measured}`];
  return {
    instrument: 'spectrometer',
    name,
    content: [...head, 'Wavelength (nm)\tAbsorbance', ...rows, ''].join('\n'),
  };
}

function plate(name: string, id: string, date: string, absorbances: readonly string[]): SampleFile {
  const rows = absorbances.map((value, index) => `A${index + 1};${value};37,${index}`);
  const content = [`Platte: ${id}`, `Datum: ${date}`, 'Well;Absorption;Temperatur', ';AU;°C', ...rows, ''];
  return { instrument: 'plate-reader', name, content: content.join('\r\n') };
}

function logger(name: string, date: string, temperatures: readonly number[]): SampleFile {
  const rows = temperatures.map(
    (temperature, index) => `${date} 0${index}:00:00,${temperature.toFixed(1)},${40 + index}`,
  );
  return {
    instrument: 'logger',
    name,
    content: ['time,temperature (°C),humidity (%)', ...rows, ''].join('\n'),
  };
}
