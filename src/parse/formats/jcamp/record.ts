/** A labelled data record: `##LABEL= value`, with the lines that follow up to the next. */
export interface LabelledRecord {
  /** As written, without `##`. */
  readonly label: string;
  /** As the standard compares labels: capitals only, without blanks, dashes, slashes and underscores. */
  readonly key: string;
  /** Without comments. The first is what stands right after the `=`. */
  readonly lines: readonly string[];
  /** Of the first line in the file. */
  readonly number: number;
}

/** Without the last digits, in which a computed number is never exact. */
export const written = (value: number): string => String(Number(value.toPrecision(12)));
