import { InvalidArgumentError, Option } from 'commander';

export function portOption(preset?: number): Option {
  const option = new Option('--port <port>', 'the port of the built-in notebook').argParser(readPort);
  return preset === undefined ? option : option.default(preset);
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new InvalidArgumentError('expected a number from 0 to 65535.');
  return port;
}
