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

/** The last argument of a command repeats if it takes several. */
function describe(program: Command) {
  return program.commands.map((command) => {
    const described = [...command.options, ...program.options].filter(({ hidden }) => !hidden);
    return {
      name: command.name(),
      description: command.description(),
      options: [
        ...described.map((option) => ({
          names: [option.short, option.long].filter((name) => name !== undefined),
          description: option.description,
          takesValue: option.required || option.optional,
          value: completed(/[<[](.*?)(?:\.\.\.)?[\]>]/.exec(option.flags)?.[1] ?? '', option.argChoices),
        })),
        { names: ['-h', '--help'], description: 'Print help', takesValue: false, value: undefined },
      ],
      arguments: command.registeredArguments.map((argument) => completed(argument.name(), argument.argChoices)),
    };
  });
}

/** Derived from the name of the value in the command's usage. */
function completed(name: string, choices: readonly string[] | undefined): Completed {
  if (choices) return choices;
  if (name === 'state') return RUN_STATES;
  return name === 'file' || name === 'instrument' ? name : undefined;
}

/** How a shell can complete a word. */
type Completed = 'file' | 'instrument' | readonly string[] | undefined;

type Commands = ReturnType<typeof describe>;

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
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]-} IFS=$'\\n'
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W ${quote(commands.map(({ name }) => name).join('\n'))} -- "$word"))
    return
  fi
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
  case "$command:$(( COMP_CWORD > 2 ))" in
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
  const described = commands.map(({ name, description }) => quote(`${name}:${description}`)).join(' ');
  return `#compdef labfeed
_labfeed_instruments() {
  local -a names
  names=("\${(@f)$("$words[1]" completion --instruments 2>/dev/null)}")
  compadd -a names
}
_labfeed() {
  local -a commands
  if (( CURRENT == 2 )); then
    commands=(${described})
    _describe command commands
    return
  fi
  case "$words[2]:$words[CURRENT-1]" in
${valueCases(commands, zshOf)}
  esac
  if [[ $words[CURRENT] == -* ]]; then
    case "$words[2]" in
${commands
  .map(({ name, options }) => `      ${name}) compadd -- ${options.flatMap(({ names }) => names).join(' ')} ;;`)
  .join('\n')}
    esac
    return
  fi
  case "$words[2]:$(( CURRENT > 3 ))" in
${argumentCases(commands, zshOf)}
  esac
}
compdef _labfeed labfeed
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
    const within = `complete -c labfeed -n ${quote(`__fish_seen_subcommand_from ${command.name}`)}`;
    const words = command.arguments.filter((one) => one !== undefined && one !== 'file');
    const noFiles = command.arguments.includes('file') ? '' : ' -f';
    return [
      `complete -c labfeed -f -n __fish_use_subcommand -a ${command.name} -d ${quote(command.description)}`,
      ...command.options.map((option) => `${within} ${fishOption(option)}`),
      ...(words.length > 0 ? words : [[]]).map((value) => `${within}${noFiles} -a ${fishOf(value)}`),
    ];
  });
  return `# labfeed completion for fish\n${lines.join('\n')}\n`;
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
