import { Argument, type Command, Option } from 'commander';
import { jsonSchema } from '../config/problems.js';
import { RUN_STATES } from '../model.js';
import { type ConfigOption, configFrom, configOption, withExamples } from './options.js';

const SHELLS = { bash, zsh, fish };

export function addCompletion(command: Command): void {
  withExamples(command, [
    'labfeed completion bash > /etc/bash_completion.d/labfeed',
    'labfeed completion zsh > /usr/local/share/zsh/site-functions/_labfeed',
    'labfeed completion fish > ~/.config/fish/completions/labfeed.fish',
  ])
    .addArgument(new Argument('[shell]', 'Shell').choices(Object.keys(SHELLS)).default('bash'))
    .addOption(configOption())
    .addOption(new Option('--instruments', 'Print the names of the instruments').hideHelp())
    .action(async (shell: keyof typeof SHELLS, options: ConfigOption & { instruments?: boolean }) => {
      if (options.instruments) printInstruments(options);
      else process.stdout.write(SHELLS[shell](describe(command.parent ?? command)));
    });
}

/** Called by the completion scripts, which must not show errors. */
function printInstruments(options: ConfigOption): void {
  try {
    for (const { name } of configFrom(options).listed) console.log(name);
  } catch {
    return;
  }
}

const describe = (program: Command) =>
  program.commands.flatMap((command) => [
    describeCommand(command, command.name(), program),
    ...command.commands.map((sub) => describeCommand(sub, `${command.name()}.${sub.name()}`, program)),
  ]);

/** The last argument of a command repeats if it takes several. Subcommands are named `keys.rotate`. */
function describeCommand(command: Command, name: string, program: Command) {
  const described = [...command.options, ...program.options].filter(({ hidden }) => !hidden);
  const subcommands = command.commands.map((sub) => sub.name());
  return {
    name,
    description: command.description(),
    subcommands,
    options: [
      ...described.map((option) => ({
        names: [option.short, option.long].filter((name) => name !== undefined),
        description: option.description,
        takesValue: option.required || option.optional,
        value: completed(/[<[](.*?)(?:\.\.\.)?[\]>]/.exec(option.flags)?.[1] ?? '', option.argChoices),
      })),
      { names: ['-h', '--help'], description: 'Print help', takesValue: false, value: undefined },
    ],
    arguments: [
      ...(subcommands.length > 0 ? [subcommands] : []),
      ...command.registeredArguments.map((argument) => completed(argument.name(), argument.argChoices)),
    ],
  };
}

const isTop = ({ name }: Described): boolean => !name.includes('.');

/** A shell pattern for the commands that have subcommands. */
const parents = (commands: Commands): string =>
  commands
    .filter(({ subcommands }) => subcommands.length > 0)
    .map(({ name }) => name)
    .join('|');

/** Derived from the name of the value in the command's usage. */
function completed(name: string, choices: readonly string[] | undefined): Completed {
  if (choices) return choices;
  if (name === 'state') return RUN_STATES;
  return name === 'file' || name === 'instrument' ? name : undefined;
}

/** How a shell can complete a word. */
type Completed = 'file' | 'instrument' | readonly string[] | undefined;

type Commands = readonly Described[];
type Described = ReturnType<typeof describeCommand>;

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

type Render = (value: Completed) => string;

/** Shell cases `COMMAND:OPTION`, for the word after an option that takes a value. */
const valueCases = (commands: Commands, render: Render): string =>
  commands
    .flatMap(({ name, options }) =>
      options
        .filter(({ takesValue }) => takesValue)
        .map(
          ({ names, value }) =>
            `    ${names.map((option) => `${name}:${option}`).join('|')}) ${render(value)}; return ;;`,
        ),
    )
    .join('\n');

/** Shell cases `COMMAND:0` for the first argument and `COMMAND:1` for the later ones. */
const argumentCases = (commands: Commands, render: Render): string =>
  commands
    .flatMap(({ name, arguments: all }) =>
      [all[0], all.at(-1)].map((value, index) => `    ${name}:${index}) ${render(value)} ;;`),
    )
    .join('\n');

function bash(commands: Commands): string {
  return `# labfeed completion for bash
_labfeed() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]-} first=2 IFS=$'\\n'
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W ${quote(
      commands
        .filter(isTop)
        .map(({ name }) => name)
        .join('\n'),
    )} -- "$word"))
    return
  fi
  case "$command" in
    ${parents(commands)}) if (( COMP_CWORD > 2 )); then command+=.\${COMP_WORDS[2]} first=3; fi ;;
  esac
  case "$command:$before" in
${valueCases(commands, bashOf)}
  esac
  if [[ $word == -* ]]; then
    case "$command" in
${commands
  .map(
    ({ name, options }) =>
      `      ${name}) COMPREPLY=($(compgen -W ${quote(options.flatMap(({ names }) => names).join('\n'))} -- "$word")) ;;`,
  )
  .join('\n')}
    esac
    return
  fi
  case "$command:$(( COMP_CWORD > first ))" in
${argumentCases(commands, bashOf)}
  esac
}
_labfeed_instruments() {
  local name
  while IFS= read -r name; do
    [[ $name == "$1"* ]] && COMPREPLY+=("$(printf %q "$name")")
  done < <("\${COMP_WORDS[0]}" completion --instruments 2>/dev/null)
}
complete -F _labfeed labfeed
`;
}

function bashOf(value: Completed): string {
  if (value === undefined) return ':';
  if (value === 'file') return 'COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null';
  if (value === 'instrument') return '_labfeed_instruments "$word"';
  return `COMPREPLY=($(compgen -W ${quote(value.join('\n'))} -- "$word"))`;
}

function zsh(commands: Commands): string {
  const described = commands
    .filter(isTop)
    .map(({ name, description }) => quote(`${name}:${description}`))
    .join(' ');
  return `#compdef labfeed
_labfeed_instruments() {
  local -a names
  names=("\${(@f)$("$words[1]" completion --instruments 2>/dev/null)}")
  compadd -a names
}
_labfeed() {
  local -a commands
  local command=$words[2] first=3
  if (( CURRENT == 2 )); then
    commands=(${described})
    _describe command commands
    return
  fi
  case "$command" in
    ${parents(commands)}) if (( CURRENT > 3 )); then command+=.$words[3] first=4; fi ;;
  esac
  case "$command:$words[CURRENT-1]" in
${valueCases(commands, zshOf)}
  esac
  if [[ $words[CURRENT] == -* ]]; then
    case "$command" in
${commands
  .map(({ name, options }) => `      ${name}) compadd -- ${options.flatMap(({ names }) => names).join(' ')} ;;`)
  .join('\n')}
    esac
    return
  fi
  case "$command:$(( CURRENT > first ))" in
${argumentCases(commands, zshOf)}
  esac
}
# As a file in fpath, this is the body of the function at its first use. Otherwise it was sourced.
if [[ $funcstack[1] == _labfeed ]]; then _labfeed "$@"; else compdef _labfeed labfeed; fi
`;
}

function zshOf(value: Completed): string {
  if (value === undefined) return ':';
  if (value === 'file') return '_files';
  if (value === 'instrument') return '_labfeed_instruments';
  return `compadd -- ${value.join(' ')}`;
}

function fish(commands: Commands): string {
  const lines = commands.flatMap((command) => {
    const words = command.name.replace('.', ' ');
    const isParent = command.subcommands.length > 0;
    const within = `complete -c labfeed -n ${quote(`__labfeed_at ${isParent ? '-eq 2' : '-ge 2'} ${words}`)}`;
    const values = command.arguments.filter((one) => one !== undefined && one !== 'file');
    const noFiles = command.arguments.includes('file') ? '' : ' -f';
    return [
      ...(isTop(command)
        ? [`complete -c labfeed -f -n __fish_use_subcommand -a ${command.name} -d ${quote(command.description)}`]
        : []),
      ...command.options.map((option) => `${within} ${fishOption(option)}`),
      ...(values.length > 0 ? values : [[]]).map((value) => `${within}${noFiles} -a ${fishOf(value)}`),
    ];
  });
  return `# labfeed completion for fish
# Whether this many words are complete, and the first of them are these.
function __labfeed_at
  set -l words (commandline -opc)
  test (count $words) $argv[1] $argv[2]; or return 1
  string match --quiet -- "$argv[3..-1] *" "$words[2..-1] "
end
${lines.join('\n')}
`;
}

function fishOption({ names, description, takesValue, value }: Commands[number]['options'][number]): string {
  const flags = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.replace('-', '')}`));
  const words = value === undefined || value === 'file' ? '' : ` -f -a ${fishOf(value)}`;
  return `${flags.join(' ')} -d ${quote(description)}${takesValue ? ` -r${words}` : ''}`;
}

const fishOf = (value: Exclude<Completed, undefined | 'file'>): string =>
  quote(value === 'instrument' ? '(labfeed completion --instruments 2>/dev/null)' : value.join(' '));

export function addSchema(command: Command): void {
  withExamples(command, ['labfeed schema > labfeed.schema.json']).action(() => {
    console.log(JSON.stringify(jsonSchema(), null, 2));
  });
}
