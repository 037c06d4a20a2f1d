import { execFileSync } from 'node:child_process';

/** The manual page, from the help of every command, so that it cannot differ from it. */
export function manualPage(node, cli, { version, date }) {
  const help = (words) => parse(execFileSync(node, [cli, ...words, '--help'], { encoding: 'utf8' }));
  const program = help([]);
  const commands = program.sections.filter(({ title }) => !/^(Options|Examples?)$/.test(title));
  return [
    `.TH LABFEED 1 "${date}" "labfeed ${version}" "User Commands"`,
    '.SH NAME',
    // The first letter in lower case, as whatis expects.
    `labfeed \\- ${text(program.paragraphs[0].replace(/\.$/, '').replace(/^./, (letter) => letter.toLowerCase()))}`,
    '.SH SYNOPSIS',
    `.B ${text(program.usage)}`,
    '.SH DESCRIPTION',
    ...program.paragraphs.map(text),
    ...program.sections.filter((section) => !commands.includes(section)).flatMap((section) => render('.SH', section)),
    ...commands.flatMap(({ title, items }) => [
      `.SH ${text(title.toUpperCase())}`,
      ...items.flatMap(({ term }) => describe([term.split(' ')[0]], help)),
    ]),
    '.SH FILES',
    '.TP\n.I /etc/labfeed/config.yaml\nThe configuration.',
    '.TP\n.I /var/lib/labfeed/journal.db\nThe journal.',
    '.SH SEE ALSO',
    '.BR systemctl (1),\n.BR journalctl (1);\nthe pages in\n.I /usr/share/doc/labfeed',
    '',
  ].join('\n');
}

/** A command with its own commands. */
function describe(words, help) {
  const { usage, paragraphs, sections } = help(words);
  const inner = sections.find(({ title }) => title === 'Commands');
  return [
    `.SS ${text(usage)}`,
    ...paragraphs.flatMap((paragraph) => [text(paragraph), '.PP']),
    ...sections.filter((section) => section !== inner).flatMap((section) => render('.PP\n.B', section)),
    ...(inner?.items ?? [])
      // Every command has --help.
      .filter(({ term }) => !term.startsWith('help '))
      .flatMap(({ term }) => describe([...words, term.split(' ')[0]], help)),
  ];
}

function render(heading, { title, items }) {
  if (/^Examples?$/.test(title))
    return [`${heading} ${title}`, '.PP\n.RS\n.nf', ...items.map(({ term }) => text(term)), '.fi\n.RE'];
  const shown = items.filter(({ term }) => term !== '-h, --help' || heading === '.SH');
  if (shown.length === 0) return [];
  const name = heading === '.SH' ? title.toUpperCase() : title;
  return [`${heading} ${name}`, ...shown.map(({ term, rest }) => `.TP\n.B ${text(term)}\n${text(rest)}`)];
}

/** Blocks of help are separated by blank lines: the usage, sections with indented items, and paragraphs. */
function parse(help) {
  const [first, ...blocks] = help.trimEnd().split(/\n\n+/);
  const sections = [];
  const paragraphs = [];
  for (const lines of blocks.map((block) => block.split('\n'))) {
    if (!/^[A-Z].*:$/.test(lines[0])) {
      paragraphs.push(lines.map((line) => line.trim()).join(' '));
      continue;
    }
    const items = [];
    for (const line of lines.slice(1)) {
      const [, term, rest = ''] = /^ {2}(\S.*?)(?: {2,}(\S.*))?$/.exec(line) ?? [];
      if (term !== undefined) items.push({ term, rest });
      // A long description continues below itself.
      else if (items.length > 0) items.at(-1).rest = `${items.at(-1).rest} ${line.trim()}`.trim();
    }
    sections.push({ title: lines[0].slice(0, -1), items });
  }
  return { usage: first.replace('Usage: ', ''), paragraphs, sections };
}

/** A line of text that roff takes literally. */
const text = (line) =>
  line
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('"', '\\(dq')
    .replaceAll('`', '\\(ga')
    .replaceAll('→', '\\(->')
    .replaceAll('…', '...')
    .replace(/^([.'])/, '\\&$1');
