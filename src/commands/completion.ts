import { Argument, type Command, Option } from 'commander';
import { RUN_STATES } from '../model.js';
import { type Completed, type CompletedCommand, SCRIPTS } from './completion-scripts.js';
import { type ConfigOption, configOption, loadNamed } from './config-option.js';

interface CompletionOptions extends ConfigOption {
  readonly instruments?: boolean;
}

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print what a shell needs to complete commands, options, states and instruments')
    .addArgument(new Argument('[shell]', 'the shell').choices(SHELLS).default('bash'))
    .addOption(configOption())
    .addOption(new Option('--instruments', 'print the names of the instruments').hideHelp())
    .addHelpText(
      'after',
      '\nExample:\n  labfeed completion bash > /etc/bash_completion.d/labfeed\n  labfeed completion zsh > /usr/local/share/zsh/site-functions/_labfeed\n  labfeed completion fish > ~/.config/fish/completions/labfeed.fish',
    )
    .action((shell: Shell, options: CompletionOptions) => complete(program, shell, options));
}

async function complete(
  program: Command,
  shell: Shell,
  { instruments, ...options }: CompletionOptions,
): Promise<void> {
  if (instruments) return tellInstruments(options);
  process.stdout.write(SCRIPTS[shell](describe(program)));
}

/** What is wrong with the configuration is no matter of the shell's. */
function tellInstruments(options: ConfigOption): void {
  try {
    for (const { name } of loadNamed(options).listed) console.log(name);
  } catch {
    return;
  }
}

/** What commander knows of the commands: nothing is written down a second time. */
export function describe(program: Command): CompletedCommand[] {
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
        { names: ['-h', '--help'], description: 'print help', takesValue: false, value: undefined },
      ],
      arguments: command.registeredArguments.map((argument) =>
        completed(argument.name(), argument.argChoices),
      ),
    };
  });
}

/** Told by how the value is called in the command's usage. */
function completed(name: string, choices: readonly string[] | undefined): Completed {
  if (choices) return choices;
  if (name === 'state') return RUN_STATES;
  return name === 'file' || name === 'instrument' ? name : undefined;
}
